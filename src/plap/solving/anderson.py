"""Anderson's acceleration of the paper's iteration."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor

from plap.solving.descent import plain_step
from plap.solving.problem import Point, Problem

_MEMORIES = 8


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
