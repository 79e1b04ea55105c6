"""Dropout masks that are a pure function of (run's seed, epoch, layer): any batch draws the same ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.kernels.jit import compiled
from plap.training.native import Loop, arguments_of, array_at, launch, next_task, task_loop

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def dropout_masks(seeds: np.ndarray[Any, Any], epoch: int, layer: int, rates: Tensor, size: int) -> Tensor:
    """Masks of R runs, [R, size]: 0 with probability ``rates[r]``, otherwise 1 / (1 - ``rates[r]``).

    The bits are SplitMix64's: sixteen of them decide about an element, so a rate is exact to 1/65536.

    Parameters
    ----------
    seeds : array of uint64, shape [R]
    rates : Tensor, shape [R]
        Its dtype is that of the result.
    """
    keys = _keys(seeds, epoch, layer)
    runs = keys.shape[0]
    result = rates.new_empty(runs, size)
    thresholds = (rates.double() * 65536).round().to(torch.int64)
    scales = (1 / (1 - rates.double())).to(rates.dtype)
    loop = _loop(rates.dtype == torch.float64)
    launch(
        loop, runs * size // 4, runs, size,
        keys.ctypes.data, thresholds.data_ptr(), scales.data_ptr(), result.data_ptr(),
    )  # fmt: skip
    return result


def _keys(seeds: np.ndarray[Any, Any], epoch: int, layer: int) -> np.ndarray[Any, Any]:
    """One 64-bit key a run, by hashing seed, epoch and layer in turn."""
    with np.errstate(over="ignore"):
        key = _scramble(seeds.astype(np.uint64) + np.uint64(_GOLDEN))
        key = _scramble(key ^ np.uint64(epoch + 1))
        result: np.ndarray[Any, Any] = _scramble(key ^ np.uint64((layer + 1) << 32))
    return result


def _scramble(z: Any) -> Any:
    """SplitMix64's output function."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


_scramble_compiled = compiled(_scramble)


@compiled
def _fill(key: Any, threshold: Any, scale: Any, out: Any) -> None:
    zero = scale - scale
    quads = out.size // 4
    for quad in range(quads):
        bits = _scramble_compiled(key + np.uint64(quad + 1) * np.uint64(_GOLDEN))
        for lane in range(4):
            draw = (bits >> np.uint64(16 * lane)) & np.uint64(0xFFFF)
            out[4 * quad + lane] = scale if draw >= threshold else zero
    state = _scramble_compiled(key + np.uint64(quads + 1) * np.uint64(_GOLDEN))
    for at in range(4 * quads, out.size):
        draw = (state >> np.uint64(16 * (at - 4 * quads))) & np.uint64(0xFFFF)
        out[at] = scale if draw >= threshold else zero


@cache
def _loop(double: bool) -> Loop:
    real = np.float64 if double else np.float32

    def fill_masks(address: Any) -> None:
        call = arguments_of(address, 7)
        runs, size = call[1], call[2]
        keys = array_at(call[3], runs, np.uint64)
        thresholds = array_at(call[4], runs, np.uint64)
        scales = array_at(call[5], runs, real)
        run = next_task(call)
        while run < runs:
            out = array_at(call[6] + run * size * scales.itemsize, size, real)
            _fill(keys[run], thresholds[run], scales[run], out)
            run = next_task(call)

    return task_loop(fill_masks)
