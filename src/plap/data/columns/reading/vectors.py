"""Columns that hold a vector in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.reading.cells import CellError, Cells, finite, floats, refuse_type, trimmed

VECTOR_NAMES = ("features", "x", "vector", "embedding")
"""A text column of this name may hold vectors without brackets: ``0.5 1 2`` or ``0.5;1;2``."""
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BETWEEN = r"(?:\s*[,;]\s*|\s+)"


@dataclass(frozen=True)
class VectorReader:
    """Reads vectors of one width from lists, arrays, or text such as ``[0.5, 1, 2]``."""

    width: int
    problem: ClassVar[str] = "is not a vector"

    def read(self, column: pl.Series) -> Cells[NDArray[np.float64]]:
        """Return float64 [rows, width]; a missing vector is a row of NaN, another width is refused."""
        lists = as_lists(column)
        if lists is None:
            refuse_type(column, "vectors of numbers")
        lengths = lists.list.len().fill_null(self.width).to_numpy()
        wrong = np.flatnonzero(lengths != self.width)
        if wrong.size:
            row = int(wrong[0])
            problem = f"the length of the vector is {lengths[row]}, and must be {self.width}"
            raise CellError(column.name, row, None, problem)
        values = np.full((column.len(), self.width), np.nan)
        present = lists.is_not_null().to_numpy()
        components = lists.drop_nulls().explode(empty_as_null=False)
        values[present] = floats(components).reshape(-1, self.width)
        values, infinite = finite(values)
        filled = trimmed(column).is_not_null().to_numpy() if column.dtype == pl.String else present
        return Cells(values, np.flatnonzero(filled & ~present), infinite)

    def to_json(self) -> dict[str, Any]:
        """Return the width."""
        return {"width": self.width}

    @classmethod
    def from_json(cls, entries: Description) -> VectorReader:
        """Return the reader that ``to_json`` described."""
        return cls(entries.count("width", 1))


def as_lists(column: pl.Series) -> pl.Series | None:
    """Return a column as List(Float64) with null for what is no vector, or None for other types."""
    if isinstance(column.dtype, pl.List | pl.Array):
        inner = column.dtype.inner
        known = isinstance(inner, pl.DataType) and (inner.is_numeric() or inner in (pl.Boolean, pl.Null))
        return column.cast(pl.List(pl.Float64)) if known else None
    if column.dtype == pl.Null:
        return column.cast(pl.List(pl.Float64))
    if column.dtype != pl.String:
        return None
    text = trimmed(column).str.strip_chars("[]() ")
    vector = text.str.contains(rf"^{_NUMBER}(?:{_BETWEEN}{_NUMBER})*$").fill_null(False)
    split = text.set(~vector, None).str.replace_all(_BETWEEN, " ").str.split(" ")
    return split.cast(pl.List(pl.Float64), strict=False)


def vector_width(column: pl.Series) -> int | None:
    """Return the most frequent width if a column holds vectors of at least two numbers, otherwise None.

    Text counts as vectors if nine of ten filled cells are in brackets, if the column's name says so, or if
    all filled cells hold equally many numbers, most of them with decimal points; telephone numbers do not.
    """
    if column.dtype == pl.String:
        cells = trimmed(column).drop_nulls()
        named = column.name.strip().lower() in VECTOR_NAMES
        pattern = rf"^[\[(]?\s*{_NUMBER}{_BETWEEN}" if named else rf"^[\[(]\s*{_NUMBER}"
        if cells.is_empty():
            return None
        if cells.str.contains(pattern).sum() < 0.9 * cells.len() and not _are_plain_vectors(cells):
            return None
    lists = as_lists(column)
    if lists is None:
        return None
    widths = lists.list.len().drop_nulls()
    return int(widths.mode().max()) if widths.len() else None  # type: ignore[arg-type]


def _are_plain_vectors(cells: pl.Series) -> bool:
    """Whether filled cells without brackets are vectors beyond doubt."""
    for some in (cells.head(100), cells):
        if not some.str.contains(rf"^{_NUMBER}(?:{_BETWEEN}{_NUMBER})+$").all():
            return False
        if 2 * some.str.contains(r"\d\.\d").sum() < some.len():
            return False
    return cells.str.count_matches(_BETWEEN).n_unique() == 1
