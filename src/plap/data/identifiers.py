"""From a user's names of nodes, any strings or integers, to 0..N-1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from plap.data.table_file import Table

if TYPE_CHECKING:
    import polars as pl

_SLICE = 1 << 24


def read_identifiers(table: Table, column: str) -> pl.Series:
    """Return a column of ids as Int64 if every one is an integer written as Python would, else as text.

    ``007`` is text, and so stays apart from ``7``.
    """
    import polars as pl  # noqa: PLC0415

    ids = table.column(column)
    if ids.null_count():
        table.fail(int(ids.is_null().arg_max() or 0), column, "the id of a node is missing")
    if ids.dtype.is_integer():
        number = ids.cast(pl.Int64, strict=False)
        return ids.cast(pl.String) if number.null_count() else number
    if ids.dtype != pl.String:
        table.fail(0, column, f"ids must be text or whole numbers, not {ids.dtype}")
    # One look at the first spares names such as user17 the whole column.
    if ids.len() and ids.head(1).cast(pl.Int64, strict=False).null_count():
        return ids
    number = ids.cast(pl.Int64, strict=False)
    if number.null_count() or not (number.cast(pl.String) == ids).all():
        return ids
    return number


def same_kind(*columns: pl.Series) -> tuple[pl.Series, ...]:
    """Turn integers into text unless all columns hold integers."""
    import polars as pl  # noqa: PLC0415

    if all(column.dtype == pl.Int64 for column in columns):
        return columns
    return tuple(column.cast(pl.String) for column in columns)


def distinct(*columns: pl.Series) -> pl.Series:
    """All ids of some columns of one kind, each once, ascending."""
    import polars as pl  # noqa: PLC0415

    low, span = _span(*columns)
    if columns[0].dtype == pl.Int64 and span <= _table_limit(sum(column.len() for column in columns)):
        there = np.zeros(span, dtype=np.bool_)
        for column in columns:
            for part in _slices(column):
                there[part.to_numpy() - low] = True
        return pl.Series(np.flatnonzero(there) + low)
    return pl.concat([column.rename("id").unique() for column in columns]).unique().sort()


@dataclass(frozen=True)
class Numbering:
    """Where each id stands in a column of distinct ids.

    Examples
    --------
    >>> import polars as pl
    >>> Numbering(pl.Series(["b", "a"])).of(pl.Series(["a", "a", "z", "b"]))
    array([ 1,  1, -1,  0], dtype=int32)
    """

    ids: pl.Series
    _low: int = field(init=False)
    _table: NDArray[np.int32] | None = field(init=False)

    def __post_init__(self) -> None:
        import polars as pl  # noqa: PLC0415

        low, span = _span(self.ids)
        table = None
        if self.ids.dtype == pl.Int64 and span <= _table_limit(self.ids.len()):
            table = np.full(span, -1, dtype=np.int32)
            table[self.ids.to_numpy() - low] = np.arange(self.ids.len(), dtype=np.int32)
        object.__setattr__(self, "_low", low)
        object.__setattr__(self, "_table", table)

    @property
    def is_trivial(self) -> bool:
        """Whether the ids are 0..N-1 in this order."""
        table = self._table
        if table is None or self._low != 0:
            return False
        return bool((table == np.arange(table.size, dtype=np.int32)).all())

    def of(self, ids: pl.Series) -> NDArray[np.int32]:
        """Number of each id, -1 where it is unknown."""
        numbers = np.empty(ids.len(), dtype=np.int32)
        start = 0
        for part in _slices(ids):
            found = self._by_join(part) if self._table is None else self._by_table(part.to_numpy())
            numbers[start : start + part.len()] = found
            start += part.len()
        return numbers

    def _by_table(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        assert self._table is not None
        size = self._table.size
        if size == 0:
            return np.full(ids.size, -1, dtype=np.int32)
        offset = ids - self._low
        inside = (ids >= self._low) & (ids <= self._low + (size - 1))
        if inside.all():
            return self._table[offset]
        return np.where(inside, self._table[np.where(inside, offset, 0)], np.int32(-1))

    def _by_join(self, ids: pl.Series) -> NDArray[np.int32]:
        import polars as pl  # noqa: PLC0415

        known = pl.DataFrame({"id": self.ids, "number": np.arange(self.ids.len(), dtype=np.int32)})
        asked = pl.DataFrame({"id": ids})
        joined = asked.join(known, on="id", how="left", maintain_order="left")
        numbers: NDArray[np.int32] = joined["number"].fill_null(-1).to_numpy()
        return numbers


def _slices(column: pl.Series) -> Iterator[pl.Series]:
    """Parts that bound what a step takes beside the column itself."""
    return (column.slice(start, _SLICE) for start in range(0, column.len(), _SLICE))


def _span(*columns: pl.Series) -> tuple[int, int]:
    """Smallest integer, and how many there are from it to the largest."""
    import polars as pl  # noqa: PLC0415

    filled = [column for column in columns if column.len() and column.dtype == pl.Int64]
    if not filled:
        return 0, 0
    low = min(int(column.min()) for column in filled)  # type: ignore[arg-type]
    return low, max(int(column.max()) for column in filled) - low + 1  # type: ignore[arg-type]


def _table_limit(count: int) -> int:
    """Up to which span a table indexed by id is smaller than a hash of the ids."""
    return 8 * count + (1 << 16)
