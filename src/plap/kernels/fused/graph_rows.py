"""What the loops need to know of a graph besides its arrays, found out once per graph.

Graphs never change, so what was found out is kept for as long as the graph's own arrays live, and as long as
there is room for it.

Where a result is wanted at some nodes only, a row of the last step depends on its neighbours' rows of the
step before, and so on: h steps before the last one, only nodes within h edges of a wanted one matter. Rows
are sorted by that distance, so that those of any step are the first so many.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.memo import Memo
from plap.sparse import entries_of, hops_from

_FEW = 1 / 3
"""Share of the nodes above which a step before the last one needs next to every row."""

_WORTH = 0.9
"""Share of the entries, over all steps, above which leaving out the rest does not pay."""

_KEPT = 2**26
"""Bytes of sorted rows that are kept per graph, and that a batch may use."""


class Cut(NamedTuple):
    """The rows of a graph in ranges of about equal work."""

    chunks: Tensor
    """Where the ranges begin, and where the last one ends; int64."""
    longest: int
    """Entries of the longest row."""


_CUTS: Memo[dict[int, Cut]] = Memo()
_ROOTS: Memo[dict[torch.dtype, Tensor]] = Memo()
_REACHES: Memo[tuple[Reach | None, Tensor, Tensor]] = Memo()
_SORTED: Memo[OrderedDict[tuple[bytes, int], SortedRows]] = Memo()


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


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The rows within K edges of the wanted nodes, the nearest first."""

    order: Tensor
    """The node of each row, in the graph's type of index; behind them the nodes K + 1 edges away."""
    indptr: Tensor
    indices: Tensor
    """Neighbours by their numbers in the graph, in the order of its own rows."""
    position: Tensor
    """Where each entry is in the graph, int64."""
    counts: Tensor
    """Nodes within 0, 1, ..., K + 1 edges, int64."""
    _weights: Memo[Tensor] = field(default_factory=Memo)

    @property
    def size(self) -> int:
        """Bytes."""
        parts = (self.order, self.indptr, self.indices, self.position, self.counts)
        return sum(part.nbytes for part in parts) + 4 * self.position.shape[0]  # and the weights

    @property
    def work(self) -> int:
        """Entries of all steps forward."""
        return int(self.indptr[self.counts[:-2]].sum())

    def weight(self, weight: Tensor) -> Tensor:
        """The weights of the graph's entries as those of these rows."""
        return self._weights.get(weight, lambda: weight[self.position])


@dataclass(frozen=True, eq=False)
class Reach:
    """The sorted rows of several runs."""

    table: Tensor
    """Addresses of indptr, indices, weights, order and counts, int64 [R, 5]."""
    alive: tuple[Tensor, ...]
    """What these are the addresses of."""


def reach_of(indptr: Tensor, indices: Tensor, weight: Tensor, rows: Tensor, K: int) -> Reach | None:
    """What K steps need of a graph if run r is wanted at the nodes ``rows[r]``; None if next to everything.

    Parameters
    ----------
    indptr, indices, weight : Tensor
        The graph.
    rows : Tensor, int64 [R, T]
        Nodes may repeat. The result is remembered for this very tensor.
    K : int
    """
    if rows.shape[1] > _FEW * (indptr.shape[0] - 1) or weight.is_inference():
        return None
    # what the ids stand for is kept with the result, so that nothing else gets them
    version = (id(indptr), id(weight), weight._version, K)
    known = _REACHES.get(rows, lambda: (_reach_of(indptr, indices, weight, rows, K), indptr, weight), version)
    return known[0]


def _reach_of(indptr: Tensor, indices: Tensor, weight: Tensor, rows: Tensor, K: int) -> Reach | None:
    known = _SORTED.get(indptr, OrderedDict)
    every: dict[tuple[bytes, int], SortedRows] = {}
    keys = [(wanted.numpy().tobytes(), K) for wanted in rows]
    room = _KEPT
    for key, wanted in zip(keys, rows, strict=True):
        if key not in every:
            every[key] = known.get(key) or sort_rows(indptr, indices, wanted, K)
            room -= every[key].size
        if room < 0:
            return None
    if sum(every[key].work for key in keys) > _WORTH * len(keys) * K * indices.shape[0]:
        return None
    _keep(known, every)
    parts = [
        (part.indptr, part.indices, part.weight(weight), part.order, part.counts)
        for part in (every[key] for key in keys)
    ]
    table = torch.tensor([[tensor.data_ptr() for tensor in run] for run in parts])
    return Reach(table, tuple(tensor for run in parts for tensor in run))


def _keep(
    known: OrderedDict[tuple[bytes, int], SortedRows], used: dict[tuple[bytes, int], SortedRows]
) -> None:
    """Remember sorted rows: runs of the same split share them, and keep them when others of a batch end."""
    for key, part in used.items():
        known[key] = part
        known.move_to_end(key)
    while sum(part.size for part in list(known.values())) > _KEPT:
        known.popitem(last=False)


def sort_rows(indptr: Tensor, indices: Tensor, wanted: Tensor, K: int) -> SortedRows:
    """The rows of a symmetric graph by their distance from the wanted nodes."""
    ascending, order = hops_from(indptr, indices, wanted, K + 1).sort(stable=True)
    counts = torch.searchsorted(ascending, torch.arange(K + 2), right=True)
    rows = order[: counts[K]]
    position = entries_of(indptr, rows).position
    starts = torch.zeros(rows.shape[0] + 1, dtype=indptr.dtype)
    torch.cumsum(indptr.diff()[rows], 0, out=starts[1:])
    return SortedRows(order[: counts[-1]].to(indices.dtype), starts, indices[position], position, counts)
