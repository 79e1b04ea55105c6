"""The paper's own iteration."""

from __future__ import annotations

from torch import Tensor

from plap.solving.descent import plain_step
from plap.solving.problem import Point, Problem


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
