"""Booleans, categories and text: cells that need no format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.reading.cells import Cells, floats, over_distinct, refuse_type, trimmed

BOOLEAN_PAIRS = (
    ("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("0", "1"), ("off", "on"), ("0.0", "1.0"),
    ("nein", "ja"), ("non", "oui"), ("falsch", "wahr"), ("faux", "vrai"),
)  # fmt: skip
"""The two words of a boolean column, in lower case, the one for false first."""


@dataclass(frozen=True)
class BooleanReader:
    """Reads true and false as 1 and 0, in any of the usual spellings."""

    problem: ClassVar[str] = "is neither true nor false"

    def read(self, column: pl.Series) -> Cells[NDArray[np.float64]]:
        """Return 0, 1 or NaN as float64 [rows]."""
        numbers = column.cast(pl.Float64, strict=False) if column.dtype == pl.String else column
        if numbers.null_count() > column.null_count():
            numbers = column
        if numbers.dtype in (pl.Boolean, pl.Null) or numbers.dtype.is_numeric():
            values = floats(numbers)
            good = (values == 0) | (values == 1)
            return Cells(np.where(good, values, np.nan), np.flatnonzero(~good & ~np.isnan(values)))
        if not (column.dtype == pl.String or isinstance(column.dtype, pl.Categorical | pl.Enum)):
            refuse_type(column, "true and false")
        cells = trimmed(column)
        words = [word for pair in BOOLEAN_PAIRS for word in pair]
        meaning = [float(k) for _ in BOOLEAN_PAIRS for k in (0, 1)]

        def parse(text: pl.Series) -> pl.Series:
            return text.str.to_lowercase().replace_strict(
                words, meaning, default=None, return_dtype=pl.Float64
            )

        values = floats(over_distinct(cells, parse))
        return Cells(values, np.flatnonzero(np.isnan(values) & cells.is_not_null().to_numpy()))

    def to_json(self) -> dict[str, Any]:
        """Return nothing: all spellings are known."""
        return {}

    @classmethod
    def from_json(cls, entries: Description) -> BooleanReader:
        """Return the reader that ``to_json`` described."""
        return cls()


@dataclass(frozen=True)
class TextReader:
    """Reads levels of a category, or text; a whole number reads the same from any numeric type."""

    problem: ClassVar[str] = "is not text"

    def read(self, column: pl.Series) -> Cells[pl.Series]:
        """Return trimmed strings, null where missing."""
        dtype = column.dtype
        if dtype.is_float() or isinstance(dtype, pl.Decimal):
            return Cells(_numbers_as_text(column))
        if dtype.is_nested() or dtype in (pl.Object, pl.Binary):
            refuse_type(column, "text")
        return Cells(trimmed(column))

    def to_json(self) -> dict[str, Any]:
        """Return nothing: text is text."""
        return {}

    @classmethod
    def from_json(cls, entries: Description) -> TextReader:
        """Return the reader that ``to_json`` described."""
        return cls()


def _numbers_as_text(column: pl.Series) -> pl.Series:
    """5.0 is '5', as it would be in a column of whole numbers."""
    values = column.cast(pl.Float64).fill_nan(None)
    whole = (values == values.round(0)) & (values.abs() < 2**53)
    text = values.cast(pl.String)
    return text.zip_with(
        ~whole.fill_null(False),
        values.set(~whole.fill_null(False), None).cast(pl.Int64, strict=False).cast(pl.String),
    ).alias(column.name)
