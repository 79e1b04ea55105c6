"""Long rows cut into segments, so that a hub is summed by many programs and not by one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

SEGMENT = 1024
"""Entries that one program sums; a row with more of them is a hub."""


class Segments(NamedTuple):
    """Which program sums what."""

    table: Tensor
    """int64 [4, programs]: row, first entry, end, slot; row -1: nothing; slot -1: the whole row."""
    hubs: Tensor
    """int64 [3, hubs]: row, first slot, end; row -1: nothing."""
    slots: int
    """At most so many segments belong to hubs."""


_KNOWN: WeakIdKeyDictionary = WeakIdKeyDictionary()
"""By ``indptr`` and size; a graph never changes, so they are true for as long as it lives."""


def segments(indptr: Tensor, entries: int, size: int = SEGMENT) -> Segments | None:
    """The segments of a graph's rows; None if no row can have more than ``size`` entries.

    The numbers of programs and hubs are upper bounds that follow from the shapes alone, so that nothing is
    copied to the host.

    Examples
    --------
    >>> found = segments(torch.tensor([0, 1, 6, 7]), 7, size=2)
    >>> found.table.T.tolist()  # row 1 has five entries, in slots 0 to 2
    [[0, 0, 1, -1], [1, 1, 3, 0], [1, 3, 5, 1], [1, 5, 6, 2], [2, 6, 7, -1], [-1, 0, 0, -1]]
    >>> found.hubs.tolist(), found.slots
    ([[1, -1], [0, 0], [3, 0]], 7)
    """
    if entries <= size:
        return None
    known = _KNOWN.setdefault(indptr, {})
    if size not in known:
        known[size] = _cut(indptr.long(), entries, size)
    result: Segments = known[size]
    return result


def _cut(indptr: Tensor, entries: int, size: int) -> Segments:
    nodes = indptr.shape[0] - 1
    parts = ((indptr[1:] - indptr[:-1] + size - 1) // size).clamp(min=1)
    ends = parts.cumsum(0)
    program = torch.arange(nodes + entries // size, device=indptr.device)
    row = torch.searchsorted(ends, program, right=True)
    exists = row < nodes
    row = row.clamp(max=nodes - 1)
    number = program - (ends - parts)[row]
    first = indptr[row] + number * size
    last = torch.minimum(first + size, indptr[row + 1])
    is_hub = parts > 1
    slot_ends = torch.where(is_hub, parts, 0).cumsum(0)
    slot_first = slot_ends - parts
    slot = torch.where(is_hub[row], slot_first[row] + number, -1)
    table = torch.stack(
        [torch.where(exists, value, other) for value, other in ((row, -1), (first, 0), (last, 0), (slot, -1))]
    )
    return Segments(
        table.contiguous(), _hubs(is_hub, slot_first, slot_ends, entries // (size + 1)), 2 * entries // size
    )


def _hubs(is_hub: Tensor, slot_first: Tensor, slot_ends: Tensor, most: int) -> Tensor:
    """The rows that are hubs, in order, and their slots."""
    position = torch.where(is_hub, is_hub.cumsum(0) - 1, most)
    rows = torch.arange(is_hub.shape[0], device=is_hub.device)
    filled = torch.full((most + 1,), -1, device=is_hub.device).scatter(0, position, rows)[:most]
    at = filled.clamp(min=0)
    return torch.stack([filled, *(torch.where(filled >= 0, part[at], 0) for part in (slot_first, slot_ends))])
