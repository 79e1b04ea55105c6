"""Descent step by step: what all methods share is the guard that no step may raise the objective."""

from __future__ import annotations

from typing import Protocol

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
    The last point, the objective at X and after every step, and ‖∇L‖ / ‖∇L(X)‖ at the last point.
    """
    here = problem.at(problem.X)
    start = float(here.gradient.norm())
    history = [here.value]
    if start <= _ROUNDED_GRADIENT * float((here.metric * problem.X).norm()):
        return here, tuple(history), 0.0
    while float(here.gradient.norm()) > tol * start and len(history) <= max_iter:
        there = _search(problem, here, method.direction(here))
        if there is None:
            method.forget()
            there = _search(problem, here, plain_step(here, problem.damping))
        if there is None:
            break
        method.learn(here, there)
        here = there
        history.append(here.value)
    residual = float(here.gradient.norm()) / start if start > 0 else 0.0
    return here, tuple(history), residual


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
