"""L-BFGS in the metric of the paper's step."""

from __future__ import annotations

from collections import deque

from torch import Tensor

from plap.solving.problem import Point, Problem

_MEMORIES = 8


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
