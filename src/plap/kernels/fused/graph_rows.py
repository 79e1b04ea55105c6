"""What the loops need to know of a graph besides its arrays, found out once per graph.

Graphs never change, so what was found out is kept for as long as the graph's own arrays live.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.memo import Memo


class Cut(NamedTuple):
    """The rows of a graph in ranges of about equal work."""

    chunks: Tensor
    """Where the ranges begin, and where the last one ends; int64."""
    longest: int
    """Entries of the longest row."""


_CUTS: Memo[dict[int, Cut]] = Memo()
_ROOTS: Memo[dict[torch.dtype, Tensor]] = Memo()


def cut_rows(indptr: Tensor, workers: int) -> Cut:
    """Many small ranges for several workers, so that none waits behind a hub; one range for one worker."""
    known = _CUTS.get(indptr, dict)
    if workers not in known:
        rows = indptr.numpy()
        known[workers] = Cut(
            torch.from_numpy(_equal_chunks(rows, workers)), int((rows[1:] - rows[:-1]).max(initial=0))
        )
    return known[workers]


def inverse_root(degree: Tensor, dtype: torch.dtype) -> Tensor:
    """D^(-1/2), 0 for a node without edges."""
    known = _ROOTS.get(degree, dict)
    if dtype not in known:
        known[dtype] = torch.where(degree > 0, degree.rsqrt(), 0.0).to(dtype)
    return known[dtype]


def _equal_chunks(indptr: np.ndarray[Any, Any], workers: int) -> np.ndarray[Any, Any]:
    nodes = indptr.size - 1
    if workers == 1:
        return np.array([0, nodes], dtype=np.int64)
    number = min(16 * workers, max(1, nodes))
    work = indptr.astype(np.int64) + 4 * np.arange(nodes + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], number + 1)[1:-1])
    return np.concatenate([[0], cuts, [nodes]]).astype(np.int64)
