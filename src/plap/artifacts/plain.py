"""Values as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def plain(value: Any) -> Any:
    """Only what JSON has: NaN and infinity become null, arrays and tensors lists, keys strings.

    Examples
    --------
    >>> plain({1: (np.float64(0.5), float("nan")), "x": torch.tensor([1, 2])})
    {'1': [0.5, None], 'x': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
