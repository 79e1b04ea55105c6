"""From an unordered list of weighted edges to the sorted entries of a symmetric matrix, in linear time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.errors import InputError

Index = NDArray[np.integer]
Reduction = Literal["amax", "mean", "sum"]


@dataclass(frozen=True)
class Entries:
    """Entries of an n × n matrix, ascending by (row, col). Weights may carry gradients."""

    row: Index
    col: Index
    weight: Tensor
    n: int


def sorted_entries(row: Index, col: Index, weight: Tensor, n: int) -> Entries:
    """Sort by (row, col), stably: a counting sort by column, then one by row."""
    order = stable_order(col, n)
    order = order[stable_order(row[order], n)]
    return Entries(row[order], col[order], weight[torch.from_numpy(order)], n)


def merge_duplicates(entries: Entries, reduction: Reduction | None) -> tuple[Entries, int]:
    """Merge entries of the same place; ``reduction`` None refuses them. Also returns how many went."""
    row, col = entries.row, entries.col
    if row.size == 0:
        return entries, 0
    first = np.ones(row.size, dtype=bool)
    np.logical_or(row[1:] != row[:-1], col[1:] != col[:-1], out=first[1:])
    places = int(first.sum())
    if places == row.size:
        return entries, 0
    if reduction is None:
        at = int(np.argmin(first))
        raise InputError(f"edge {col[at]} → {row[at]} is given twice and symmetrize is 'error'")
    slot = torch.from_numpy(np.cumsum(first) - 1)
    merged = torch.zeros(places, dtype=entries.weight.dtype).scatter_reduce(
        0, slot, entries.weight, reduction, include_self=False
    )
    return Entries(row[first], col[first], merged, entries.n), row.size - places


def merge_directions(entries: Entries, reduction: Reduction | None) -> tuple[Entries, int, bool]:
    """Make the matrix equal to its transpose; ``reduction`` None refuses to change it.

    Takes entries without duplicates. Also returns how many had no reverse, and whether anything changed.
    """
    row, col, weight = entries.row, entries.col, entries.weight
    mirror = stable_order(col, entries.n)
    values = weight.detach().numpy()
    if (
        np.array_equal(col[mirror], row)
        and np.array_equal(row[mirror], col)
        and np.array_equal(values[mirror], values)
    ):
        return entries, 0, False
    if reduction is None:
        raise InputError(f"{_first_asymmetry(entries)} and symmetrize is 'error'")
    off = np.flatnonzero(row != col)
    both = sorted_entries(
        np.concatenate([row, col[off]]),
        np.concatenate([col, row[off]]),
        torch.cat([weight, weight[torch.from_numpy(off)]]),
        entries.n,
    )
    merged, _ = merge_duplicates(both, reduction)
    return merged, merged.row.size - row.size, True


def stable_order(keys: Index, size: int) -> Index:
    """Stable argsort of integers in [0, size): the conversion from CSR to CSC is a counting sort."""
    index_type = np.int32 if max(keys.size, size) < 2**31 - 1 else np.int64
    rows = np.arange(keys.size + 1, dtype=index_type)
    ones = np.ones(keys.size, dtype=np.int8)
    keys = keys.astype(index_type, copy=False)
    order: Index = scipy.sparse.csr_array((ones, keys, rows), shape=(keys.size, size)).tocsc().indices
    return order


def _first_asymmetry(entries: Entries) -> str:
    """A sentence on the first entry whose reverse is absent or weighs something else."""
    values = entries.weight.detach().numpy()
    weights = dict(zip(zip(entries.row.tolist(), entries.col.tolist(), strict=True), values.tolist(), strict=True))
    for (i, j), value in weights.items():
        reverse = weights.get((j, i))
        if reverse is None:
            return f"edge {j} → {i} has no reverse"
        if reverse != value:
            return f"edge {j} → {i} weighs {value} but its reverse {reverse}"
    raise AssertionError("the entries are symmetric")
