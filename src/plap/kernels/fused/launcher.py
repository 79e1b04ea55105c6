"""How the passes of :mod:`plap.kernels.row_passes` run here: Numba's row loops on PyTorch's threads."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import torch
from torch import Tensor

from plap.kernels.fused import calling
from plap.kernels.fused.calling import BLOCK, layout, padded
from plap.kernels.fused.graph_rows import cut_rows, inverse_root, reach_of
from plap.kernels.fused.penalty_functions import edge_loop
from plap.kernels.fused.task_loops import Call, task_loop
from plap.kernels.penalty_code import POWER, place_of
from plap.kernels.row_passes import AllSteps, Kernels, Rule, Wanted

_GRAIN = 10_000
"""Entries of 16 channels that are worth waking a thread for: about a tenth of a millisecond."""

_CACHE = 32 * 1024
"""Bytes of neighbours' rows that a batch may touch: its second pass finds them in the nearest cache."""

_layout = cache(layout)  # not of symbolic sizes, which have no hash


class Launcher:
    """Runs compiled loops on PyTorch's threads; see :class:`plap.kernels.row_passes.Launcher`."""

    YZ_parts = 2

    def __init__(
        self, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor,
        mu: Tensor, omega: float, eps: float, rule: Rule, wanted: Wanted | None = None, *,
        only_x: bool = False,
    ) -> None:  # fmt: skip
        runs, nodes, channels = x.shape
        blocks, lanes = _layout(channels)
        entries = indices.shape[0]
        self._power = rule.penalty == POWER
        c = parameter.detach().numpy() if self._power else rule.c
        m = np.maximum(2 * mu.detach().numpy() / c, torch.finfo(x.dtype).tiny)
        s = inverse_root(degree, x.dtype)
        self._threads = calling.count(runs * (entries + 4 * nodes) * blocks * lanes // 16, _GRAIN)
        reach = None if wanted is None else reach_of(indptr, indices, weight, wanted.rows, wanted.K)
        cut = cut_rows(indptr, self._threads if runs < 8 * self._threads and reach is None else 1)
        chunks = cut.chunks.shape[0] - 1
        self._takes_runs = chunks == 1
        self._kernel = (lanes // BLOCK, x.dtype == torch.float64, indices.dtype == torch.int64)
        self._counter = ctypes.c_int64(0)
        self._alive = (cut, indptr, indices, weight, s, parameter, m, reach)
        call = self._call = Call()
        self._address = ctypes.addressof(call)
        call.counter = ctypes.addressof(self._counter)
        call.chunks = cut.chunks.data_ptr()
        call.indptr, call.indices = indptr.data_ptr(), indices.data_ptr()
        call.w, call.s, call.p, call.m = weight.data_ptr(), s.data_ptr(), parameter.data_ptr(), m.ctypes.data
        call.reach = 0 if reach is None else reach.table.data_ptr()
        call.runs, call.chunks_per_run, call.nodes, call.entries = runs, chunks, nodes, entries
        call.blocks, call.batch = blocks, max(64, _CACHE // (blocks * lanes * x.element_size()))
        call.room = max(call.batch, cut.longest)
        call.omega, call.eps2 = omega, eps * eps
        call.only_x = only_x and self._power and not rule.detach
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
        calling.run(loop, address, self._address, self._threads)

    @property
    def all_steps(self) -> AllSteps | None:
        """Where one task takes a whole run; not kept: a bound method keeps its launcher alive."""
        return self._all_steps if self._takes_runs else None

    def _all_steps(self, kernel: str, steps: int, *, flag: bool = False, **tensors: Tensor) -> None:
        """Run a kernel that takes all steps."""
        call = self._call
        call.steps, call.states, call.kept_alphas = steps, len(tensors["Y"]), len(tensors["alphas"])
        self(kernel, flag=flag, **tensors)


KERNELS = Kernels(Launcher, padded)
