"""Newton's method with truncated conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from plap.solving.descent import plain_step
from plap.solving.problem import Point, Problem

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
