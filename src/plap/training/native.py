"""Hot loops over runs as machine code: tasks taken from a counter by PyTorch's own threads.

A loop gets one array of int64: slot 0 is the counter of tasks, the rest are sizes and addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray

from plap.kernels.fused import threads
from plap.kernels.fused.jit import c_function, compiled, next_ticket, pointer

_GRAIN = 100_000
"""Multiplications that are worth a thread of their own."""

Loop = tuple[threads.TaskLoop, int]


def task_loop(function: Callable[[Any], None]) -> Loop:
    """A task loop as a C function that releases the GIL, and its address."""
    code = c_function(function)
    return code.ctypes, code.address


def launch(loop: Loop, work: int, *arguments: int) -> None:
    """Run ``loop`` on as many threads as ``work`` is worth, with the counter and ``arguments``."""
    call = np.array([0, *arguments], dtype=np.int64)
    threads.run(*loop, call.ctypes.data, threads.count(work, _GRAIN))


def workers(work: int) -> int:
    """How many threads :func:`launch` would use."""
    return threads.count(work, _GRAIN)


@compiled
def arguments_of(address: Any, count: Any) -> Any:
    """The array that a loop was given."""
    return carray(address, (count,), np.int64)


@compiled
def next_task(call: Any) -> Any:
    """The number of the next task for this thread."""
    return next_ticket(call)


@compiled
def array_at(address: Any, size: Any, dtype: Any) -> Any:
    """``size`` numbers from ``address`` on."""
    return carray(pointer(np.uint64(address)), (size,), dtype)
