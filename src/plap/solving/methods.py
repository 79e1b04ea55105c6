"""Methods of descent: the paper's iteration, Anderson's acceleration, Newton's method and L-BFGS.

What all share is the guard that no step may raise the objective.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from plap.solving.problem import Point, Problem

ROUNDING = 1e-13
"""Relative increase of the objective that counts as rounding, not as ascent."""

_ROUNDED_GRADIENT = 1e-15
"""A gradient of this size relative to metric × X is rounding: X itself is stationary."""

_ARMIJO = 1e-4
_SMALLEST_OMEGA = 2.0**-30


class Method(Protocol):
    """Proposes the next step, and learns from the steps that were taken."""

    def direction(self, here: Point) -> Tensor:
        """The step that the method proposes from here."""

    def learn(self, before: Point, after: Point) -> None:
        """Learn from a step that was taken."""

    def forget(self) -> None:
        """Start over: no step along the last direction lowered the objective."""


def plain_step(here: Point, omega: float) -> Tensor:
    """The step of Eq. 11-13 from here, F' − F, times omega."""
    return here.gradient / here.metric * -omega


def descend(
    problem: Problem, method: Method, tol: float, max_iter: int
) -> tuple[Point, tuple[float, ...], float]:
    """Descend until ‖∇L‖ ≤ tol ‖∇L(X)‖, no lower point is found, or max_iter steps were taken.

    Returns
    -------
    The last point, the objective at X and after every step, and ‖∇L‖ / ‖∇L(X)‖ at the last point, which is
    infinite if the objective at X is not a finite number.
    """
    here = problem.at(problem.X)
    start = _norm(here.gradient)
    history = [here.value]
    if not math.isfinite(here.value):
        return here, tuple(history), math.inf
    if start <= _ROUNDED_GRADIENT * _norm(here.metric * problem.X):
        return here, tuple(history), 0.0
    while _norm(here.gradient) > tol * start and len(history) <= max_iter:
        there = _search(problem, here, method.direction(here))
        if there is None:
            method.forget()
            there = _search(problem, here, plain_step(here, problem.damping))
        if there is None:
            break
        method.learn(here, there)
        here = there
        history.append(here.value)
    residual = _norm(here.gradient) / start if start > 0 else 0.0
    return here, tuple(history), residual


def _norm(v: Tensor) -> float:
    """‖v‖, also where its square is beyond the range of numbers."""
    norm = float(v.norm())
    if math.isfinite(norm):
        return norm
    largest = float(v.abs().amax())
    return largest * float((v / largest).norm()) if math.isfinite(largest) else math.inf


def _search(problem: Problem, here: Point, direction: Tensor) -> Point | None:
    """Halve the step until the objective falls as it should; None if it never does."""
    slope = float((here.gradient * direction).sum())
    omega = 1.0
    while slope < 0 and omega > _SMALLEST_OMEGA:
        there = problem.at(here.F + omega * direction)
        if there.value <= here.value * (1 + ROUNDING) + _ARMIJO * omega * slope:
            return there
        omega /= 2
    return None


class Jacobi:
    """Eq. 11-13, damped by 1/(p−1) for p > 2: gradient descent in the metric P_i = p Σ_j M_ij / D_i + 2μ.

    For p ≤ 2 the objective falls by μ ‖F' − F‖² at least, so the guard never acts.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.omega = problem.damping

    def direction(self, here: Point) -> Tensor:
        """F' − F."""
        return plain_step(here, self.omega)

    def learn(self, before: Point, after: Point) -> None:
        """Do nothing: every step is made from the current point alone."""

    def forget(self) -> None:
        """Do nothing: every step is made from the current point alone."""


_MEMORIES = 8
"""Steps that Anderson's acceleration and L-BFGS remember."""


class Anderson:
    """Anderson (1965) in its difference form, as Walker and Ni (2011) write it, on F → F + ω (F' − F).

    The last steps are combined so that the residual F' − F of the combination, were the iteration linear,
    would be smallest in the norm of the metric; the step goes there and on by that residual.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.omega = problem.damping
        self.pairs: deque[tuple[Tensor, Tensor]] = deque(maxlen=_MEMORIES)

    def direction(self, here: Point) -> Tensor:
        """The accelerated step."""
        residual = plain_step(here, self.omega)
        if not self.pairs:
            return residual
        steps = torch.stack([step.reshape(-1) for step, _ in self.pairs], dim=1)
        changes = torch.stack([change.reshape(-1) for _, change in self.pairs], dim=1)
        weight = here.metric.sqrt().expand_as(residual).reshape(-1, 1)
        right = weight * residual.reshape(-1, 1)
        shares = torch.linalg.lstsq(weight * changes, right, driver="gelsy").solution
        best: Tensor = (steps + changes) @ shares
        return residual - best.reshape(residual.shape)

    def learn(self, before: Point, after: Point) -> None:
        """Keep the step and the change of the residual along it."""
        change = plain_step(after, self.omega) - plain_step(before, self.omega)
        self.pairs.append((after.F - before.F, change))

    def forget(self) -> None:
        """Drop all steps."""
        self.pairs.clear()


_LARGEST_FORCING = 0.5
_MOST_PRODUCTS = 200


class NewtonCG:
    """H d = −∇L, solved more accurately the closer the end is: to (‖∇L(F)‖ / ‖∇L(X)‖)^½.

    This forcing (Dembo, Eisenstat and Steihaug, 1982) converges superlinearly where H is continuous. For
    p = 2 the objective is quadratic, and one system is solved to the tolerance. If the penalty is convex,
    H ≥ 2μ, so every step descends; otherwise a step ends where it meets negative curvature (Steihaug, 1983).
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.start: float | None = None

    def direction(self, here: Point) -> Tensor:
        """Newton's step, approximately."""
        slope = float(here.gradient.norm())
        self.start = self.start or slope
        last = 0.5 * self.tol * self.start / slope
        forcing = min(_LARGEST_FORCING, (slope / self.start) ** 0.5) if self.problem.p != 2 else last
        try:
            step, _ = conjugate_gradients(
                lambda v: self.problem.hessian_product(here.F, v),
                -here.gradient,
                here.metric,
                max(forcing, last),
                _MOST_PRODUCTS,
            )
        except IndefiniteError as error:
            return error.so_far if bool(error.so_far.any()) else plain_step(here, self.problem.damping)
        return step

    def learn(self, before: Point, after: Point) -> None:
        """Do nothing: every step is made from the current point alone."""

    def forget(self) -> None:
        """Do nothing: every step is made from the current point alone."""


class IndefiniteError(Exception):
    """H is not positive definite; ``so_far`` is the solution until this was noticed."""

    def __init__(self, so_far: Tensor) -> None:
        super().__init__("the matrix is not positive definite")
        self.so_far = so_far


def conjugate_gradients(
    product: Callable[[Tensor], Tensor], target: Tensor, metric: Tensor, tol: float, max_iter: int
) -> tuple[Tensor, float]:
    """Solve H z = target by conjugate gradients with a diagonal preconditioner (Saad, Algorithm 9.1).

    Parameters
    ----------
    product : function
        v → H v, with H symmetric. IndefiniteError is raised on meeting a direction along which H is not
        positive.
    target : Tensor
        If it is not finite, the result is NaN.
    metric : Tensor
        The diagonal of the preconditioner, of a shape that broadcasts to that of the target.
    tol : float
        Stop where ‖target − H z‖ ≤ tol ‖target‖.
    max_iter : int
        Largest number of products.

    Returns
    -------
    z : Tensor
    residual : float
        ‖target − H z‖ / ‖target‖ as the recursion computes it.

    Examples
    --------
    >>> diagonal = torch.tensor([2.0, 4.0])
    >>> z, _ = conjugate_gradients(lambda v: diagonal * v, torch.ones(2), torch.ones(2), 1e-6, 10)
    >>> z
    tensor([0.5000, 0.2500])
    """
    size = float(target.norm())
    if not math.isfinite(size):
        return torch.full_like(target, math.nan), math.nan
    z, rest = torch.zeros_like(target), target.clone()
    direction = rest / metric
    along = float((rest * direction).sum())
    for _ in range(max_iter):
        if float(rest.norm()) <= tol * size:
            break
        image = product(direction)
        curvature = float((direction * image).sum())
        if curvature <= 0:
            raise IndefiniteError(z)
        length = along / curvature
        z.add_(direction, alpha=length)
        rest.sub_(image, alpha=length)
        scaled = rest / metric
        before, along = along, float((rest * scaled).sum())
        direction = scaled.add_(direction, alpha=along / before)
    return z, float(rest.norm()) / size if size > 0 else 0.0


class LBFGS:
    """Directions of L-BFGS (Nocedal and Wright, Algorithm 7.4) that start from the paper's step.

    Without memories the direction is that step, −P^-1 ∇L, times ω; with memories the initial matrix is P^-1
    times the curvature of the last step in this metric.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.omega = problem.damping
        self.pairs: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=_MEMORIES)

    def direction(self, here: Point) -> Tensor:
        """The two-loop recursion over the remembered steps."""
        q, shares, scale = here.gradient.clone(), [], self.omega
        for step, change, product in reversed(self.pairs):
            shares.append(float((step * q).sum()) / product)
            q.sub_(change, alpha=shares[-1])
        if self.pairs:
            _, change, product = self.pairs[-1]
            scale = product / float((change.square() / here.metric).sum())
        q.mul_(scale).div_(here.metric)
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            q.add_(step, alpha=share - float((change * q).sum()) / product)
        return q.neg_()

    def learn(self, before: Point, after: Point) -> None:
        """Remember a step and what it did to the gradient, if the curvature along it can be trusted."""
        step, change = after.F - before.F, after.gradient - before.gradient
        product = float((step * change).sum())
        if product > 1e-12 * float(step.norm()) * float(change.norm()):
            self.pairs.append((step, change, product))

    def forget(self) -> None:
        """Drop all remembered steps."""
        self.pairs.clear()
