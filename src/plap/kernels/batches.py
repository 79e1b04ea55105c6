"""Batches of consecutive rows, and the neighbours that are about to be met."""

from __future__ import annotations

from typing import Any

import numpy as np

from plap.kernels.jit import inlined

AHEAD = 16
"""How many entries before its use a neighbour's row is asked for."""

ONE = np.uint64(1)
TWO = np.uint64(2)


@inlined
def batch_end(indptr: Any, first: Any, hi: Any, batch: Any) -> Any:
    """The row after the last one of the batch that begins with row ``first``."""
    end = first + ONE
    while end < hi and np.uint64(indptr[end + ONE]) - np.uint64(indptr[first]) <= batch:
        end += ONE
    return end


@inlined
def later(indices: Any, e: Any) -> Any:
    """The neighbour that is met :data:`AHEAD` entries after entry ``e``."""
    return np.uint64(indices[min(e + np.uint64(AHEAD), np.uint64(indices.size) - ONE)])
