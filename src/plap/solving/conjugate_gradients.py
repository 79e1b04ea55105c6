"""Linear systems with a positive matrix that is known by its products alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


class IndefiniteError(Exception):
    """H is not positive; ``so_far`` is the solution until this was noticed."""

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
        v → H v, with H symmetric. Raises IndefiniteError when it meets a direction along which H is not
        positive.
    target : Tensor
        Where it is not finite, nothing is solved and the result is NaN.
    metric : Tensor
        The diagonal of the preconditioner, of a shape that broadcasts to that of the target.
    tol : float
        Stop where ‖target − H z‖ ≤ tol ‖target‖.
    max_iter : int
        Products after which to give up.

    Returns
    -------
    z : Tensor
    residual : float
        ‖target − H z‖ / ‖target‖ as the recursion has it.

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
