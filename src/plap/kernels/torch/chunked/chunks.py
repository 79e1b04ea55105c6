"""A graph's entries in chunks of bounded size, and the rows that they belong to."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary


class Chunk(NamedTuple):
    """Entries from ``first`` to before ``end`` of a graph; their rows are ``top`` to before ``bottom``."""

    first: int
    end: int
    top: int
    bottom: int
    continues: bool
    """Whether row ``top`` began in the chunk before."""

    def receivers(self, indptr: Tensor) -> Tensor:
        """Row of every entry, counted from ``top``; int64, found without asking the device for anything."""
        starts = indptr[self.top : self.bottom].clamp(min=self.first)
        ends = indptr[self.top + 1 : self.bottom + 1].clamp(max=self.end)
        return torch.repeat_interleave((ends - starts).long(), output_size=self.end - self.first)


_KNOWN: WeakIdKeyDictionary = WeakIdKeyDictionary()
"""Chunks by ``indptr`` and size; a graph never changes, so they are true for as long as it lives."""


def chunks(indptr: Tensor, entries: int, size: int) -> tuple[Chunk, ...]:
    """All of a graph's entries, ``size`` at a time; a row may go on in the next chunk.

    Examples
    --------
    >>> [tuple(chunk) for chunk in chunks(torch.tensor([0, 3, 3, 5]), 5, size=2)]
    [(0, 2, 0, 1, False), (2, 4, 0, 3, True), (4, 5, 2, 3, True)]
    """
    known = _KNOWN.setdefault(indptr, {})
    if size not in known:
        known[size] = _cut(indptr, entries, size)
    result: tuple[Chunk, ...] = known[size]
    return result


def _cut(indptr: Tensor, entries: int, size: int) -> tuple[Chunk, ...]:
    nodes = indptr.shape[0] - 1
    if size >= entries:  # without waiting for the device, as each piece of a training is a new graph
        return (Chunk(0, entries, 0, nodes, False),) if entries else ()
    bounds = [*range(0, entries, size), entries]
    if indptr.device.type == "meta":  # shapes without numbers: any row may be anywhere
        return tuple(Chunk(first, end, 0, nodes, True) for first, end in pairwise(bounds))
    rows = indptr.cpu().numpy()
    tops = np.searchsorted(rows, bounds[:-1], side="right") - 1
    bottoms = np.searchsorted(rows, bounds[1:], side="left")
    return tuple(
        Chunk(first, end, int(top), int(bottom), bool(rows[top] < first))
        for (first, end), top, bottom in zip(pairwise(bounds), tops, bottoms, strict=True)
    )
