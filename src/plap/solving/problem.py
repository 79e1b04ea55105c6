"""Eq. 8 for one X: its value, gradient and curvature, each by one pass over the edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from plap.graph import Graph
from plap.solving.incidence import Block, Incidence

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
    """P_i = p Σ_j M_ij / D_i + 2μ, shape [N, 1]: the step of Eq. 11-13 is −gradient / metric."""


class Rows(NamedTuple):
    """A block of edges, its (W_ij/D_i)^½ F_i − (W_ij/D_j)^½ F_j, the norms of it, and M_ij / W_ij."""

    block: Block
    difference: Tensor
    norm: Tensor
    power: Tensor


class Problem:
    r"""min S_p(F) + μ ‖F − X‖², with the clamp rule for p < 2.

    An edge norm t below eps counts as (p/2) eps^(p−2) t² + (1 − p/2) eps^p instead of t^p, which is Huber's
    rule: the same value and slope at eps, and M_ij = W_ij max(t, eps)^(p−2) stays bounded.

    Parameters
    ----------
    X : Tensor, shape [N, C], float64
    graph : Graph
    p, mu : float
    eps : float, optional
        By default a thousandth of the median edge norm of X over the edges where it is not 0.
    """

    def __init__(self, X: Tensor, graph: Graph, p: float, mu: float, eps: float | None) -> None:
        self.X, self.p, self.mu = X, p, mu
        self.incidence = Incidence(graph, X.shape[1])
        self.edge_passes = 0
        self.eps = 0.0
        if p < 2:
            self.eps = max(eps or self._default_eps(), _SMALLEST_EPS)

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
            yield Rows(block, difference, norm, norm.clamp(min=self.eps).pow(self.p - 2))

    def at(self, F: Tensor) -> Point:
        """The objective at F, its gradient p Δ_p F + 2μ (F − X), and the metric of the paper's step."""
        p, energy, excess = self.p, 0.0, 0.0
        slope, total = torch.zeros_like(F), torch.zeros_like(F[:, 0])
        for block, difference, norm, power in self.walk(F):
            square = norm.square()
            clamped = square.clamp(min=self.eps**2)
            each = power * (clamped + p / 2 * (square - clamped))
            energy += float(each.sum())
            below = norm < self.eps
            excess += float((each[below] - norm[below].pow(p)).sum())
            slope.addmm_(block.adjoint, difference.mul_(power[:, None]))
            total += block.squared @ power
        away = F - self.X
        return Point(
            F,
            energy + self.mu * float(away.square().sum()),
            excess,
            p * slope + 2 * self.mu * away,
            (p * total + 2 * self.mu)[:, None],
        )

    def hessian_product(self, F: Tensor, v: Tensor) -> Tensor:
        """H v with H the Hessian at F, which is positive definite: H ≥ 2μ for every p ≥ 1.

        On an edge it is M (1 + (p−2) u uᵀ) with u the direction of the gradient, and M alone below eps.
        """
        slope = torch.zeros_like(v)
        for block, difference, norm, power in self.walk(F):
            change = block.matrix @ v
            if self.p != 2:
                along = (difference * change).sum(dim=1) / norm.clamp(min=_TINY).square()
                change.addcmul_(difference, torch.where(norm < self.eps, 0, (self.p - 2) * along)[:, None])
            slope.addmm_(block.adjoint, change.mul_(power[:, None]))
        return self.p * slope + 2 * self.mu * v
