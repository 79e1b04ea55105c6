"""One step of Eq. 11-13, chunk by chunk.

Symbols are those of the paper: s = D^-1/2, Y = s F, m = 2μ/p, α of the receiver. The state between two steps
is Y. α is held as e^−shift / T, where shift is the largest exponent of M_ij in a row, or 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from plap.graph import Graph
from plap.kernels.torch.chunked.edges import Ends, Problem, Workspace, measure
from plap.penalties import Penalty


class Normaliser(NamedTuple):
    """α = e^−shift / total of every node, both [R, N]."""

    total: Tensor
    shift: Tensor

    def beta(self, problem: Problem) -> Tensor:
        """β = m α; 1 for a node without edges, without rounding."""
        return torch.exp(-self.shift).mul_(problem.anchor).div_(self.total)


def scaled(x: Tensor, problem: Problem) -> Tensor:
    """Y of F(0) = x, contiguous whatever x is."""
    return torch.mul(x, problem.root, out=torch.empty(x.shape, dtype=x.dtype, device=x.device))


def forward(
    Y: Tensor, X: Tensor, out: Tensor, problem: Problem, workspace: Workspace, *, last: bool
) -> Normaliser:
    """Fill ``out`` [R, N, C] with Y of the next step, or with F itself after the last one."""
    size = row_norms(Y, scratch=out)
    shift = torch.zeros_like(size)
    total = problem.anchor.expand_as(size).clone()
    out.zero_()
    for chunk in problem.chunks:
        ends = Ends.of(chunk, problem)
        room = workspace.arrays(chunk.end - chunk.first)
        edges = measure(Y, size, ends, problem, room, slopes=False)
        before = shift[:, ends.rows].clone()
        own = torch.where(edges.exists, edges.exponent, 0)
        shift[:, ends.rows].scatter_reduce_(1, ends.receiver.expand_as(own), own, "amax")
        fade = before.sub_(shift[:, ends.rows]).exp_()
        total[:, ends.rows].mul_(fade)
        if chunk.continues:
            out[:, chunk.top].mul_(fade[:, :1])
        own = edges.conductance(ends.weight, ends.at_receiver(shift))
        ends.add_to_receiver(out, room[1].mul_(own[:, :, None]))
        ends.add_to_receiver(total, own.div_(problem.degree[ends.rows].index_select(0, ends.receiver)))
    normaliser = Normaliser(total, shift)
    out.mul_(problem.root / total[:, :, None]).addcmul_(normaliser.beta(problem)[:, :, None], X)
    if not last or problem.omega != 1.0:
        out.mul_(problem.root)
    if problem.omega != 1.0:
        torch.lerp(Y, out, problem.omega, out=out)
        if last:
            out.div_(problem.root)
    return normaliser


def row_norms(Y: Tensor, scratch: Tensor) -> Tensor:
    """‖Y_i‖, [R, N], of rows as small or large as their numbers can be; overwrites ``scratch``."""
    largest = torch.abs(Y, out=scratch).amax(dim=-1)
    divisor = torch.where(largest > 0, largest, 1)
    norm: Tensor = torch.linalg.vector_norm(torch.div(Y, divisor[:, :, None], out=scratch), dim=-1)
    return norm.mul_(largest)


@torch.no_grad()
def aggregation_weights(
    x: Tensor, graph: Graph, penalty: Penalty, mu: Tensor, eps: float | None, chunk: int
) -> Tensor:
    """How much each entry counts in the step that starts from x [R, N, C], [R, entries]; without gradients.

    That is α_i D_i^-1/2 M_ij D_j^-1/2.
    """
    problem = Problem.of(graph, graph.weight, penalty, mu, 1.0, eps, chunk)
    workspace = Workspace(x, problem)
    Y = scaled(x, problem)
    stepped = torch.empty_like(Y)
    total, shift = forward(Y, x, stepped, problem, workspace, last=True)
    size = row_norms(Y, scratch=stepped)
    root = problem.root.T.expand_as(total)
    weights = torch.empty(x.shape[0], graph.num_entries, dtype=x.dtype, device=x.device)
    for part in problem.chunks:
        ends = Ends.of(part, problem)
        room = workspace.arrays(part.end - part.first)
        edges = measure(Y, size, ends, problem, room, slopes=False)
        own = edges.conductance(ends.weight, ends.at_receiver(shift)).div_(ends.at_receiver(total))
        own.mul_(ends.at_receiver(root)).mul_(ends.at_source(root))
        weights[:, part.first : part.end] = own
    return weights
