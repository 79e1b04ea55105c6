"""Numbers out of a table: finite, complete, or refused by line and column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from plap.data.table_file import Table

if TYPE_CHECKING:
    import polars as pl

VECTOR_NAMES = ("features", "x", "vector", "embedding")
"""A text column of this name may hold a vector in each cell: ``0.5 1 2``, ``0.5;1;2`` or ``[0.5, 1, 2]``."""


def is_numeric(column: pl.Series) -> bool:
    """Whether a column is meant as numbers: its type says so, or at least half of its filled cells do."""
    import polars as pl  # noqa: PLC0415

    if column.dtype != pl.String:
        return column.dtype.is_numeric() or column.dtype == pl.Boolean
    filled = column.len() - column.null_count()
    numbers = filled - (column.cast(pl.Float64, strict=False).null_count() - column.null_count())
    return filled > 0 and 2 * numbers >= filled


def is_vector(column: pl.Series) -> bool:
    """Whether each cell holds several numbers."""
    import polars as pl  # noqa: PLC0415

    if isinstance(column.dtype, pl.List | pl.Array):
        inner = column.dtype.inner
        return isinstance(inner, type | pl.DataType) and inner.is_numeric()
    return (
        column.dtype == pl.String and column.name.strip().lower() in VECTOR_NAMES and not is_numeric(column)
    )


def numbers(table: Table, column: pl.Series) -> NDArray[np.float32]:
    """Return a column as float32, refusing the first cell that is empty, text, NaN or infinite."""
    import polars as pl  # noqa: PLC0415

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
    import polars as pl  # noqa: PLC0415

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
