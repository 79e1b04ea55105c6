"""Numbers as people write them: 1,234.5 · 1.234,5 · 1 234,5 · 1'234 · 12 % · € 5 · (7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.reading.cells import Cells, finite, floats, over_distinct, refuse_type, trimmed

CURRENCIES = r"US\$|A\$|C\$|R\$|[€$£¥₹₽₩₺₪₫฿₴₦₱]|USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|AUD|CAD|BRL"
SHARE = 0.9
"""A column is one of numbers (or dates) if at least this share of its filled cells are."""


@dataclass(frozen=True)
class NumberFormat:
    """The decimal mark and the mark between groups of three digits (empty: none)."""

    decimal: str = "."
    group: str = ""

    @property
    def pattern(self) -> str:
        """The regular expression of a whole cell."""
        digits = r"\d+"
        if self.group:
            mark = f"[{self.group}]"
            digits = rf"(?:[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|[1-9]\d?(?:{mark}\d\d)+{mark}\d{{3}}|\d+)"
        decimal = f"[{self.decimal}]"
        return rf"^[+-]?(?:{digits}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?$"

    def describe(self, cells: pl.Series) -> str:
        """Name the marks of this format that occur in some cells: "decimal commas"."""
        names = {",": "commas", ".": "dots", " ": "blanks", "'": "apostrophes"}
        marks = ["decimal commas"] * (self.decimal == "," and bool(cells.str.contains(",").any()))
        if self.group and _bare(cells).str.contains(self.group, literal=True).any():
            marks.append(f"{names[self.group]} between thousands")
        return " and ".join(marks)


PLAIN = NumberFormat()
COMMA = NumberFormat(",", ".")
FORMATS = (
    PLAIN,
    NumberFormat(".", ","),
    COMMA,
    NumberFormat(".", " "),
    NumberFormat(",", " "),
    NumberFormat(".", "'"),
    NumberFormat(",", "'"),
)
"""In the order of preference where several fit all cells."""


@dataclass(frozen=True)
class NumberGuess:
    """The format that fits the most cells, the other way to read them if there is one, and what was seen."""

    format: NumberFormat
    other: NumberFormat | None
    share: float
    percent: bool
    currencies: tuple[str, ...]
    marks: str


def guess_format(cells: pl.Series, counts: NDArray[np.int64] | None = None) -> NumberGuess:
    """Decide from all trimmed, filled cells how numbers are written.

    ``1,234`` in all cells can be 1234 or 1.234: a comma before exactly three digits is taken as a mark
    between thousands, and ``other`` names the other way.

    Examples
    --------
    >>> guess_format(pl.Series(["1.234,5", "7"])).format
    NumberFormat(decimal=',', group='.')
    >>> guess_format(pl.Series(["1,234", "5,678"])).other
    NumberFormat(decimal=',', group='.')
    """
    weights = np.ones(cells.len()) if counts is None else counts.astype(np.float64)
    total = max(float(weights.sum()), 1.0)
    bare = _bare(cells)
    fits = [float(weights[bare.str.contains(form.pattern).to_numpy()].sum()) for form in FORMATS]
    fitting = [form for form, fit in zip(FORMATS, fits, strict=True) if fit == max(fits)]
    chosen = fitting[0]
    marked = bool(bare.str.contains(r"[.,]").any())
    other = next((form for form in fitting[1:] if marked and form.decimal != chosen.decimal), None)
    symbols = cells.str.extract(f"({CURRENCIES})").drop_nulls().unique().sort().to_list()
    percent = bool(cells.str.ends_with("%").any())
    return NumberGuess(chosen, other, max(fits) / total, percent, tuple(symbols), chosen.describe(cells))


@dataclass(frozen=True)
class NumberReader:
    """Reads numbers of one format; per cent are hundredths, currency signs and blanks are left out.

    ``missing`` are words beside the usual ones that stand for a missing value in this column.
    """

    format: NumberFormat = PLAIN
    missing: tuple[str, ...] = ()
    problem: ClassVar[str] = "is not a number"

    def read(self, column: pl.Series) -> Cells[NDArray[np.float64]]:
        """Return float64 [rows]; text of another format is read so if all of it can be, unmistakably."""
        if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
            values, infinite = finite(floats(column))
            return Cells(values, infinite=infinite)
        if column.dtype == pl.Duration:
            return Cells(floats(column.dt.total_microseconds()) / 1e6)
        if not (column.dtype == pl.String or isinstance(column.dtype, pl.Categorical | pl.Enum)):
            refuse_type(column, "numbers")
        text = column.cast(pl.String)
        cells = self._read_text(text)
        return self._read_otherwise(text, cells) if cells.bad.size else cells

    def to_json(self) -> dict[str, Any]:
        """Return the format and the words for missing values."""
        return {"decimal": self.format.decimal, "group": self.format.group, "missing": list(self.missing)}

    @classmethod
    def from_json(cls, entries: Description) -> NumberReader:
        """Return the reader that ``to_json`` described."""
        form = NumberFormat(
            entries.text("decimal", (".", ",")), entries.text("group", ("", ",", ".", " ", "'"))
        )
        return cls(form, entries.texts("missing"))

    def _read_text(self, text: pl.Series) -> Cells[NDArray[np.float64]]:
        if self.format == PLAIN:
            parsed = text.cast(pl.Float64, strict=False)
            rest = (parsed.is_null() & text.is_not_null()).arg_true()
            values = floats(parsed).copy()
            cells = trimmed(text.gather(rest))
            values[rest.to_numpy()] = floats(self._parse(cells))
        else:
            rest, cells = pl.arange(text.len(), eager=True), trimmed(text)
            values = floats(over_distinct(cells, self._parse))
        filled = cells.is_not_null().to_numpy()
        if self.missing:
            filled &= ~cells.str.to_lowercase().is_in(self.missing).fill_null(False).to_numpy()
        bad = rest.to_numpy()[filled & np.isnan(values[rest.to_numpy()])].astype(np.intp)
        values, infinite = finite(values)
        return Cells(values, bad, infinite)

    def _read_otherwise(
        self, text: pl.Series, cells: Cells[NDArray[np.float64]]
    ) -> Cells[NDArray[np.float64]]:
        guess = guess_format(trimmed(text).drop_nulls())
        if guess.share < 1 or guess.other is not None or guess.format == self.format:
            return cells
        read = NumberReader(guess.format, self.missing)._read_text(text)
        return replace(read, reading=f"read with {guess.marks or 'decimal points'}")

    def _parse(self, cells: pl.Series) -> pl.Series:
        """Trimmed cells to Float64, null where that is impossible."""
        bare = _bare(cells)
        fits = bare.str.contains(self.format.pattern) | bare.str.contains(r"(?i)^[+-]?inf(inity)?$")
        if self.format.group:
            bare = bare.str.replace_all(self.format.group, "", literal=True)
        if self.format.decimal == ",":
            bare = bare.str.replace(",", ".", literal=True)
        values = bare.set(~fits.fill_null(False), None).cast(pl.Float64, strict=False)
        hundredths = cells.str.ends_with("%").fill_null(False)
        return values.zip_with(~hundredths, values / 100)


def _bare(cells: pl.Series) -> pl.Series:
    """Cells without currency and per cent signs, with one kind of blank, minus and apostrophe."""
    return (
        cells.str.replace_all(r"[\u00a0\u2007\u2009\u202f]", " ")
        .str.replace_all(r"[−–]", "-")
        .str.replace_all("’", "'", literal=True)
        .str.replace(r"^\((.+)\)$", "-${1}")
        .str.replace(rf"^([+-]?)\s*(?:{CURRENCIES})\s*", "${1}")
        .str.replace(rf"\s*(?:{CURRENCIES}|%)$", "")
        .str.strip_chars()
    )
