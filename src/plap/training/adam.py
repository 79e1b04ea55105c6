"""Adam for many runs at once, each with its own learning rate and weight decay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.kernels.jit import compiled
from plap.training.native import Loop, arguments_of, array_at, launch, next_task, task_loop

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


class StackedAdam:
    """``torch.optim.Adam`` with its defaults and L2 weight decay, on parameters of shape [R, ...].

    A run whose gradient is not finite keeps its parameters and moments in that step: one overflow must
    neither end it in NaN nor touch its batch-mates.

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
        finite = sum(gradient.flatten(1).sum(1, dtype=torch.float64) for gradient in gradients)
        taken = torch.isfinite(torch.as_tensor(finite)).numpy()
        self._steps += taken
        scalars = self._scalars(taken)
        for value, gradient, first, second in zip(
            self.parameters, gradients, self._first, self._second, strict=True
        ):
            runs, size = value.shape[0], math.prod(value.shape[1:])
            launch(
                _loop(value.dtype == torch.float64), 2 * runs * size, runs, size, value.data_ptr(),
                gradient.data_ptr(), first.data_ptr(), second.data_ptr(), scalars.ctypes.data,
            )  # fmt: skip

    def keep(self, runs: Tensor) -> list[Tensor]:
        """Go on with these runs only; returns the parameters, which are other tensors now."""
        for tensors in (self.parameters, self._first, self._second):
            tensors[:] = [value[runs].contiguous() for value in tensors]
        index = runs.numpy()
        self._lr, self._weight_decay = self._lr[index], self._weight_decay[index]
        self._steps = self._steps[index]
        return self.parameters

    def _scalars(self, taken: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Weight decay, step size and root of the second bias correction; a negative one means no step."""
        steps = np.maximum(self._steps, 1)
        size = self._lr / (1 - _BETA1**steps)
        root = np.where(taken, np.sqrt(1 - _BETA2**steps), -1.0)
        return np.stack([self._weight_decay, size, root], axis=1)


@compiled
def _update(
    value: Any, gradient: Any, first: Any, second: Any, decay: Any, size: Any, root: Any, real: Any
) -> None:
    decay, size, root, eps = real(decay), real(size), real(root), real(_EPS)
    lag1, lag2, keep2 = real(1 - _BETA1), real(1 - _BETA2), real(_BETA2)
    for k in range(value.size):
        g = gradient[k] + decay * value[k]
        m = first[k] + lag1 * (g - first[k])
        v = keep2 * second[k] + lag2 * g * g
        first[k] = m
        second[k] = v
        value[k] -= size * (m / (np.sqrt(v) / root + eps))


@cache
def _loop(double: bool) -> Loop:
    real = np.float64 if double else np.float32
    width = 8 if double else 4

    def update(address: Any) -> None:
        call = arguments_of(address, 8)
        runs, size = call[1], call[2]
        scalars = array_at(call[7], 3 * runs, np.float64)
        run = next_task(call)
        while run < runs:
            at = run * size * width
            decay, step, root = scalars[3 * run], scalars[3 * run + 1], scalars[3 * run + 2]
            if root > 0:
                value, gradient = array_at(call[3] + at, size, real), array_at(call[4] + at, size, real)
                first, second = array_at(call[5] + at, size, real), array_at(call[6] + at, size, real)
                _update(value, gradient, first, second, decay, step, root, real)
            run = next_task(call)

    return task_loop(update)
