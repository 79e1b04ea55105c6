"""Dropout masks that are a pure function of (run's seed, epoch, layer): any batch draws the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15
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
    from plap.training.native import launch  # noqa: PLC0415  (Numba takes a second to import)
    from plap.training.native_loops import mask_loop  # noqa: PLC0415

    keys = mask_keys(seeds, epoch, layer)
    runs = keys.shape[0]
    result = rates.new_empty(runs, size)
    thresholds = (rates.double() * 65536).round().to(torch.int64)
    scales = (1 / (1 - rates.double())).to(rates.dtype)
    launch(
        mask_loop(rates.dtype == torch.float64), runs * size // 4, runs, size,
        keys.ctypes.data, thresholds.data_ptr(), scales.data_ptr(), result.data_ptr(),
    )  # fmt: skip
    return result


def mask_keys(seeds: np.ndarray[Any, Any], epoch: int, layer: int) -> np.ndarray[Any, Any]:
    """One 64-bit key a run, by hashing seed, epoch and layer in turn."""
    with np.errstate(over="ignore"):
        key = scramble(seeds.astype(np.uint64) + np.uint64(GOLDEN))
        key = scramble(key ^ np.uint64(epoch + 1))
        result: np.ndarray[Any, Any] = scramble(key ^ np.uint64((layer + 1) << 32))
    return result


def scramble(z: Any) -> Any:
    """SplitMix64's output function."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))
