"""A chunk's edges: who they join, how far apart their ends are, and M_ij of Eq. 12.

M spans far more than float32 does (rows of 1e±15, p = 4), so it is held as w · exp(exponent), and used only
with the largest exponent of a row taken out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from plap.graph import Graph
from plap.kernels.torch.autograd_ops import squared
from plap.kernels.torch.chunked.chunks import Chunk, chunks
from plap.penalties import Penalty, Power


@dataclass(frozen=True)
class Problem:
    """The graph, the penalty and the numbers of Eq. 11-13 as a step uses them."""

    indptr: Tensor
    indices: Tensor
    weight: Tensor
    degree: Tensor
    """[N], 1 for a node without edges."""
    root: Tensor
    """s = D^-1/2, [N, 1]."""
    penalty: Penalty
    """Its parameter is [R, 1]."""
    anchor: Tensor
    """m = 2μ/c, [R, 1]; c = p for powers."""
    omega: float
    eps: float | None
    detach: bool
    """Whether ψ counts as a constant in the backward pass."""
    chunks: tuple[Chunk, ...]

    @classmethod
    def of(
        cls, graph: Graph, weight: Tensor, penalty: Penalty, mu: Tensor, omega: float, eps: float | None,
        size: int, *, detach: bool = False,
    ) -> Problem:  # fmt: skip
        """``size`` entries per chunk; mu and the penalty's parameter, [R], have the type of x."""
        bound = penalty.at(torch.as_tensor(penalty.parameter)[:, None])
        degree = torch.where(graph.degree > 0, graph.degree, 1).detach()
        return cls(
            graph.indptr,
            graph.indices,
            weight,
            degree.to(mu.dtype),
            degree.rsqrt().to(mu.dtype)[:, None],
            bound,
            2 * mu[:, None] / bound.c,
            omega,
            eps,
            detach,
            chunks(graph.indptr, graph.num_entries, size),
        )


class Workspace:
    """Room for two arrays of a chunk's entries × channels, used by one chunk after another."""

    def __init__(self, like: Tensor, problem: Problem) -> None:
        self._runs, _, self._channels = like.shape
        largest = max((chunk.end - chunk.first for chunk in problem.chunks), default=0)
        self._room = like.new_empty(2, self._runs * largest * self._channels)

    def arrays(self, entries: int) -> tuple[Tensor, Tensor]:
        """Two arrays [R, entries, C], their content undefined."""
        shape = (self._runs, entries, self._channels)
        first, second = self._room[:, : math.prod(shape)]
        return first.view(shape), second.view(shape)


class Ends(NamedTuple):
    """Who the edges of a chunk join, and how strongly."""

    rows: slice
    receiver: Tensor
    """Counted from ``rows.start``."""
    source: Tensor
    weight: Tensor

    @classmethod
    def of(cls, chunk: Chunk, problem: Problem) -> Ends:
        """Those of a chunk."""
        entries = slice(chunk.first, chunk.end)
        return cls(
            slice(chunk.top, chunk.bottom),
            chunk.receivers(problem.indptr),
            problem.indices[entries],
            problem.weight[entries].to(problem.root.dtype),
        )

    def at_receiver(self, of_nodes: Tensor) -> Tensor:
        """[R, N] → [R, entries]."""
        return of_nodes[:, self.rows].index_select(1, self.receiver)

    def at_source(self, of_nodes: Tensor) -> Tensor:
        """[R, N] → [R, entries]."""
        return of_nodes.index_select(1, self.source)

    def rows_at_receiver(self, of_nodes: Tensor, out: Tensor) -> Tensor:
        """[R, N, C] → [R, entries, C]."""
        return torch.index_select(of_nodes[:, self.rows], 1, self.receiver, out=out)

    def rows_at_source(self, of_nodes: Tensor, out: Tensor) -> Tensor:
        """[R, N, C] → [R, entries, C]."""
        return torch.index_select(of_nodes, 1, self.source, out=out)

    def add_to_receiver(self, of_nodes: Tensor, of_entries: Tensor) -> None:
        """Add [R, entries] or [R, entries, C] to the rows of [R, N] or [R, N, C]."""
        target = of_nodes[:, self.rows]
        if target.shape[0] == 1:  # twice as fast on the CPU as the general case
            target[0].index_add_(0, self.receiver, of_entries[0])
        else:
            target.index_add_(1, self.receiver, of_entries)


class Edges(NamedTuple):
    """How far apart the ends of a chunk's edges are; [R, entries] except for ``direction``."""

    direction: Tensor
    """(Y_i − Y_j) / scale, [R, entries, C]."""
    scale: Tensor
    norm: Tensor
    """Of ``direction``."""
    exponent: Tensor
    """log ψ = log(M_ij / w_ij)."""
    exists: Tensor
    """Where M_ij is not 0."""
    varies: Tensor
    """Where M_ij depends on the distance."""
    elasticity: Tensor
    """∂ log ψ / ∂ log ‖∇F‖, where M_ij varies; p − 2 for powers."""
    parameter_rate: Tensor
    """∂ log ψ / ∂ parameter; for powers log ‖∇F‖."""

    def conductance(self, weight: Tensor, shift: Tensor) -> Tensor:
        """M_ij e^−shift."""
        return torch.where(self.exists, torch.exp(self.exponent - shift), 0).mul_(weight)


def measure(
    Y: Tensor, size: Tensor, ends: Ends, problem: Problem, room: tuple[Tensor, Tensor], *, slopes: bool
) -> Edges:
    """The edges at Y [R, N, C], whose rows have norms ``size`` [R, N]; leaves Y_j in the second of ``room``.

    Without ``slopes``, the derivatives of ψ are 0 for all penalties but powers, whose are known.

    Two rows are equal but for rounding where their distance is not above four machine epsilons of
    (‖Y_i‖² + ‖Y_j‖²)^½. Differences are divided by the longer row first, so that squares stay in range.
    """
    near, far = room
    direction = ends.rows_at_receiver(Y, near).sub_(ends.rows_at_source(Y, far))
    size_i, size_j = ends.at_receiver(size), ends.at_source(size)
    scale = torch.maximum(size_i, size_j)
    scale = torch.where(scale > 0, scale, 1)
    direction.div_(scale[:, :, None])
    norm = torch.linalg.vector_norm(direction, dim=-1)
    tau = 4 * torch.finfo(Y.dtype).eps
    apart = norm > tau * torch.hypot(size_i.div_(scale), size_j.div_(scale))
    log_gradient = norm.log().add_(scale.log()).add_(0.5 * ends.weight.log())
    if isinstance(problem.penalty, Power):
        return Edges(direction, scale, norm, *_powers(problem, log_gradient, apart, norm > 0))
    return Edges(direction, scale, norm, *_weights(problem, log_gradient, apart, norm > 0, slopes))


def _powers(
    problem: Problem, log_gradient: Tensor, apart: Tensor, differs: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The last five fields of :class:`Edges` for a power, which is never formed but as an exponent."""
    q = torch.as_tensor(problem.penalty.parameter) - 2
    varies, counts = apart, apart
    if problem.eps is not None:
        varies = torch.where(q <= 0, log_gradient > math.log(problem.eps), apart)
        counts = (q <= 0) | apart
        log_gradient = torch.where(counts & ~varies, math.log(problem.eps), log_gradient)
    counts = counts | ((q > 0) & differs)
    log_gradient = torch.where(counts, log_gradient, 0)
    return q * log_gradient, counts | (q == 0), varies, q, log_gradient


def _weights(
    problem: Problem, log_gradient: Tensor, apart: Tensor, differs: Tensor, slopes: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The last five fields of :class:`Edges` for any other penalty."""
    penalty = problem.penalty
    varies, counts = differs, torch.ones_like(differs)
    if penalty.unbounded and problem.eps is not None:
        varies = log_gradient > math.log(problem.eps)
        log_gradient = torch.where(varies, log_gradient, math.log(problem.eps))
    elif penalty.unbounded:
        varies = counts = apart
        log_gradient = torch.where(apart, log_gradient, 0)
    nu = squared(log_gradient)
    psi = penalty.psi(nu).to(nu.dtype)
    exists = counts & (psi > 0)
    psi = torch.where(exists, psi, 1)
    elasticity = parameter_rate = psi.new_zeros(())
    if slopes:
        elasticity = penalty.dpsi_dlog_nu(nu).mul(2).div_(psi)
        parameter_rate = penalty.dpsi_dparameter(nu).div(psi)
    return psi.log(), exists, varies & exists, elasticity, parameter_rate
