"""How the passes of :mod:`plap.kernels.row_passes` run here: Numba's row loops on PyTorch's threads."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.kernels.fused import threads
from plap.kernels.fused.layout import BLOCK, layout, padded
from plap.kernels.fused.penalty_functions import edge_loop
from plap.kernels.fused.task_loops import Call, task_loop
from plap.kernels.penalty_code import POWER, place_of
from plap.kernels.row_passes import Kernels, Rule

_GRAIN = 10_000
"""Entries of 16 channels that are worth waking a thread for: about a tenth of a millisecond."""

_CACHE = 32 * 1024
"""Bytes of neighbours' rows that a batch may touch: its second pass finds them in the nearest cache."""


class Launcher:
    """Runs compiled loops on PyTorch's threads; see :class:`plap.kernels.row_passes.Launcher`."""

    YZ_parts = 2

    def __init__(
        self, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor,
        mu: Tensor, omega: float, eps: float, rule: Rule,
    ) -> None:  # fmt: skip
        runs, nodes, channels = x.shape
        blocks, lanes = layout(channels)
        entries = indices.shape[0]
        c = parameter if rule.penalty == POWER else rule.c
        m = (2 * mu / c).clamp(min=torch.finfo(x.dtype).tiny)
        self._power = rule.penalty == POWER
        s = torch.where(degree > 0, degree.rsqrt(), 0.0).to(x.dtype)
        rows = indptr.numpy()
        self._threads = threads.count(runs * (entries + 4 * nodes) * blocks * lanes // 16, _GRAIN)
        chunks = _equal_chunks(rows, self._threads if runs < 8 * self._threads else 1)
        self._kernel = (lanes // BLOCK, x.dtype == torch.float64, indices.dtype == torch.int64)
        self._counter = ctypes.c_int64(0)
        self._alive = (chunks, indptr, indices, weight, s, parameter, m)
        call = self._call = Call()
        self._address = ctypes.addressof(call)
        call.counter = ctypes.addressof(self._counter)
        call.chunks = chunks.ctypes.data
        call.indptr, call.indices = indptr.data_ptr(), indices.data_ptr()
        call.w, call.s, call.p, call.m = weight.data_ptr(), s.data_ptr(), parameter.data_ptr(), m.data_ptr()
        call.runs, call.chunks_per_run, call.nodes, call.entries = runs, chunks.size - 1, nodes, entries
        call.blocks, call.batch = blocks, max(64, _CACHE // (blocks * lanes * x.element_size()))
        call.room = max(call.batch, int((rows[1:] - rows[:-1]).max(initial=0)))
        call.omega, call.eps2 = omega, eps * eps
        if not self._power:
            call.penalty = edge_loop(place_of(rule.penalty), x.dtype == torch.float64).address

    def __call__(self, kernel: str, *, flag: bool = False, **tensors: Tensor) -> None:
        """Run a kernel."""
        self._call.flag = flag
        for name, tensor in tensors.items():
            setattr(self._call, name, tensor.data_ptr())
        self._counter.value = 0
        power = self._power or kernel in ("scale", "prepare")  # these do not ask the penalty
        loop, address = task_loop(kernel, *self._kernel, power)
        threads.run(loop, address, self._address, self._threads)


def _equal_chunks(indptr: np.ndarray[Any, Any], workers: int) -> np.ndarray[Any, Any]:
    """Row ranges of about equal work: many small ones, so that no thread waits behind a hub."""
    nodes = indptr.size - 1
    if workers == 1:
        return np.array([0, nodes], dtype=np.int64)
    number = min(16 * workers, max(1, nodes))
    work = indptr.astype(np.int64) + 4 * np.arange(nodes + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], number + 1)[1:-1])
    return np.concatenate([[0], cuts, [nodes]]).astype(np.int64)


KERNELS = Kernels(Launcher, padded)
