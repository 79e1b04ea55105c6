"""Columns of numbers: as people write them (1,234.5 · 1.234,5 · 1'234 · 12 % · € 5), and as features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import Cells, Description, finite, floats, over_distinct, refuse_type, trimmed

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


_SAMPLED = 1000
"""Rows by which a table shows its decimal mark."""


def decimal_mark_of(table: Sequence[pl.Series]) -> str | None:
    """The decimal mark of a table: that of all columns of text whose numbers can be read in one way only.

    Examples
    --------
    >>> decimal_mark_of([pl.Series(["12,34"]), pl.Series(["1.100"])])
    ','
    """
    marks = set()
    for column in table:
        if column.dtype == pl.String:
            cells = trimmed(column.head(_SAMPLED)).drop_nulls()
            guess = guess_format(cells)
            if guess.share >= SHARE and guess.other is None and bool(_bare(cells).str.contains("[.,]").any()):
                marks.add(guess.format.decimal)
    return marks.pop() if len(marks) == 1 else None


def following(reader: NumberReader, column: pl.Series, mark: str | None) -> tuple[NumberReader, str]:
    """The reader of a column in a table with this decimal mark, and what to say where it is another one.

    Only where the column itself leaves open how it is to be read: 1.100 is eleven hundred beside 12,34.
    """
    if mark is None or column.dtype != pl.String or reader.format.decimal == mark:
        return reader, ""
    cells = trimmed(column).drop_nulls()
    guess = guess_format(cells)
    found = next((form for form in (guess.format, guess.other) if form and form.decimal == mark), None)
    if guess.other is None or found is None:
        return reader, ""
    marks = found.describe(cells) or "decimal points"
    own = "commas" if mark == "," else "points"
    why = f"read with {marks}, because other columns of the table have decimal {own}"
    return replace(reader, format=found), why


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


CLIP = 10.0
"""Standardised values are limited to this many standard deviations."""
QUANTILE_TAIL = 5.0
"""A tail is heavy if the 99 % quantile is more than this many half interquartile ranges away: 2 for a
uniform distribution, 3.5 for a normal, 5.6 for an exponential one, 9.6 for a log-normal one with σ = 1."""
EXTREME_TAIL = 20.0
"""A tail is also heavy if the extreme is more than this many half interquartile ranges away."""
KNOTS = 129
SHAPES = ("linear", "log", "quantile")


@dataclass(frozen=True)
class NumberEncoder:
    r"""Standardises :math:`t(x)`, which depends on the tails of the training values.

    .. math::
        t(x) = x / u \quad\text{(linear)}, \qquad
        t(x) = \operatorname{sign}(x) \log(1 + |x| / u) \quad\text{(log)}, \qquad
        t(x) = \Phi^{-1}(\hat F(x)) \quad\text{(quantile)}.

    The result is :math:`(t(x) - \text{centre}) / \text{scale}`, limited to ±10; missing values get the
    median. ``varies`` is False where all training values are equal: only the indicator remains.
    """

    shape: str
    unit: float
    knots: tuple[float, ...]
    centre: float
    scale: float
    median: float
    varies: bool
    indicator: bool
    tail: str
    unmarked: ClassVar[str] = "filled with the training median"

    @classmethod
    def fit(cls, cells: Cells[NDArray[np.float64]], *, linear: bool = False) -> NumberEncoder:
        """Learn from training values; ``linear`` leaves the tails as they are."""
        values = cells.values[~np.isnan(cells.values)]
        indicator = 0 < values.size < cells.values.size
        if values.size == 0 or values.min() == values.max():
            median = float(values[0]) if values.size else 0.0
            return cls("linear", 1.0, (), 0.0, 1.0, median, False, indicator, "")
        median = float(np.quantile(values, 0.5, method="lower"))
        tail = "" if linear else heavy_tail(values)
        shape, unit = "linear", _power_of_two(float(np.abs(values).max()))
        knots: tuple[float, ...] = ()
        if tail:
            shape, unit = "log", _small(values)
            if heavy_tail(_transform(values, shape, unit, ())):
                shape, unit, knots = "quantile", 1.0, _knots(values)
        transformed = _transform(values, shape, unit, knots)
        centre, scale = float(transformed.mean()), float(transformed.std())
        varies = scale > 0
        return cls(shape, unit, knots, centre, scale or 1.0, median, varies, indicator, tail)

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature."""
        return [column] * self.varies + [f"{column} is missing"] * self.indicator

    def write(self, cells: Cells[NDArray[np.float64]], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; no number can be unseen."""
        missing = np.isnan(cells.values)
        if self.varies:
            filled = np.where(missing, self.median, cells.values)
            moved = _transform(filled, self.shape, self.unit, self.knots) - self.centre
            with np.errstate(over="ignore"):
                out[:, 0] = np.clip(moved / self.scale, -CLIP, CLIP)
        if self.indicator:
            out[:, -1] = missing
        return 0

    def describe(self) -> str:
        """Say what became of the numbers."""
        if not self.varies:
            return "all training values are equal, only what is missing is marked" if self.indicator else ""
        how = {"linear": "", "log": "log-scaled and ", "quantile": "mapped to normal quantiles and "}
        return f"{self.tail}{', ' if self.tail else ''}{how[self.shape]}standardised"

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {
            "shape": self.shape, "unit": self.unit, "knots": list(self.knots), "centre": self.centre,
            "scale": self.scale, "median": self.median, "varies": self.varies, "indicator": self.indicator,
            "tail": self.tail,
        }  # fmt: skip

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> NumberEncoder:
        """Return the encoder that ``to_json`` described."""
        shape, knots = entries.text("shape", SHAPES), entries.numbers("knots")
        if (shape == "quantile") != (len(knots) > 1) or list(knots) != sorted(knots):
            entries.fail("knots")
        return cls(
            shape, entries.positive("unit"), knots, entries.number("centre"), entries.positive("scale"),
            entries.number("median"), entries.flag("varies"), entries.flag("indicator"), entries.text("tail"),
        )  # fmt: skip


def heavy_tail(values: NDArray[np.float64]) -> str:
    """Say which tail of a sample is heavy: "heavy right tail", "heavy left tail", both, or nothing.

    Distances from the median are counted in half interquartile ranges. Where more than half of the values
    are equal, that range is 0 and the median distance of the others takes its place.

    Examples
    --------
    >>> heavy_tail(np.linspace(0, 1, 100)), heavy_tail(np.exp(np.linspace(-4, 4, 100)))
    ('', 'heavy right tail')
    """
    if values.size < 5:
        return ""
    scaled = values / _power_of_two(float(np.abs(values).max()))
    low, first, median, third, high = np.quantile(scaled, (0.01, 0.25, 0.5, 0.75, 0.99))
    half = max(third - median, median - first)
    away = np.abs(scaled - median)
    others = float(np.median(away[away > 0])) if (away > 0).any() else 0.0
    heavy = []
    for name, unit, far, extreme in (
        ("left", median - first, median - low, median - scaled.min()),
        ("right", third - median, high - median, scaled.max() - median),
    ):
        spread = unit or half or others
        if spread > 0 and (
            (values.size >= 50 and far > QUANTILE_TAIL * spread) or extreme > EXTREME_TAIL * spread
        ):
            heavy.append(name)
    return f"heavy {' and '.join(heavy)} tail{'s' * (len(heavy) > 1)}" if heavy else ""


def _transform(
    values: NDArray[np.float64], shape: str, unit: float, knots: tuple[float, ...]
) -> NDArray[np.float64]:
    if shape == "quantile":
        from scipy.special import ndtri  # noqa: PLC0415

        heights = ndtri((np.arange(len(knots)) + 0.5) / len(knots))
        points, first, counts = np.unique(np.array(knots), return_index=True, return_counts=True)
        middles = np.add.reduceat(heights, first) / counts
        return np.interp(values, points, middles)
    with np.errstate(over="ignore"):
        scaled = np.clip(values / unit, -1e300, 1e300)
    return np.sign(scaled) * np.log1p(np.abs(scaled)) if shape == "log" else scaled


def _power_of_two(largest: float) -> float:
    """A unit in which squares of the values can neither overflow nor vanish; dividing by it is exact."""
    return math.ldexp(1.0, max(math.frexp(largest)[1] - 1, -1000)) if largest > 0 else 1.0


def _small(values: NDArray[np.float64]) -> float:
    """The unit of the log rule: small for almost all values, so that their ratios count."""
    return max(float(np.quantile(np.abs(values[values != 0]), 0.05, method="lower")), 1e-300)


def _knots(values: NDArray[np.float64]) -> tuple[float, ...]:
    count = min(KNOTS, values.size)
    at = (np.arange(count) + 0.5) / count
    return tuple(np.quantile(values, at, method="lower").tolist())
