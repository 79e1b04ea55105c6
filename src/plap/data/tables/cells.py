"""Cells of a user's table: names of nodes to 0..N-1, finite numbers, and rows that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import trimmed
from plap.data.columns.numbers import NumberReader, guess_format
from plap.data.tables.table_file import Table
from plap.errors import InputError

if TYPE_CHECKING:
    from plap.data.tables.name_index import NameIndex

_EXAMPLES = 3
_LOOKED_AT = 1000
"""Rows of a column that say how its numbers are written."""
_MOSTLY = 0.5
"""Share of the filled cells that must be numbers, for the way they are written to count."""


class BadRows:
    """Which rows of a table are kept, and what was wrong with the others."""

    def __init__(self, table: Table, *, drop: bool) -> None:
        self._table, self._drop = table, drop
        self.kept: NDArray[np.bool_] = np.ones(table.height, dtype=np.bool_)
        self._examples: list[str] = []

    def keep(self, good: NDArray[np.bool_], column: str, problem: Callable[[int], str]) -> None:
        """Drop the rows that are not ``good``, or refuse the first of them.

        Parameters
        ----------
        good : boolean array [rows]
        column : str
            Where the problem is.
        problem : function of a row
            What is wrong with it.
        """
        wrong = np.flatnonzero(self.kept & ~good)
        for row in wrong[: max(1, _EXAMPLES - len(self._examples))].tolist() if wrong.size else ():
            try:
                self._table.fail(row, column, problem(row))
            except InputError as error:
                if not self._drop:
                    raise InputError(f"{error}{_advice(wrong.size)}") from None
                self._examples.append(str(error).removeprefix(str(self._table.path)).lstrip(", "))
        self.kept &= good

    @property
    def notes(self) -> tuple[str, ...]:
        """How many rows were dropped, and the first of them."""
        count = int((~self.kept).sum())
        if not count:
            return ()
        shown = "; ".join(self._examples[:_EXAMPLES]) + ("; …" if count > _EXAMPLES else "")
        rows = "1 row was" if count == 1 else f"{count:,} rows were"
        return (f"{self._table.path.name}: {rows} dropped ({shown}).",)


def _advice(rows: int) -> str:
    """What to do about so many rows that cannot be used for the same reason."""
    if rows == 1:
        return "; --on-bad-rows drop leaves this row out"
    return f"; --on-bad-rows drop leaves this row and {rows - 1:,} more like it out"


WHOLE = r"^-?(?:0|[1-9]\d*)\.0+$"
"""A whole number as pandas writes a column of integers in which some are missing."""
_SLICE = 1 << 24
_MANY = 1 << 21


def read_identifiers(table: Table, column: str, bad: BadRows, *, distinct_ids: bool = True) -> pl.Series:
    """Return a column of ids as Int64 if every one is an integer written as Python would, else as text.

    ``007`` is text, and so stays apart from ``7``. A row without an id is bad, and where ids must be
    distinct, so is one whose id an earlier row has; the ids of such rows are null or of no use.
    """
    ids = table.column(column)
    if ids.dtype.is_float():
        whole = ids.cast(pl.Int64, strict=False)
        if whole.null_count() == ids.null_count() and bool((whole == ids).fill_null(True).all()):
            ids = whole
    if ids.null_count():
        bad.keep(ids.is_not_null().to_numpy(), column, lambda row: "the id of a node is missing")
    if not ids.dtype.is_integer() and ids.dtype not in (pl.String, pl.Null):
        table.fail(0, column, f"ids must be text or whole numbers, not {ids.dtype}")
    ids = _integers_or_text(ids)
    if distinct_ids and ids.n_unique() < ids.len():
        first = (ids.is_first_distinct() | ids.is_null()).to_numpy()
        bad.keep(first, column, lambda row: f"the id {ids[row]!r} is there twice")
    return ids


def _integers_or_text(ids: pl.Series) -> pl.Series:
    if ids.dtype.is_integer():
        number = ids.cast(pl.Int64, strict=False)
        return ids.cast(pl.String) if number.null_count() > ids.null_count() else number
    # One look at the first spares names such as user17 the whole column.
    first = ids.drop_nulls().head(1)
    if first.str.contains(WHOLE).any() and ids.str.contains(WHOLE).fill_null(True).all():
        ids, first = (each.str.replace(r"\.0+$", "") for each in (ids, first))
    if first.cast(pl.Int64, strict=False).null_count():
        return ids
    number = ids.cast(pl.Int64, strict=False)
    if number.null_count() > ids.null_count() or not (number.cast(pl.String) == ids).fill_null(True).all():
        return ids
    return number


def same_kind(*columns: pl.Series) -> tuple[pl.Series, ...]:
    """Turn integers into text unless all columns hold integers."""
    if all(column.dtype == pl.Int64 for column in columns):
        return columns
    return tuple(column.cast(pl.String) for column in columns)


def distinct(*columns: pl.Series) -> pl.Series:
    """All ids of some columns of one kind, each once, ascending."""
    low, span = _span(*columns)
    if columns[0].dtype == pl.Int64 and span <= _table_limit(sum(column.len() for column in columns)):
        there = np.zeros(span, dtype=np.bool_)
        for column in columns:
            for part in _slices(column):
                there[part.to_numpy() - low] = True
        return pl.Series(np.flatnonzero(there) + low)
    if _many_names(*columns):
        from plap.data.tables.name_index import NameIndex  # noqa: PLC0415  (Numba is slow to import)

        index = NameIndex()
        return pl.concat([index.add(part) for column in columns for part in _slices(column)]).sort()
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
        for found in self._parts(ids):
            numbers[start : start + found.size] = found
            start += found.size
        return numbers

    def _parts(self, ids: pl.Series) -> Iterator[NDArray[np.int32]]:
        if self._table is not None:
            return (self._by_table(part.to_numpy()) for part in _slices(ids))
        if _many_names(ids):
            return self._index.find(_slices(ids))
        return (self._by_join(part) for part in _slices(ids))

    @cached_property
    def _index(self) -> NameIndex:
        from plap.data.tables.name_index import NameIndex  # noqa: PLC0415  (Numba is slow to import)

        index = NameIndex()
        index.add(self.ids)
        return index

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
        known = pl.DataFrame({"id": self.ids, "number": np.arange(self.ids.len(), dtype=np.int32)})
        asked = pl.DataFrame({"id": ids})
        joined = asked.join(known, on="id", how="left", maintain_order="left")
        numbers: NDArray[np.int32] = joined["number"].fill_null(-1).to_numpy()
        return numbers


def _many_names(*columns: pl.Series) -> bool:
    """Whether an index of hashes pays for what it takes to compile or load it."""
    return columns[0].dtype == pl.String and sum(column.len() for column in columns) >= _MANY


def _slices(column: pl.Series) -> Iterator[pl.Series]:
    """Parts that bound what a step takes beside the column itself."""
    return (column.slice(start, _SLICE) for start in range(0, column.len(), _SLICE))


def _span(*columns: pl.Series) -> tuple[int, int]:
    """Smallest integer, and how many there are from it to the largest."""
    filled = [column for column in columns if column.len() and column.dtype == pl.Int64]
    if not filled:
        return 0, 0
    low = min(int(column.min()) for column in filled)  # type: ignore[arg-type]
    return low, max(int(column.max()) for column in filled) - low + 1  # type: ignore[arg-type]


def _table_limit(count: int) -> int:
    """Up to which span a table indexed by id is smaller than a hash of the ids."""
    return 8 * count + (1 << 16)


VECTOR_NAMES = ("features", "x", "vector", "embedding")
"""A text column of this name may hold a vector in each cell: ``0.5 1 2``, ``0.5;1;2`` or ``[0.5, 1, 2]``."""


def is_numeric(column: pl.Series) -> bool:
    """Whether a column is meant as numbers: its type says so, or at least half of its filled cells do."""
    if column.dtype != pl.String:
        return column.dtype.is_numeric() or column.dtype == pl.Boolean
    filled = column.len() - column.null_count()
    numbers = filled - (column.cast(pl.Float64, strict=False).null_count() - column.null_count())
    return filled > 0 and 2 * numbers >= filled


def is_vector(column: pl.Series) -> bool:
    """Whether each cell holds several numbers."""
    if isinstance(column.dtype, pl.List | pl.Array):
        inner = column.dtype.inner
        return isinstance(inner, type | pl.DataType) and inner.is_numeric()
    return (
        column.dtype == pl.String and column.name.strip().lower() in VECTOR_NAMES and not is_numeric(column)
    )


def decimal_commas_in(table: Table) -> Callable[[], bool]:
    """Whether a column of a table certainly has decimal commas; its first rows are looked at when asked."""

    def certain(name: str) -> bool:
        head = table.head(name, _LOOKED_AT)
        if head.dtype != pl.String:
            return False
        cells = trimmed(head).drop_nulls()
        guess = guess_format(cells)
        return (
            bool(cells.len()) and guess.share >= _MOSTLY and not guess.other and guess.format.decimal == ","
        )

    return lambda: any(certain(name) for name in table.columns)


def as_written(column: pl.Series, commas: Callable[[], bool] = lambda: False) -> tuple[pl.Series, str]:
    """Text that holds numbers with decimal commas, marks between thousands or signs, in plain figures.

    Cells that are no numbers stay as they are. Beside the column comes how its numbers were written; "" where
    nothing had to be changed. Where ``1,234`` may be 1234 or 1.234, ``commas`` says whether commas are
    decimal in the rest of the table.

    Examples
    --------
    >>> as_written(pl.Series(["1,5", "x", None, "0,25 %"]))[0].to_list()
    ['1.5', 'x', None, '0.0025']
    """
    if column.dtype != pl.String:
        return column, ""
    filled = column.drop_nulls()
    if filled.is_empty() or not filled.cast(pl.Float64, strict=False).null_count():
        return column, ""
    guess = guess_format(filled)
    if guess.share < _MOSTLY:
        return column, ""
    followed = guess.other is not None and commas()
    chosen = guess.other if guess.other is not None and followed else guess.format
    read = NumberReader(chosen).read(column).values
    figures = pl.Series(read, nan_to_null=True).cast(pl.String)
    said = guess.marks or (
        "per cent signs" if guess.percent else "currency signs" if guess.currencies else ""
    )
    if followed:
        said = f"{chosen.describe(filled)}, as in other columns"
    elif guess.other is not None and said:
        said += " (if those are decimal marks, write points)"
    return pl.select(pl.coalesce(figures, column).alias(column.name)).to_series(), said


def finite_numbers(column: pl.Series) -> NDArray[np.bool_]:
    """Where a column holds a number that float32 can hold."""
    values = _to_single(column.cast(pl.Float64, strict=False).to_numpy())
    finite: NDArray[np.bool_] = np.isfinite(values)
    return finite


def numbers(table: Table, column: pl.Series) -> NDArray[np.float32]:
    """Return a column as float32, refusing the first cell that is empty, text, NaN or infinite."""
    if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean, pl.Null)):
        table.fail(0, column.name, f"holds {column.dtype}, and must hold numbers")
    values = column.cast(pl.Float64, strict=False)
    single: NDArray[np.float32] = _to_single(values.to_numpy())
    if not np.isfinite(single).all():
        row = int(np.argmin(np.isfinite(single)))
        table.fail(row, column.name, _wrong(column[row], values[row]))
    return single


def vectors(table: Table, column: pl.Series) -> NDArray[np.float32]:
    """Return a column of equally long vectors as float32 [rows, length]."""
    if column.dtype == pl.String:
        column = column.str.strip_chars("[]() ,;").str.replace_all(r"[\s,;]+", " ").str.split(" ")
    lists = column.cast(pl.List(pl.String if column.dtype == pl.List(pl.String) else pl.Float64))
    if lists.null_count():
        table.fail(int(lists.is_null().arg_max() or 0), column.name, "the vector is missing")
    lengths = lists.list.len().to_numpy()
    if not (lengths == lengths[0]).all():
        row = int(np.argmax(lengths != lengths[0]))
        table.fail(row, column.name, f"{lengths[row]} numbers, but the first row has {lengths[0]}")
    if lengths[0] == 0:
        table.fail(0, column.name, "the vector is empty")
    cells = lists.explode()
    values = cells.cast(pl.Float64, strict=False)
    single = _to_single(values.to_numpy())
    if not np.isfinite(single).all():
        at = int(np.argmin(np.isfinite(single)))
        table.fail(at // int(lengths[0]), column.name, _wrong(cells[at], values[at]))
    return single.reshape(-1, int(lengths[0]))


def _to_single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _wrong(cell: object, value: float | None) -> str:
    """Why a cell is no number that float32 can hold."""
    if cell is None:
        return "a number is missing"
    if value is None:
        return f"{cell!r} is not a number"
    return f"{cell} is too large" if np.isfinite(value) else f"{cell} is not a finite number"
