"""Adam for many runs at once, each with its own learning rate and weight decay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.kernels.fused.calling import compiled_for
from plap.training.config import ADAM_BETA1, ADAM_BETA2, ADAM_EPS
from plap.training.devices import wide
from plap.training.native import adam_step


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
        self._there = None if compiled_for(self.parameters[0].device) else self._columns()
        self._table = self._addresses()

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Change the parameters by their gradients, of the same shapes."""
        gradients = [gradient.contiguous() for gradient in gradients]
        if self._there is None:
            scalars = self._scalars(self._steps + 1)
            self._table[:, 1] = [gradient.data_ptr() for gradient in gradients]
            self._steps += adam_step(self._table, scalars, double=gradients[0].dtype == torch.float64)
            return
        exact = wide(gradients[0].device)
        sums = [gradient.unsqueeze(1).flatten(1).sum(1, dtype=exact) for gradient in gradients]
        taken = torch.isfinite(torch.stack(sums).sum(0))
        columns = self._there.after(taken)
        for value, gradient, first, second in zip(
            self.parameters, gradients, self._first, self._second, strict=True
        ):
            _update(value, gradient, first, second, taken, *columns)

    def keep(self, runs: Tensor) -> list[Tensor]:
        """Continue with these runs only; returns the parameters, which are new tensors."""
        for tensors in (self.parameters, self._first, self._second):
            tensors[:] = [value[runs].contiguous() for value in tensors]
        index = runs.cpu().numpy()
        self._lr, self._weight_decay = self._lr[index], self._weight_decay[index]
        self._steps = self._steps[index]
        self._table = self._addresses()
        if self._there is not None:
            self._there = _Columns(*(column[runs] for column in self._there))
        return self.parameters

    def state(self) -> list[Moments]:
        """Moments and number of steps of each parameter, in order; not copies."""
        steps = torch.from_numpy(self._steps) if self._there is None else self._there.steps.long().cpu()
        return [Moments(*values, steps) for values in zip(self._first, self._second, strict=True)]

    def load_state(self, moments: Sequence[Moments]) -> None:
        """Continue from what :meth:`state` returned."""
        for k, (first, second, steps) in enumerate(moments):
            self._first[k].copy_(first)
            self._second[k].copy_(second)
            self._steps[:] = steps.numpy()
        if self._there is not None:
            self._there = self._columns()

    def _columns(self) -> _Columns:
        device = self.parameters[0].device
        columns = (torch.from_numpy(part) for part in (self._lr, self._weight_decay, self._steps))
        return _Columns(*(column.to(device, wide(device)) for column in columns))

    def _addresses(self) -> np.ndarray[Any, Any]:
        """What :func:`plap.training.native.adam_step` is given, without the gradients."""
        tensors = zip(self.parameters, self._first, self._second, strict=True)
        rows = [
            (value.data_ptr(), 0, first.data_ptr(), second.data_ptr(), math.prod(value.shape[1:]))
            for value, first, second in tensors
        ]
        return np.array(rows, dtype=np.int64)

    def _scalars(self, steps: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Weight decay, step size and root of the second bias correction of every run [R, 3]."""
        columns = np.empty((steps.shape[0], 3))
        columns[:, 0] = self._weight_decay
        columns[:, 1] = self._lr / (1 - ADAM_BETA1**steps)
        columns[:, 2] = np.sqrt(1 - ADAM_BETA2**steps)
        return columns


class _Columns(NamedTuple):
    """What differs from run to run, on the device: floats [R]."""

    lr: Tensor
    decay: Tensor
    steps: Tensor

    def after(self, taken: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Count a step of the runs ``taken``; returns weight decay, step size, root of the correction."""
        self.steps.add_(taken)
        steps = self.steps.clamp(min=1)
        return self.decay, self.lr / (1 - ADAM_BETA1**steps), (1 - ADAM_BETA2**steps).sqrt()


def _update(
    value: Tensor, gradient: Tensor, first: Tensor, second: Tensor, taken: Tensor, *scalars: Tensor
) -> None:
    """The same step by PyTorch, on any device."""
    shape = (-1, *[1] * (value.ndim - 1))
    decay, size, root = (column.to(value.dtype).view(shape) for column in scalars)
    taken = taken.view(shape)
    gradient = torch.where(taken, gradient + decay * value, 0)
    first.copy_(torch.where(taken, first.lerp(gradient, 1 - ADAM_BETA1), first))
    second.copy_(torch.where(taken, ADAM_BETA2 * second + (1 - ADAM_BETA2) * gradient.square(), second))
    step = size * first / (second.sqrt() / root + ADAM_EPS)
    value.sub_(torch.where(taken, step, 0))
