"""How much each entry counts in a step, chunk by chunk; without gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.graph import Graph
from plap.kernels.torch.chunked.edges import Ends, Problem, Workspace, measure
from plap.kernels.torch.chunked.forward import forward, row_norms, scaled
from plap.penalties import Penalty


@torch.no_grad()
def aggregation_weights(
    x: Tensor, graph: Graph, penalty: Penalty, mu: Tensor, eps: float | None, chunk: int
) -> Tensor:
    """α_i D_i^-1/2 M_ij D_j^-1/2 of the step that starts from x [R, N, C], shape [R, entries]."""
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
