"""What :func:`plap.solve` tells about its work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolveInfo:
    """How a solution was found."""

    iterations: int
    """Steps taken."""
    residual: float
    """‖∇L(F)‖ / ‖∇L(X)‖ at the result."""
    objective: float
    """The objective at the result, Eq. 8."""
    history: tuple[float, ...]
    """What is minimised, at X and after every step; it never rises. For p < 2 it counts edge norms below eps
    by a parabola (Huber's rule) and so lies slightly above Eq. 8."""
    converged: bool
    """Whether the residual came down to the tolerance."""
    edge_passes: int
    """Walks over all edges, which is what the time goes into: one for each gradient (with its objective), one
    for each product with the Hessian, and for p < 2 one to choose eps where none is given."""
    method: str
    """The method that was used, never "auto"."""
    convex: bool = True
    """Whether the penalty is convex, so that the result is the one minimiser. Otherwise it is a stationary
    point below X, and there may be others."""
