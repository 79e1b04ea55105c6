"""Newton's method with truncated conjugate gradients."""

from __future__ import annotations

from torch import Tensor

from plap.solving.conjugate_gradients import IndefiniteError, conjugate_gradients
from plap.solving.descent import plain_step
from plap.solving.problem import Point, Problem

_LARGEST_FORCING = 0.5
_MOST_PRODUCTS = 200


class NewtonCG:
    """H d = −∇L, solved the better the nearer the end is: to the root of ‖∇L(F)‖ / ‖∇L(X)‖.

    This forcing (Dembo, Eisenstat and Steihaug, 1982) converges superlinearly where H is continuous. The
    objective of p = 2 is a parabola, and one system is solved to the end. H ≥ 2μ where the penalty is
    convex, so every step goes down; elsewhere a step ends where the curvature is negative (Steihaug, 1983).
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.start: float | None = None

    def direction(self, here: Point) -> Tensor:
        """About Newton's step."""
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
        """Nothing."""

    def forget(self) -> None:
        """Nothing."""
