"""Adam for many runs at once, each with its own learning rate and weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.training.config import ADAM_BETA1, ADAM_BETA2, ADAM_EPS
from plap.training.native import adam_update


class Moments(NamedTuple):
    """Adam's state for one parameter [R, ...]."""

    first: Tensor
    """Running mean of the gradient."""
    second: Tensor
    """Running mean of its square."""
    steps: Tensor
    """int64 [R]: steps taken by each run."""


class StackedAdam:
    """``torch.optim.Adam`` with its defaults and L2 weight decay, on parameters of shape [R, ...].

    A run whose gradient is not finite skips that step and keeps its parameters and moments: one overflow
    neither turns the run into NaN nor affects the other runs of the batch.

    Parameters
    ----------
    parameters : Tensors of shape [R, ...]
        Changed in place by :meth:`step`.
    lr, weight_decay : Tensor, shape [R], float64
    """

    def __init__(self, parameters: Sequence[Tensor], lr: Tensor, weight_decay: Tensor) -> None:
        self.parameters = list(parameters)
        self._first = [torch.zeros_like(value) for value in self.parameters]
        self._second = [torch.zeros_like(value) for value in self.parameters]
        self._lr, self._weight_decay = lr.double().numpy(), weight_decay.double().numpy()
        self._steps = np.zeros(lr.shape[0], dtype=np.int64)

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Change the parameters by their gradients, of the same shapes."""
        gradients = [gradient.contiguous() for gradient in gradients]
        sums = [gradient.unsqueeze(1).flatten(1).sum(1, dtype=torch.float64) for gradient in gradients]
        taken = torch.isfinite(torch.stack(sums).sum(0)).cpu().numpy()
        self._steps += taken
        update = adam_update if gradients[0].device.type == "cpu" else _update
        scalars = self._scalars(taken)
        for value, gradient, first, second in zip(
            self.parameters, gradients, self._first, self._second, strict=True
        ):
            update(value, gradient, first, second, scalars)

    def keep(self, runs: Tensor) -> list[Tensor]:
        """Continue with these runs only; returns the parameters, which are new tensors."""
        for tensors in (self.parameters, self._first, self._second):
            tensors[:] = [value[runs].contiguous() for value in tensors]
        index = runs.numpy()
        self._lr, self._weight_decay = self._lr[index], self._weight_decay[index]
        self._steps = self._steps[index]
        return self.parameters

    def state(self) -> list[Moments]:
        """Moments and number of steps of each parameter, in order; not copies."""
        steps = torch.from_numpy(self._steps)
        return [Moments(*values, steps) for values in zip(self._first, self._second, strict=True)]

    def load_state(self, moments: Sequence[Moments]) -> None:
        """Continue from what :meth:`state` returned."""
        for k, (first, second, steps) in enumerate(moments):
            self._first[k].copy_(first)
            self._second[k].copy_(second)
            self._steps[:] = steps.numpy()

    def _scalars(self, taken: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Weight decay, step size and root of the second bias correction [R, 3]; a negative root: no step."""
        steps = np.maximum(self._steps, 1)
        size = self._lr / (1 - ADAM_BETA1**steps)
        root = np.where(taken, np.sqrt(1 - ADAM_BETA2**steps), -1.0)
        return np.stack([self._weight_decay, size, root], axis=1)


def _update(
    value: Tensor, gradient: Tensor, first: Tensor, second: Tensor, scalars: np.ndarray[Any, Any]
) -> None:
    """The same step by PyTorch, on any device."""
    shape = (-1, *[1] * (value.ndim - 1))
    columns = torch.from_numpy(scalars).to(value.device, value.dtype).unbind(1)
    decay, size, root = (column.view(shape) for column in columns)
    taken = root > 0
    gradient = torch.where(taken, gradient + decay * value, 0)
    first.copy_(torch.where(taken, first.lerp(gradient, 1 - ADAM_BETA1), first))
    second.copy_(torch.where(taken, ADAM_BETA2 * second + (1 - ADAM_BETA2) * gradient.square(), second))
    step = size * first / (second.sqrt() / root + ADAM_EPS)
    value.sub_(torch.where(taken, step, 0))
