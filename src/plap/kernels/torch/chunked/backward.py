r"""One step backward, chunk by chunk, on a symmetric graph; symbols as in ``forward``.

With G = ∂l/∂F of the step's result, V = ω s G / T and u_i = V_i·(Y_i − Y'_i), where Y' is the result before
damping, the cotangent of log M_ij is b_ij = M_ij e^−shift_i (u_i − V_i·(Y_i − Y_j)), and

.. math:: \partial l/\partial Y_i = \sum_j M_{ij} e^{-shift_j} V_j
          + \epsilon_{ij} (b_{ij} + b_{ji}) (Y_i - Y_j) / |Y_i - Y_j|^2,

where ε = ∂ log ψ / ∂ log ‖∇F‖, which is p − 2 for powers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from plap.kernels.torch.chunked.edges import Ends, Problem, Workspace, measure
from plap.kernels.torch.chunked.forward import Normaliser, row_norms


@dataclass
class Slopes:
    """Gradients, added up over the steps from the last to the first; None where they are not wanted."""

    anchor: Tensor
    """m ∂l/∂m, [R], float64."""
    x: Tensor | None
    parameter: Tensor | None
    """Of the penalty, [R], float64, without the part that goes through m."""
    weight: Tensor | None
    """[entries]"""
    degree: Tensor | None
    """[N], wanted with ``weight``, to which it belongs in the end."""

    def spread_degree(self, problem: Problem) -> None:
        """D_i is the sum of its row: give the slope in it to every entry of the row."""
        if self.weight is None or self.degree is None:
            return
        for chunk in problem.chunks:
            rows = self.degree[chunk.top : chunk.bottom]
            self.weight[chunk.first : chunk.end] += rows.index_select(0, chunk.receivers(problem.indptr))


def backward(
    G: Tensor, Y: Tensor, following: Tensor, X: Tensor, out: Tensor, V: Tensor, normaliser: Normaliser,
    problem: Problem, workspace: Workspace, slopes: Slopes, *, last: bool,
) -> None:  # fmt: skip
    """Fill ``out`` with ∂l/∂F of the step's input for G = ∂l/∂F of its result; adds to ``slopes``.

    ``following`` is Y of the next step, or F if this is the ``last``; V is room for [R, N, C].
    """
    torch.mul(G, problem.omega * problem.root / normaliser.total[:, :, None], out=V)
    nodes = _of_nodes(G, Y, following, X, out, V, normaliser, problem, slopes, last=last)
    share = _through_edges(Y, V, nodes.u, out, normaliser, problem, workspace, slopes)
    if slopes.degree is not None and nodes.h is not None:
        # D_i counts in Y_i, in what the neighbours make of the result, and in how far the input pulls on it
        flow = _dots(Y, out) - nodes.h * share / (normaliser.total * problem.degree) - nodes.pull
        slopes.degree -= (flow / (2 * problem.degree)).sum(0)
    out.mul_(problem.root)
    if problem.omega != 1.0:
        out.add_(G, alpha=1 - problem.omega)


class _OfNodes(NamedTuple):
    """Products of rows, [R, N], with F' the step's result before damping."""

    u: Tensor
    pull: Tensor
    """ω β G·(X − F')."""
    h: Tensor | None
    """ω G·F', for the gradient of the weights."""


def _of_nodes(
    G: Tensor, Y: Tensor, following: Tensor, X: Tensor, scratch: Tensor, V: Tensor, normaliser: Normaliser,
    problem: Problem, slopes: Slopes, *, last: bool,
) -> _OfNodes:  # fmt: skip
    """What the edges need to know of nodes; adds to the slopes in x and m."""
    omega, root = problem.omega, problem.root
    moved = torch.sub(Y, torch.mul(following, root, out=scratch) if last else following, out=scratch)
    u = _dots(V, moved.div_(omega))
    result = torch.sub(Y, moved, out=scratch).div_(root)
    h = None if slopes.degree is None else _dots(G, result).mul_(omega)
    beta = normaliser.beta(problem).mul_(omega)
    pull = _dots(G, torch.sub(X, result, out=scratch)).mul_(beta)
    slopes.anchor += pull.sum(1, dtype=torch.float64)
    if slopes.x is not None:
        slopes.x.addcmul_(G, beta[:, :, None])
    return _OfNodes(u, pull, h)


def _through_edges(
    Y: Tensor, V: Tensor, u: Tensor, out: Tensor, normaliser: Normaliser, problem: Problem,
    workspace: Workspace, slopes: Slopes,
) -> Tensor:  # fmt: skip
    """Fill ``out`` with ∂l/∂Y; adds to the slopes in the parameter and in w.

    Returns Σ_j M_ij e^−shift_i, which the slope in w needs.
    """
    size = row_norms(Y, scratch=out)
    out.zero_()
    share = torch.zeros_like(size)
    largest = torch.finfo(Y.dtype).max
    for chunk in problem.chunks:
        ends = Ends.of(chunk, problem)
        room = workspace.arrays(chunk.end - chunk.first)
        edges = measure(Y, size, ends, problem, room, slopes=not problem.detach)
        own = edges.conductance(ends.weight, ends.at_receiver(normaliser.shift))
        along = _dots(ends.rows_at_receiver(V, room[1]), edges.direction).mul_(edges.scale)
        cotangent = ends.at_receiver(u).sub_(along).mul_(own)
        if slopes.parameter is not None and not problem.detach:
            slopes.parameter += (cotangent * edges.parameter_rate).sum(1, dtype=torch.float64)
        if slopes.weight is not None:
            varies = edges.varies & (not problem.detach)
            rate = torch.where(varies, 1 + 0.5 * edges.elasticity, 1).mul_(cotangent).div_(ends.weight)
            slopes.weight[chunk.first : chunk.end] += rate.sum(0)
            ends.add_to_receiver(share, own)
        theirs = edges.conductance(ends.weight, ends.at_source(normaliser.shift))
        pushed = ends.rows_at_source(V, room[1])
        if problem.detach:
            ends.add_to_receiver(out, pushed.mul_(theirs[:, :, None]))
            continue
        along = _dots(pushed, edges.direction).mul_(edges.scale)
        cotangent.add_(along.add_(ends.at_source(u)).mul_(theirs))
        push = cotangent.mul_(edges.elasticity).div_(edges.norm).div_(edges.norm).div_(edges.scale)
        # where rows of 1e-15 and 1e15 meet, it may leave the range that its product with the rest stays in
        push = torch.where(edges.varies, push, 0).clamp_(-largest, largest)
        pushed.mul_(theirs[:, :, None]).addcmul_(edges.direction, push[:, :, None])
        ends.add_to_receiver(out, pushed)
    return share


def _dots(a: Tensor, b: Tensor) -> Tensor:
    """Products of rows, [R, N, C] → [R, N], without an array of [R, N, C]."""
    return torch.einsum("rnc,rnc->rn", a, b)
