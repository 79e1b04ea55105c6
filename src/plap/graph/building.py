"""From an unordered list of weighted edges to the rows of a symmetric matrix, with one sort of E keys.

Every edge s → t becomes one integer, (min, max, direction) packed into 64 bits; sorted, the repeats of an
edge and its two directions lie side by side. The upper triangle read off them gives the lower one by a
counting sort, so only E integers are ever sorted, and nothing at all is permuted for unweighted edges.
"""

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
Keys = NDArray[np.int64]
Mask = NDArray[np.bool_]
Reduction = Literal["amax", "mean", "sum"]

MAX_NODES = 2**31
"""Two node numbers and a direction have to fit into 63 bits."""

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Symmetric:
    """A symmetric matrix in CSR form, columns ascending, and what was merged on the way."""

    indptr: Index
    indices: Index
    weight: Tensor
    self_loops: int
    duplicates: int
    one_way: int
    symmetrized: bool


@dataclass(frozen=True)
class _Edges:
    """Undirected edges u ≤ v, ascending by (u, v)."""

    u: Index
    v: Index
    loops: int
    first: Mask
    """Which of the directed entries, in the same order, begin a new edge."""

    @property
    def one_way(self) -> int:
        """Edges given in one direction only; a self-loop is its own reverse."""
        paired = self.first.size - self.u.size
        return self.u.size - self.loops - paired


def symmetric_rows(
    source: Index,
    target: Index,
    weight: Tensor | None,
    n: int,
    reduction: Reduction | None,
    *,
    drop_loops: bool = False,
) -> Symmetric:
    """Merge repeated edges, then the two directions if they differ, by ``reduction``.

    Parameters
    ----------
    source, target : integer arrays, shape [E], values in [0, n)
    weight : Tensor, shape [E], optional
        May require gradients; None means that all are 1.
    n : int
        Number of nodes, at most ``MAX_NODES``.
    reduction : {"amax", "mean", "sum"} or None
        None refuses repeated edges and a matrix that is not symmetric.
    drop_loops : bool
        Drop self-loops before anything is merged.

    Examples
    --------
    >>> rows = symmetric_rows(np.array([0, 2]), np.array([1, 1]), torch.tensor([3.0, 5.0]), 3, "amax")
    >>> rows.indptr.tolist(), rows.indices.tolist(), rows.weight.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1], [3.0, 3.0, 5.0, 5.0])
    """
    dtype = torch.float32 if weight is None else weight.dtype
    if weight is not None and not weight.requires_grad and bool((weight == 1).all()):
        weight = None
    bits = max(n - 1, 1).bit_length()
    keys = _keys(source, target, bits)
    keep = source != target
    loops = keys.size - int(np.count_nonzero(keep))
    if loops and drop_loops:
        keys = _compact(keys, keep)
        weight = None if weight is None else weight.index_select(0, torch.from_numpy(np.flatnonzero(keep)))
    del keep
    keys, weight = _sort(keys, weight)
    if reduction == "sum" and weight is None:  # every other rule makes ones of ones
        weight = torch.ones(keys.size, dtype=dtype)
    given = keys.size
    keys, weight = _merge_repeats(keys, weight, reduction, bits)
    duplicates = given - keys.size
    if reduction is None:
        _refuse_asymmetry(keys, weight, bits)
    edges = _undirected(keys, bits)
    del keys
    values, symmetrized = _directions(edges, weight, reduction)
    indptr, indices, full = _mirror(edges, values, n)
    if full is None:
        full = torch.ones(indices.size, dtype=dtype)
    return Symmetric(indptr, indices, full, loops, duplicates, edges.one_way, symmetrized)


def _keys(source: Index, target: Index, bits: int) -> Keys:
    """(min, max, whether source > target) of every edge in one integer; by blocks that stay in cache."""
    keys: Keys = np.empty(source.size, dtype=np.int64)
    for start in range(0, source.size, _BLOCK):
        s, t = source[start : start + _BLOCK], target[start : start + _BLOCK]
        key = keys[start : start + _BLOCK]
        np.minimum(s, t, out=key)
        key <<= bits
        key |= np.maximum(s, t)
        key <<= 1
        key |= s > t
    return keys


def _compact(keys: Keys, keep: Mask) -> Keys:
    """``keys[keep]`` in the memory of ``keys``."""
    end = 0
    for start in range(0, keys.size, _BLOCK):
        kept = keys[start : start + _BLOCK][keep[start : start + _BLOCK]]
        keys[end : end + kept.size] = kept
        end += kept.size
    return keys[:end]


def _sort(keys: Keys, weight: Tensor | None) -> tuple[Keys, Tensor | None]:
    """Ascending keys; may overwrite ``keys``."""
    if weight is None:
        keys.sort()
        return keys, None
    order = np.argsort(keys)
    return keys[order], weight.index_select(0, torch.from_numpy(order))


def _unpack(key: int, bits: int) -> tuple[int, int]:
    """Source and target of an edge from its key."""
    low, high = key >> (bits + 1), (key >> 1) & ((1 << bits) - 1)
    return (high, low) if key & 1 else (low, high)


def _run_starts(keys: Keys) -> Mask:
    """Which elements of an ascending array differ from the one before."""
    first = np.ones(keys.size, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return first


def _reduce(weight: Tensor, first: Mask, reduction: Reduction) -> Tensor:
    """Merge the runs of ``weight`` that begin where ``first`` is true."""
    if first.all():
        return weight
    slot = torch.from_numpy(np.cumsum(first) - 1)
    places = torch.zeros(int(slot[-1]) + 1, dtype=weight.dtype)
    return places.scatter_reduce(0, slot, weight, reduction, include_self=False)


def _merge_repeats(
    keys: Keys, weight: Tensor | None, reduction: Reduction | None, bits: int
) -> tuple[Keys, Tensor | None]:
    """Directed entries without repeats."""
    first = _run_starts(keys)
    if first.all():
        return keys, weight
    if reduction is None:
        source, target = _unpack(int(keys[np.argmin(first)]), bits)
        raise InputError(f"edge {source} → {target} is given twice, and symmetrize is 'error'")
    return _compact(keys, first), None if weight is None else _reduce(weight, first, reduction)


def _refuse_asymmetry(keys: Keys, weight: Tensor | None, bits: int) -> None:
    """Name the first edge without a reverse, or the first whose reverse has another weight."""
    pair = keys >> 1
    first = _run_starts(pair)
    alone = first & np.append(first[1:], True) & (pair >> bits != pair & ((1 << bits) - 1))
    if alone.any():
        source, target = _unpack(int(keys[np.argmax(alone)]), bits)
        raise InputError(f"edge {source} → {target} has no reverse, and symmetrize is 'error'")
    if weight is None:
        return
    second = np.flatnonzero(~first)
    values = weight.detach().numpy()
    differs = values[second] != values[second - 1]
    if differs.any():
        at = int(second[np.argmax(differs)])
        source, target = _unpack(int(keys[at - 1]), bits)
        raise InputError(
            f"edge {source} → {target} has weight {values[at - 1]} but its reverse has {values[at]}, "
            "and symmetrize is 'error'"
        )


def _undirected(keys: Keys, bits: int) -> _Edges:
    """Merge the two directions of every edge; overwrites ``keys``."""
    keys >>= 1
    first = _run_starts(keys)
    if not first.all():
        keys = _compact(keys, first)
    u: Index = np.empty(keys.size, dtype=np.int32)
    v: Index = np.empty(keys.size, dtype=np.int32)
    np.right_shift(keys, bits, out=u, casting="unsafe")
    np.bitwise_and(keys, (1 << bits) - 1, out=v, casting="unsafe")
    return _Edges(u, v, int(np.count_nonzero(u == v)), first)


def _directions(
    edges: _Edges, weight: Tensor | None, reduction: Reduction | None
) -> tuple[tuple[Tensor, Tensor] | None, bool]:
    """Weights of u → v and of v → u for every edge, and whether they had to be reconciled.

    If they agree as given, each keeps its own, and so its own gradient.
    """
    if weight is None:
        return None, edges.one_way > 0
    if edges.one_way == 0:
        place = np.flatnonzero(edges.first)
        forward = weight.index_select(0, torch.from_numpy(place))
        backward = weight.index_select(0, torch.from_numpy(place + (edges.u != edges.v)))
        if torch.equal(forward, backward):
            return (forward, backward), False
    assert reduction is not None
    merged = _reduce(weight, edges.first, reduction)
    return (merged, merged), True


def _mirror(
    edges: _Edges, values: tuple[Tensor, Tensor] | None, n: int
) -> tuple[Index, Index, Tensor | None]:
    """Rows of the symmetric matrix: each is its part of the lower triangle, then of the upper.

    Edge u → v lies in row v below the diagonal, v → u in row u above it, a self-loop on it. Returns indptr,
    indices and the weights.
    """
    u, v = edges.u, edges.v
    strict = u != v if edges.loops else None
    lower_u, order, lower_counts = _transpose(u, v, strict, n, numbered=values is not None)
    counts = np.stack([lower_counts, np.bincount(u, minlength=n)], axis=1)
    upper: Mask = np.repeat(np.tile(np.array([False, True]), n), counts.ravel())
    index_type = _index_type(max(n, upper.size))
    indptr = np.zeros(n + 1, dtype=index_type)
    np.cumsum(counts.sum(axis=1), out=indptr[1:])
    indices: Index = np.empty(upper.size, dtype=index_type)
    indices[upper] = v
    lower = np.logical_not(upper, out=upper if values is None else None)
    indices[lower] = lower_u
    if values is None:
        return indptr, indices, None
    forward, backward = values
    return (
        indptr,
        indices,
        _interleave(forward.index_select(0, torch.from_numpy(order)), lower, backward, upper),
    )


def _transpose(u: Index, v: Index, strict: Mask | None, n: int, numbered: bool) -> tuple[Index, Index, Index]:
    """From edges sorted by (u, v) to their u sorted by (v, u), by counting, without self-loops.

    Also which edge each is (if ``numbered``), and how many there are of each v.
    """
    number_type = _index_type(u.size)
    number: Index = np.arange(u.size, dtype=number_type) if numbered else np.zeros(u.size, dtype=np.int8)
    if strict is not None:
        u, v, number = u[strict], v[strict], number[strict]
    indptr = np.zeros(n + 1, dtype=number_type)
    np.cumsum(np.bincount(u, minlength=n), out=indptr[1:])
    columns = scipy.sparse.csr_array(
        (number, v.astype(number_type, copy=False), indptr), shape=(n, n)
    ).tocsc()
    return columns.indices, columns.data, np.diff(columns.indptr)


def _interleave(low: Tensor, lower: Mask, high: Tensor, upper: Mask) -> Tensor:
    """Put two sequences in the places of their masks, keeping gradients."""
    if low.requires_grad or high.requires_grad:
        full = torch.zeros(upper.size, dtype=high.dtype)
        full = full.masked_scatter(torch.from_numpy(upper), high)
        return full.masked_scatter(torch.from_numpy(lower), low)
    values = np.empty(upper.size, dtype=high.numpy().dtype)
    values[upper] = high.numpy()
    values[lower] = low.numpy()
    return torch.from_numpy(values)


def _index_type(largest: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if largest < 2**31 - 1 else np.int64
