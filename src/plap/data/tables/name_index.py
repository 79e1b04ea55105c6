"""Where names stand among many, found by hashes instead of a join.

A hundred million names are looked up in seconds: Polars hashes a column at the speed of memory, and a table
of eight bytes per slot, linear probing, holds the number of each name beside 32 bits of its first hash. The
second hash is compared as well, so two names are taken for one only if they agree in some 120 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
import polars as pl
import torch
from numba import njit
from numpy.typing import NDArray

_compiled = njit(nogil=True, cache=True)

_Hashes = tuple[NDArray[np.uint64], NDArray[np.uint64]]
_SEEDS = (0x9E3779B9, 0x85EBCA6B)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_SMALLEST = 16
_FEWEST = 1 << 16


class NameIndex:
    """Numbers of names, in the order in which they were added.

    Examples
    --------
    >>> import polars as pl
    >>> index = NameIndex()
    >>> index.add(pl.Series(["b", "a", "b"])).to_list()
    ['b', 'a']
    >>> list(index.find([pl.Series(["a", "z"]), pl.Series(["b"])]))
    [array([ 1, -1], dtype=int32), array([0], dtype=int32)]
    """

    def __init__(self) -> None:
        self._slots: NDArray[np.uint64] = np.full(1 << _SMALLEST, _EMPTY, dtype=np.uint64)
        self._first: NDArray[np.uint64] = np.empty(_FEWEST, dtype=np.uint64)
        self._second: NDArray[np.uint64] = np.empty(_FEWEST, dtype=np.uint64)
        self._count = 0

    def add(self, names: pl.Series) -> pl.Series:
        """Number the names that are not there yet; return these, each once, in order."""
        hashes = _hashes(names)
        fresh = np.empty(names.len(), dtype=np.int64)
        done = added = 0
        while done < names.len():
            # Half of the slots at most are taken, so that a search ends soon.
            room = self._slots.size // 2 - self._count
            self._reserve(self._count + min(room, names.len() - done))
            ahead, found = _add(
                self._slots, self._first, self._second, self._count, *hashes, done, fresh[added:], room
            )
            done, added, self._count = ahead, added + found, self._count + found
            if done < names.len():
                self._slots = np.full(self._slots.size * 2, _EMPTY, dtype=np.uint64)
                _rebuild(self._slots, self._first[: self._count])
        return names.gather(fresh[:added])

    def find(self, parts: Iterable[pl.Series]) -> Iterator[NDArray[np.int32]]:
        """The numbers of the names of each part, -1 where one is unknown; on all threads."""
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            yield from pool.map(self._find, parts)

    def _find(self, names: pl.Series) -> NDArray[np.int32]:
        numbers = np.empty(names.len(), dtype=np.int32)
        _find(self._slots, self._second, *_hashes(names), numbers)
        return numbers

    def _reserve(self, count: int) -> None:
        if count > self._first.size:
            grown = np.empty(max(count, 2 * self._first.size), dtype=np.uint64)
            for name in ("_first", "_second"):
                longer = grown.copy()
                longer[: self._count] = getattr(self, name)[: self._count]
                setattr(self, name, longer)


def _hashes(names: pl.Series) -> _Hashes:
    first, second = (names.hash(seed).to_numpy() for seed in _SEEDS)
    return cast(_Hashes, (first, second))


_NUMBER = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_GROUP = 64


@_compiled
def _add(slots, first, second, count, hashes, checks, start, fresh, room):  # type: ignore[no-untyped-def]
    """Add the names from ``start`` on while there is room; where it ended, and how many were new."""
    mask = np.uint64(slots.size - 1)
    added = 0
    for row in range(start, hashes.size):
        key, check = hashes[row], checks[row]
        mark = key >> _HALF
        slot = key & mask
        while slots[slot] != _EMPTY:
            number = slots[slot] & _NUMBER
            if slots[slot] >> _HALF == mark and second[number] == check:
                break
            slot = (slot + np.uint64(1)) & mask
        else:
            if added == room:
                return row, added
            number = np.uint64(count + added)
            slots[slot] = (mark << _HALF) | number
            first[number] = key
            second[number] = check
            fresh[added] = row
            added += 1
    return hashes.size, added


@_compiled
def _rebuild(slots, first):  # type: ignore[no-untyped-def]
    mask = np.uint64(slots.size - 1)
    for number in range(first.size):
        slot = first[number] & mask
        while slots[slot] != _EMPTY:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = ((first[number] >> _HALF) << _HALF) | np.uint64(number)


@_compiled
def _find(slots, second, hashes, checks, numbers):  # type: ignore[no-untyped-def]
    """Look names up in groups, first all slots, then all second hashes: memory serves many at once."""
    mask = np.uint64(slots.size - 1)
    filled = np.empty(_GROUP, dtype=np.uint64)
    stored = np.empty(_GROUP, dtype=np.uint64)
    last = np.uint64(second.size - 1)
    for start in range(0, hashes.size, _GROUP):
        size = min(_GROUP, hashes.size - start)
        for k in range(size):
            filled[k] = slots[hashes[start + k] & mask]
        for k in range(size):
            stored[k] = second[min(filled[k] & _NUMBER, last)]
        for k in range(size):
            key, check = hashes[start + k], checks[start + k]
            mark = key >> _HALF
            if filled[k] >> _HALF == mark and stored[k] == check and filled[k] != _EMPTY:
                numbers[start + k] = filled[k] & _NUMBER
                continue
            slot = key & mask
            found = -1
            while slots[slot] != _EMPTY:
                number = slots[slot] & _NUMBER
                if slots[slot] >> _HALF == mark and second[number] == check:
                    found = int(number)
                    break
                slot = (slot + np.uint64(1)) & mask
            numbers[start + k] = found
