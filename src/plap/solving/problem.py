"""Eq. 8 for one X: its value, gradient and curvature, each by one pass over the edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from plap.calculus import incidence
from plap.graph import Graph
from plap.penalties import Penalty, Power
from plap.sparse import csr_tensor

_BLOCK = 1 << 20
"""Largest number of elements of an edges × channels array held at a time, unless x itself has more."""

_DENSE = 1 << 15
"""Entries up to which a dense matrix is faster: a sparse product wakes all threads, however small it is."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of the incidence matrix B; that of the edge i-j has (W_ij/D_i)^½ at i and −(W_ij/D_j)^½ at j."""

    matrix: Tensor
    """B, shape [edges, N], sparse unless it is small; B F is the gradient of F on the edges, up to sign."""
    adjoint: Tensor
    """Bᵀ, shape [N, edges]."""
    squared: Tensor
    """The squares of Bᵀ's entries, W_ij/D_i."""


class Incidence:
    """The incidence matrix of :func:`plap.calculus.incidence` in blocks of rows, and its edges' ends."""

    def __init__(self, graph: Graph, channels: int) -> None:
        self.ends, share = incidence(graph)
        size = max(1, _BLOCK // max(1, channels), graph.num_nodes)
        parts = zip(self.ends.split(size), share.split(size), strict=True)
        self.blocks = [_block(*part, graph.num_nodes) for part in parts if part[0].numel()]


def _block(ends: Tensor, share: Tensor, nodes: int) -> Block:
    count, column, value = ends.shape[0], ends.reshape(-1), share.reshape(-1)
    order = torch.argsort(column, stable=True)
    starts = torch.zeros(nodes + 1, dtype=torch.int64, device=ends.device)
    starts[1:] = torch.bincount(column, minlength=nodes).cumsum(0)
    rows = 2 * torch.arange(count + 1, device=ends.device)
    # 32-bit indices wherever they suffice: they take half the room, and products with them are faster
    index = torch.int32 if value.numel() < 2**31 else torch.int64
    edge, starts, transposed = (order // 2).to(index), starts.to(index), value[order]
    return Block(
        _matrix(rows.to(index), column.to(index), value, (count, nodes)),
        _matrix(starts, edge, transposed, (nodes, count)),
        _matrix(starts, edge, transposed.square(), (nodes, count)),
    )


def _matrix(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    matrix = csr_tensor(starts, columns, values, shape)
    return matrix.to_dense() if shape[0] * shape[1] <= _DENSE else matrix


_SMALLEST_EPS = 1e-100
_TINY = 1e-150


@dataclass(frozen=True, eq=False)
class Point:
    """What one pass over the edges computes for a candidate F."""

    F: Tensor
    value: float
    """Value of the function that is minimised."""
    excess: float
    """How much of the value Huber's parabola adds to Eq. 8."""
    gradient: Tensor
    metric: Tensor
    """P_i = c Σ_j M_ij / D_i + 2μ, shape [N, 1]: the step of Eq. 11-13 is −gradient / metric."""


class Rows(NamedTuple):
    """A block of edges, its (W_ij/D_i)^½ F_i − (W_ij/D_j)^½ F_j, the norms of it, and ψ = M_ij / W_ij."""

    block: Block
    difference: Tensor
    norm: Tensor
    psi: Tensor


class Problem:
    r"""min Σ ρ(t) + μ ‖F − X‖² over the edge norms t, with the clamp rule where ψ is unbounded (p < 2).

    An edge norm t below eps counts as ρ(eps) + c/2 ψ(eps²) (t² − eps²) instead of ρ(t), which is Huber's
    rule: the same value and slope at eps, and M_ij = W_ij ψ(max(t, eps)²) stays bounded.

    Parameters
    ----------
    X : Tensor, shape [N, C], float64
    graph : Graph
    penalty : Penalty
        Its parameter is a number.
    mu : float
    eps : float, optional
        By default a thousandth of the median edge norm of X over the edges where it is not 0.
    """

    def __init__(self, X: Tensor, graph: Graph, penalty: Penalty, mu: float, eps: float | None) -> None:
        self.X, self.penalty, self.mu = X, penalty, mu
        self.c = float(penalty.c)
        self.incidence = Incidence(graph, X.shape[1])
        self.edge_passes = 0
        self.eps = 0.0
        if penalty.unbounded:
            self.eps = max(eps or self._default_eps(), _SMALLEST_EPS)

    @property
    def p(self) -> float | None:
        """The exponent of a power; None for other penalties."""
        return self.c if isinstance(self.penalty, Power) else None

    @property
    def damping(self) -> float:
        """ω of the paper's step: 1 where the step cannot climb, and 1/(p−1) for p > 2, where it can."""
        return 1.0 if self.p is None else 1 / max(1.0, self.p - 1)

    def _default_eps(self) -> float:
        norms = torch.cat([rows.norm for rows in self.walk(self.X)] or [self.X.new_zeros(1)])
        nonzero = norms[norms > 0]
        if nonzero.numel() == 0:
            return 1.0
        return max(1e-3 * float(nonzero.median()), 1e-12 * float(nonzero.max()))

    def walk(self, F: Tensor) -> Iterator[Rows]:
        """Every edge once, in blocks."""
        self.edge_passes += 1
        for block in self.incidence.blocks:
            difference = block.matrix @ F
            norm = torch.linalg.vector_norm(difference, dim=1)
            yield Rows(block, difference, norm, self._psi(norm.clamp(min=self.eps)))

    def _psi(self, norm: Tensor) -> Tensor:
        return self.penalty.psi(norm.square()).to(norm.dtype) if self.p is None else norm.pow(self.p - 2)

    def _rho(self, norm: Tensor, psi: Tensor) -> Tensor:
        """What an edge adds to the objective."""
        square = norm.square()
        clamped = square.clamp(min=self.eps**2)
        if self.p is not None:
            return psi * (clamped + self.p / 2 * (square - clamped))
        return self.penalty.rho(norm.clamp(min=self.eps)) + self.c / 2 * psi * (square - clamped)

    def at(self, F: Tensor) -> Point:
        """The objective at F, its gradient (p Δ_p F + 2μ (F − X) for powers), and the metric of a step."""
        energy, excess = 0.0, 0.0
        slope, total = torch.zeros_like(F), torch.zeros_like(F[:, 0])
        for block, difference, norm, psi in self.walk(F):
            each = self._rho(norm, psi)
            energy += float(each.sum())
            below = norm < self.eps
            excess += float((each[below] - self.penalty.rho(norm[below])).sum())
            slope.addmm_(block.adjoint, difference.mul_(psi[:, None]))
            total += block.squared @ psi
        away = F - self.X
        return Point(
            F,
            energy + self.mu * float(away.square().sum()),
            excess,
            self.c * slope + 2 * self.mu * away,
            (self.c * total + 2 * self.mu)[:, None],
        )

    def hessian_product(self, F: Tensor, v: Tensor) -> Tensor:
        """H v with H the Hessian at F, which is positive definite for convex penalties: H ≥ 2μ.

        On an edge it is c W (ψ + 2νψ' u uᵀ) with u the direction of the gradient, and c W ψ below eps.
        """
        slope = torch.zeros_like(v)
        for block, difference, norm, psi in self.walk(F):
            change = block.matrix @ v
            if self.p == 2:
                slope.addmm_(block.adjoint, change.mul_(psi[:, None]))
                continue
            along = (difference * change).sum(dim=1) / norm.clamp(min=_TINY).square()
            if self.p is not None:
                change.addcmul_(difference, torch.where(norm < self.eps, 0, (self.p - 2) * along)[:, None])
                change.mul_(psi[:, None])
            else:
                bend = 2 * self.steepness(norm) * along
                change.mul_(psi[:, None]).addcmul_(difference, bend[:, None])
            slope.addmm_(block.adjoint, change)
        return self.c * slope + 2 * self.mu * v

    def steepness(self, norm: Tensor) -> Tensor:
        """ν dψ/dν, 0 where ψ is clamped."""
        varies = (norm >= self.eps) & (norm > 0)
        return torch.where(varies, self.penalty.dpsi_dlog_nu(torch.where(varies, norm, 1).square()), 0)
