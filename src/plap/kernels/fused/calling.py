"""How compiled loops are called: on PyTorch's own threads, with rows of channels in blocks. Without Numba.

Numba's thread pool beside PyTorch's would be two pools that spin on the same cores and take them from each
other for a scheduler's quantum at a time. PyTorch's OpenMP runtime is already in the process, so its entry
point for a parallel region is called directly; where there is none, Python threads do the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path

import torch

BLOCK = 8
"""Channels of a row as the kernels store it come in multiples of this."""

_RUNTIMES = ("libgomp", "libiomp5", "libomp")

TaskLoop = Callable[[int], None]
"""A C function of one pointer that takes tasks from a shared counter until none is left."""


def run(loop: TaskLoop, address: int, argument: int, threads: int) -> None:
    """Call ``loop(argument)`` once on each of ``threads`` threads and wait for all of them.

    ``loop`` is a ctypes function (it releases the GIL) and ``address`` where its code is.
    """
    fork = _openmp_fork()
    if threads == 1:
        loop(argument)
    elif fork is not None:
        fork(address, argument, threads, 0)
    else:
        parts = [_pool(threads).submit(loop, argument) for _ in range(threads)]
        try:
            for part in parts:
                part.result()
        finally:
            wait(parts)  # nobody may still write when the arrays are freed


def compiled_for(device: torch.device) -> bool:
    """Whether tensors of this device are worked on by compiled loops."""
    return device.type == "cpu"


def count(work: int, grain: int) -> int:
    """How many of PyTorch's threads are worth waking for ``work`` units, ``grain`` of them per thread."""
    return max(1, min(torch.get_num_threads(), work // grain))


def layout(channels: int) -> tuple[int, int]:
    """Number of blocks and lanes per block of a row: the padding and the number of blocks are what costs.

    Examples
    --------
    >>> layout(16), layout(33)
    ((1, 16), (3, 16))
    """
    sizes = (BLOCK, 2 * BLOCK, 4 * BLOCK, 8 * BLOCK)
    lanes = min(sizes, key=lambda size: -(-channels // size) * (size + BLOCK))
    return max(1, -(-channels // lanes)), lanes


def padded(channels: int) -> int:
    """Channels of a row as the kernels store it.

    Examples
    --------
    >>> padded(5)
    8
    """
    blocks, lanes = layout(channels)
    return blocks * lanes


@cache
def _openmp_fork() -> Callable[[int, int, int, int], None] | None:
    """``GOMP_parallel`` of the runtime that PyTorch loaded; LLVM's and Intel's runtimes have it too."""
    library = Path(torch.__file__).parent / "lib"
    for name in _RUNTIMES:
        for path in sorted(library.glob(f"{name}*")):
            fork = getattr(ctypes.CDLL(str(path)), "GOMP_parallel", None)
            if fork is not None:
                fork.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
                fork.restype = None
                return fork  # type: ignore[no-any-return]
    return None


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="plap")
