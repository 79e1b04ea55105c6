"""The minimiser of Eq. 8: the paper's own step as the metric of a guarded L-BFGS."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph

_BLOCK = 1 << 22
"""Numbers of an entries × channels array that exist at one time."""

_MEMORIES = 8
_ARMIJO = 1e-4
_SMALLEST_OMEGA = 2.0**-30
_ROUNDING = 1e-13
"""Relative rise of the objective that is rounding and no ascent."""


@dataclass(frozen=True)
class SolveInfo:
    """How a solution was found."""

    iterations: int
    """Steps taken."""
    residual: float
    """‖∇L(F)‖ / ‖∇L(X)‖ at the result."""
    objective: float
    """L_p at the result, Eq. 8."""
    history: tuple[float, ...]
    """What is minimised, at X and after every step; it never rises. For p < 2 it counts edge norms below eps
    by a parabola (Huber's rule) and so lies slightly above Eq. 8."""
    converged: bool
    """Whether the residual came down to the tolerance."""


def solve(
    x: Tensor,
    graph: Graph,
    p: float,
    mu: float,
    tol: float = 1e-6,
    *,
    eps: float | None = None,
    max_iter: int = 5_000,
) -> tuple[Tensor, SolveInfo]:
    r"""Find the one minimiser of the regularised objective, Eq. 8.

    .. math:: F^* = \arg\min_F \; \mathcal{S}_p(F) + \mu \|F - X\|^2

    The first step is Eq. 11-13 with damping min(1, 1/(p−1)); later ones learn from the last eight (L-BFGS),
    and every one is halved until the objective falls. The work is done in float64 whatever the type of x; no
    gradient flows through the result.

    Parameters
    ----------
    x : Tensor, shape [N] or [N, C], float32 or float64
    graph : Graph
        On the same device as x.
    p : float, at least 1
    mu : float, positive
        For p ≠ 2 its meaning depends on the scale of x: F*(cx; mu) = c F*(x; mu c^(2−p)).
    tol : float, positive
        Stop where ‖∇L(F)‖ ≤ tol ‖∇L(X)‖.
    eps : float, optional
        For p < 2, the edge norm below which the energy is a parabola. By default a thousandth of the median
        edge norm of x over the edges where it is not 0.
    max_iter : int
        Steps after which to give up; ``info.converged`` is False then.

    Returns
    -------
    y : Tensor of the shape and type of x
    info : SolveInfo

    Examples
    --------
    For p = 2 this is mu (Δ + mu I)^-1 x; on one edge the mean stays, and the difference shrinks
    to a share of mu/(2 + mu).

    >>> import torch, plap
    >>> g = plap.Graph.from_edges([(0, 1)])
    >>> y, info = plap.solve(torch.tensor([1.0, 3.0]), g, p=2, mu=2)
    >>> y, info.converged
    (tensor([1.5000, 2.5000]), True)
    """
    _check(x, graph, p, mu, tol, eps, max_iter)
    X = x.detach().double().reshape(graph.num_nodes, -1)
    # F*(cx; mu) = c F*(x; mu c^(2-p)): with all rows below ½ no power of an edge norm can overflow
    scale = 2 * float(torch.linalg.vector_norm(X, dim=1).amax()) if X.numel() else 0.0
    if scale == 0.0:
        return x.detach().clone(), SolveInfo(0, 0.0, 0.0, (0.0,), True)
    unit_mu = min(max(mu * _power(scale, 2 - p), 1e-280), 1e280)
    problem = _Problem(X / scale, graph, float(p), unit_mu, None if eps is None else eps / scale)
    F, info = _descend(problem, tol, max_iter)
    unit = _power(scale, p)
    info = SolveInfo(
        info.iterations,
        info.residual,
        problem.objective(F) * unit,
        tuple(value * unit for value in info.history),
        info.converged,
    )
    y = (F * scale).reshape(x.shape).to(x.dtype) if info.iterations else x.detach().clone()
    return y, info


@dataclass(frozen=True)
class _Point:
    """The objective at a point, its gradient, and the a_i = Σ_j M_ij / D_i + 2μ/p of Eq. 13."""

    value: float
    gradient: Tensor
    inverse_alpha: Tensor


class _Problem:
    """Eq. 8 for one x, with the clamp rule of M for p < 2 and the energy that belongs to it.

    With r_i = (W_ij/D_i)^½ ≤ 1 and r_j likewise, the edge norm is ‖r_i F_i − r_j F_j‖, so no quotient of
    weights and degrees is ever formed that could leave the range of numbers.
    """

    def __init__(self, X: Tensor, graph: Graph, p: float, mu: float, eps: float | None) -> None:
        self.X, self.p, self.mu = X, p, mu
        self.receiver, self.source = graph.receivers(), graph.indices.long()
        weight = graph.weight.detach().double()
        weight = weight / weight.amax() if weight.numel() else weight
        degree = torch.zeros(graph.num_nodes, dtype=torch.float64, device=X.device)
        degree.index_add_(0, self.receiver, weight)
        self.at_receiver = (weight / degree[self.receiver]).sqrt()
        self.at_source = (weight / degree[self.source]).sqrt()
        self.eps2 = 0.0
        if p < 2:
            self.eps2 = max((eps or self._default_eps()) ** 2, 1e-200)

    def _default_eps(self) -> float:
        norms = torch.cat([nu for _, _, nu in self._blocks(self.X)] or [self.X.new_zeros(1)]).sqrt()
        nonzero = norms[norms > 0]
        if nonzero.numel() == 0:
            return 1.0
        return max(1e-3 * float(nonzero.median()), 1e-12 * float(nonzero.max()))

    def _blocks(self, F: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Which entries, their r_i F_i − r_j F_j, and the squared norms ν of it."""
        size = max(1, _BLOCK // F.shape[1])
        for start in range(0, self.receiver.shape[0], size):
            part = slice(start, start + size)
            difference = self.at_receiver[part, None] * F[self.receiver[part]]
            difference -= self.at_source[part, None] * F[self.source[part]]
            yield part, difference, difference.square().sum(dim=1)

    def objective(self, F: Tensor) -> float:
        """Eq. 8 as it stands, without the clamp."""
        energy = sum(float(nu.pow(self.p / 2).sum()) for _, _, nu in self._blocks(F))
        return 0.5 * energy + self.mu * float((F - self.X).square().sum())

    def at(self, F: Tensor) -> _Point:
        """One pass over the edges: L, ∂L/∂F_i = p Σ_j M_ij … + 2μ (F_i − X_i), and a_i."""
        p, energy = self.p, 0.0
        slope, total = torch.zeros_like(F), torch.zeros_like(F[:, 0])
        for part, difference, nu in self._blocks(F):
            clamped = nu.clamp(min=self.eps2)
            power = clamped.pow((p - 2) / 2)
            # ν^(p/2), and below eps the parabola that touches it there
            energy += float((power * (clamped + p / 2 * (nu - clamped))).sum())
            pull = self.at_receiver[part] * power
            slope.index_add_(0, self.receiver[part], pull[:, None] * difference)
            total.index_add_(0, self.receiver[part], pull * self.at_receiver[part])
        away = F - self.X
        return _Point(
            0.5 * energy + self.mu * float(away.square().sum()),
            p * slope + 2 * self.mu * away,
            total + 2 * self.mu / p,
        )


class _Memory:
    """Directions of L-BFGS (Nocedal and Wright, Algorithm 7.4) in the metric of the paper's step.

    Without memories the direction is that step, −(α_i / p) ∂L/∂F_i, times omega.
    """

    def __init__(self, omega: float) -> None:
        self.omega = omega
        self.pairs: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=_MEMORIES)

    def direction(self, gradient: Tensor, inverse: Tensor) -> Tensor:
        """Where to go from here, for a gradient and P^-1 = α_i / p."""
        q, shares, scale = gradient.clone(), [], self.omega
        for step, change, product in reversed(self.pairs):
            shares.append(float((step * q).sum()) / product)
            q -= shares[-1] * change
        if self.pairs:
            _, change, product = self.pairs[-1]
            scale = product / float((change * inverse * change).sum())
        q *= scale * inverse
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            q += (share - float((change * q).sum()) / product) * step
        return -q

    def add(self, step: Tensor, change: Tensor) -> None:
        """Remember a step and what it did to the gradient, if the curvature along it can be trusted."""
        product = float((step * change).sum())
        if product > 1e-12 * float(step.norm()) * float(change.norm()):
            self.pairs.append((step, change, product))


def _descend(problem: _Problem, tol: float, max_iter: int) -> tuple[Tensor, SolveInfo]:
    """Go down until the gradient is small; start over from the paper's step where a direction fails."""
    memory = _Memory(min(1.0, 1 / (problem.p - 1)) if problem.p > 1 else 1.0)
    F, here = problem.X, problem.at(problem.X)
    history = [here.value]
    goal = tol * float(here.gradient.norm())
    while float(here.gradient.norm()) > goal and len(history) <= max_iter:
        inverse = 1 / (problem.p * here.inverse_alpha[:, None])
        found = _search(problem, F, here, memory.direction(here.gradient, inverse))
        if found is None and memory.pairs:
            memory.pairs.clear()
            continue
        if found is None:
            break
        step, there = found
        memory.add(step, there.gradient - here.gradient)
        F, here = F + step, there
        history.append(here.value)
    slope = float(here.gradient.norm())
    residual = slope * tol / goal if goal > 0 else 0.0
    return F, SolveInfo(len(history) - 1, residual, here.value, tuple(history), slope <= goal)


def _search(problem: _Problem, F: Tensor, here: _Point, direction: Tensor) -> tuple[Tensor, _Point] | None:
    """Halve the step until the objective falls as it should; None if it never does."""
    slope = float((here.gradient * direction).sum())
    omega = 1.0
    while slope < 0 and omega > _SMALLEST_OMEGA:
        there = problem.at(F + omega * direction)
        if there.value <= here.value * (1 + _ROUNDING) + _ARMIJO * omega * slope:
            return omega * direction, there
        omega /= 2
    return None


def _power(base: float, exponent: float) -> float:
    """base^exponent, held within the range of numbers."""
    return math.exp(min(max(exponent * math.log(base), -700.0), 700.0))


def _check(
    x: Tensor, graph: Graph, p: float, mu: float, tol: float, eps: float | None, max_iter: int
) -> None:
    if not isinstance(graph, Graph):
        raise InputError(f"graph must be a plap.Graph, not {type(graph).__name__}")
    if not isinstance(x, Tensor) or x.dtype not in (torch.float32, torch.float64):
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"x must be a float32 or float64 tensor, not {kind}")
    if x.ndim not in (1, 2) or x.shape[0] != graph.num_nodes:
        n = graph.num_nodes
        raise InputError(f"x must have shape [{n}] or [{n}, C], a row for each node, not {list(x.shape)}")
    if x.device != graph.device:
        raise InputError(f"x is on {x.device} but graph is on {graph.device}")
    if not bool(torch.isfinite(x).all()):
        where = (~torch.isfinite(x)).nonzero()[0].tolist()
        raise InputError(f"x{where} = {float(x[tuple(where)])} is not finite")
    if not (math.isfinite(p) and p >= 1):
        raise InputError(f"p must be at least 1 and finite, not {p!r}")
    for name, value in (("mu", mu), ("tol", tol), ("eps", eps)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} must be positive and finite, not {value!r}")
    if max_iter < 0:
        raise InputError(f"max_iter must be 0 or more, not {max_iter!r}")
