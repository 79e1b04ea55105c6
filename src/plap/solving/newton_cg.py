"""Newton's method with truncated conjugate gradients."""

from __future__ import annotations

from torch import Tensor

from plap.solving.conjugate_gradients import conjugate_gradients
from plap.solving.problem import Point, Problem

_LARGEST_FORCING = 0.5
_MOST_PRODUCTS = 200


class NewtonCG:
    """H d = −∇L, solved more accurately the closer the end is: to (‖∇L(F)‖ / ‖∇L(X)‖)^½.

    This forcing (Dembo, Eisenstat and Steihaug, 1982) converges superlinearly where H is continuous. For
    p = 2 the objective is quadratic, and one system is solved to the tolerance. H ≥ 2μ, so every step
    descends.
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
        step, _ = conjugate_gradients(
            lambda v: self.problem.hessian_product(here.F, v),
            -here.gradient,
            here.metric,
            max(forcing, last),
            _MOST_PRODUCTS,
        )
        return step

    def learn(self, before: Point, after: Point) -> None:
        """Do nothing: every step is made from the current point alone."""

    def forget(self) -> None:
        """Do nothing: every step is made from the current point alone."""
