"""Columns of dates and times: as people write them, to seconds since 1970 (UTC), and as features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import Cells, Description, floats, over_distinct, refuse_type, trimmed
from plap.data.columns.numbers import NumberEncoder

_YEAR, _MONTH, _DAY = r"(?P<y>\d{4})", r"(?P<m>\d{1,2})", r"(?P<d>\d{1,2})"
_ANY_YEAR, _NAME = r"(?P<y>\d{4}|\d{2})", r"(?P<n>\p{L}{3,10})\.?"
_WEEKDAY = r"(?:\p{L}{2,10}\.?,\s*)?"
_CLOCK = r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}(?:[.,]\d{1,9})?))?\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
_TIME = rf"(?:(?:[T ]|,\s+){_CLOCK}\s*(?P<zone>[Zz]|UTC|GMT|[+-]\d{{2}}:?\d{{2}})?)?"
PATTERNS = {
    "year-month-day": rf"^{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}{_TIME}$",
    "day-month-year": rf"^{_DAY}[-/. ]{_MONTH}[-/. ]{_ANY_YEAR}{_TIME}$",
    "month-day-year": rf"^{_MONTH}[-/. ]{_DAY}[-/. ]{_ANY_YEAR}{_TIME}$",
    "day-name-year": rf"^{_WEEKDAY}{_DAY}(?:st|nd|rd|th|\.)?[-/ ]\s*{_NAME},?[-/ ]{_ANY_YEAR}{_TIME}$",
    "name-day-year": rf"^{_WEEKDAY}{_NAME} {_DAY}(?:st|nd|rd|th)?,? {_YEAR}{_TIME}$",
    "year-month": rf"^{_YEAR}[-/]{_MONTH}$",
    "compact": r"^(?P<y>(?:19|20)\d{2})(?P<m>\d{2})(?P<d>\d{2})"
    r"(?:[T ]?(?P<H>\d{2})(?P<M>\d{2})(?P<S>\d{2})?(?P<zone>Z)?)?$",
    "clock": rf"^{_CLOCK}$",
}
"""How dates are written, in the order of preference: where both fit, the day comes before the month."""

_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTHS = {name: k + 1 for k, name in enumerate(_NAMES)} | {
    "mär": 3, "mrz": 3, "maer": 3, "mai": 5, "okt": 10, "dez": 12,
}  # fmt: skip
SENTINEL_YEARS = (1, 9999)
"""Years that programs write for "no date"."""


@dataclass(frozen=True)
class DateGuess:
    """The order that fits the most cells, the other order if it fits as many, and the share."""

    order: str
    other: str | None
    share: float


def guess_order(cells: pl.Series, counts: NDArray[np.int64] | None = None) -> DateGuess:
    """Decide from all trimmed, filled cells how dates are written.

    Examples
    --------
    >>> guess_order(pl.Series(["03/04/2020", "12/31/2020"])).order
    'month-day-year'
    >>> guess_order(pl.Series(["03/04/2020"])).other
    'month-day-year'
    """
    weights = np.ones(cells.len()) if counts is None else counts.astype(np.float64)
    total = max(float(weights.sum()), 1.0)
    sample = cells.head(200)
    shares: dict[str, float] = {}
    for order, pattern in PATTERNS.items():
        if 2 * int(sample.str.contains(pattern).sum()) < sample.len():
            continue
        known = ~np.isnan(_parse(cells, order)[0])
        shares[order] = float(weights[known].sum()) / total
    if not shares or max(shares.values()) == 0:
        return DateGuess("year-month-day", None, 0.0)
    best = [order for order, share in shares.items() if share == max(shares.values())]
    return DateGuess(best[0], best[1] if len(best) > 1 else None, shares[best[0]])


@dataclass(frozen=True)
class DateReader:
    """Reads dates written in one order; times with a zone are converted to UTC."""

    order: str = "year-month-day"
    problem: ClassVar[str] = "is not a date"

    def read(self, column: pl.Series) -> Cells[NDArray[np.float64]]:
        """Return seconds since 1970 as float64 [rows]; another order is used if it alone fits all cells."""
        if column.dtype == pl.Time:
            return Cells(floats(column.cast(pl.Int64)) / 1e9)
        if column.dtype in (pl.Date, pl.Datetime):
            return Cells(_without_sentinels(floats(column.cast(pl.Datetime("us")).dt.epoch("us")) / 1e6))
        if column.dtype == pl.Null:
            return Cells(np.full(column.len(), np.nan))
        if self.order == "compact" and column.dtype.is_numeric():
            column = column.cast(pl.Int64, strict=False)
        elif not (column.dtype == pl.String or isinstance(column.dtype, pl.Categorical | pl.Enum)):
            refuse_type(column, "dates")
        cells = trimmed(column)
        values = self._read_text(cells)
        if values.bad.size:
            guess = guess_order(cells.drop_nulls())
            if guess.share == 1 and guess.other is None:
                read = DateReader(guess.order)._read_text(cells)
                return replace(read, reading=f"read as {guess.order}")
        return values

    def to_json(self) -> dict[str, Any]:
        """Return the order."""
        return {"order": self.order}

    @classmethod
    def from_json(cls, entries: Description) -> DateReader:
        """Return the reader that ``to_json`` described."""
        return cls(entries.text("order", tuple(PATTERNS)))

    def _read_text(self, cells: pl.Series) -> Cells[NDArray[np.float64]]:
        def parse(text: pl.Series) -> pl.Series:
            seconds, sentinel = _parse(text, self.order)
            return pl.Series(np.where(sentinel, np.inf, seconds))

        seconds = floats(over_distinct(cells, parse))
        bad = np.flatnonzero(np.isnan(seconds) & cells.is_not_null().to_numpy())
        return Cells(np.where(np.isinf(seconds), np.nan, seconds), bad)


def _parse(cells: pl.Series, order: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Seconds since 1970, NaN where a cell is no date, and which cells are sentinels."""
    if order != "year-month-day":
        return _parse_parts(cells, order)
    seconds = _parse_iso(cells)
    rest = np.flatnonzero(np.isnan(seconds))
    seconds[rest] = _parse_parts(cells.gather(rest), order)[0]
    return seconds, ~np.isnan(seconds) & np.isnan(_without_sentinels(seconds))


def _parse_iso(cells: pl.Series) -> NDArray[np.float64]:
    """Seconds since 1970 of ``2020-01-31`` and ``2020-01-31 12:00:00.5``, NaN for others; a short cut."""
    length = cells.str.len_bytes()
    days = cells.set((length != 10).fill_null(True), None).str.to_date("%Y-%m-%d", strict=False)
    seconds = floats(days.cast(pl.Int64)) * 86400
    longer = ((length >= 19) & (length <= 29)).arg_true()
    if longer.len():
        text = cells.gather(longer).str.replace("T", " ", literal=True)
        times = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
        seconds[longer.to_numpy()] = floats(times.dt.epoch("us")) / 1e6
    return seconds


def _parse_parts(cells: pl.Series, order: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    parts = cells.str.extract_groups(PATTERNS[order]).struct.unnest()
    year = _part(parts, "y", 1970)
    short = parts["y"].str.len_bytes().eq(2).fill_null(False).to_numpy() if "y" in parts.columns else False
    year = np.where(short, np.where(year < 69, 2000, 1900) + year, year)
    month, day = _part(parts, "m", 1), _part(parts, "d", 1)
    if "n" in parts.columns:
        name = parts["n"].str.to_lowercase().str.slice(0, 3)
        month = floats(name.replace_strict(list(MONTHS), list(MONTHS.values()), default=None))
    hour, minute, second = _part(parts, "H", 0), _part(parts, "M", 0), _part(parts, "S", 0)
    if "half" in parts.columns:
        half = parts["half"].str.to_lowercase().str.slice(0, 1).fill_null("").to_numpy()
        hour = np.where(half == "", hour, np.where((hour >= 1) & (hour <= 12), hour % 12, np.nan))
        hour = np.where(half == "p", hour + 12, hour)
    days = _days(year, month, day)
    clock = (hour < 24) & (minute < 60) & (second < 61)
    seconds = np.where(clock, days * 86400 + hour * 3600 + minute * 60 + second - _zone(parts), np.nan)
    matched = cells.str.contains(PATTERNS[order]).fill_null(False).to_numpy()
    seconds = np.where(matched, seconds, np.nan)
    return seconds, np.isin(year, SENTINEL_YEARS) & ~np.isnan(seconds)


def _part(parts: pl.DataFrame, name: str, default: float) -> NDArray[np.float64]:
    if name not in parts.columns:
        return np.full(parts.height, float(default))
    text = parts[name].str.replace(",", ".", literal=True)
    return floats(text.cast(pl.Float64, strict=False).fill_null(default))


def _zone(parts: pl.DataFrame) -> NDArray[np.float64]:
    """Seconds that local time is ahead of UTC."""
    if "zone" not in parts.columns:
        return np.zeros(parts.height)
    groups = parts["zone"].str.extract_groups(r"^(?P<s>[+-])(?P<h>\d{2}):?(?P<m>\d{2})$").struct.unnest()
    ahead = _part(groups, "h", 0) * 3600 + _part(groups, "m", 0) * 60
    return np.where(groups["s"].eq("-").fill_null(False).to_numpy(), -ahead, ahead)


def _days(
    year: NDArray[np.float64], month: NDArray[np.float64], day: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Days since 1970-01-01 in the Gregorian calendar, NaN where there is no such day."""
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1)
    safe_month = np.where(valid, month, 1).astype(np.int64)
    first = (np.where(valid, year, 1970).astype(np.int64) - 1970) * 12 + safe_month - 1
    starts = first.astype("datetime64[M]").astype("datetime64[D]")
    lengths = ((first + 1).astype("datetime64[M]").astype("datetime64[D]") - starts).astype(np.int64)
    return np.where(valid & (day <= lengths), starts.astype(np.int64) + day - 1, np.nan)


def _without_sentinels(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = (np.datetime64(f"{year:04d}-01-01", "s").astype(np.int64) for year in (2, 9999))
    return np.where((seconds < low) | (seconds >= high), np.nan, seconds)


PARTS = ("month", "weekday", "hour")


@dataclass(frozen=True)
class DateEncoder:
    """The standardised time, and sine and cosine of month, weekday and hour where they vary."""

    time: NumberEncoder
    parts: tuple[str, ...]
    unmarked: ClassVar[str] = "filled with the training median"

    @classmethod
    def fit(cls, cells: Cells[NDArray[np.float64]]) -> DateEncoder:
        """Learn from training values, in seconds since 1970."""
        seconds = cells.values[~np.isnan(cells.values)]
        varying = tuple(part for part in PARTS if np.unique(np.floor(_position(seconds, part))).size > 1)
        return cls(NumberEncoder.fit(cells, linear=True), varying)

    @property
    def indicator(self) -> bool:
        """Whether a feature marks missing dates."""
        return self.time.indicator

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature; the mark of missing values is the last."""
        cyclic = [f"{column} {part} {wave}" for part in self.parts for wave in ("sine", "cosine")]
        time = self.time.feature_names(column)
        return time[: self.time.varies] + cyclic + time[self.time.varies :]

    def write(self, cells: Cells[NDArray[np.float64]], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; cyclic parts of missing dates are 0."""
        if self.time.varies or self.time.indicator:
            time = np.empty((out.shape[0], self.time.varies + self.time.indicator), dtype=np.float32)
            self.time.write(cells, time)
            if self.time.varies:
                out[:, 0] = time[:, 0]
            if self.time.indicator:
                out[:, -1] = time[:, -1]
        missing = np.isnan(cells.values)
        seconds = np.where(missing, 0.0, cells.values)
        for k, part in enumerate(self.parts):
            angle = _position(seconds, part) * (2 * np.pi / _PERIODS[part])
            at = int(self.time.varies) + 2 * k
            out[:, at] = np.where(missing, 0.0, np.sin(angle))
            out[:, at + 1] = np.where(missing, 0.0, np.cos(angle))
        return 0

    def describe(self) -> str:
        """Say what became of the dates."""
        if not self.time.varies:
            return self.time.describe()
        cyclic = f", with {' and '.join(self.parts)} as sine and cosine" if self.parts else ""
        return f"standardised time{cyclic}"

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"time": self.time.to_json(), "parts": list(self.parts)}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> DateEncoder:
        """Return the encoder that ``to_json`` described."""
        return cls(NumberEncoder.from_json(entries.child("time"), tensors), entries.texts("parts", PARTS))


_PERIODS = {"month": 12, "weekday": 7, "hour": 24}


def _position(seconds: NDArray[np.float64], part: str) -> NDArray[np.float64]:
    """Where in its cycle each time is: month 0-11, weekday 0-6 (0 is Monday), hour 0-24 with its fraction."""
    days = np.floor(seconds / 86400)
    if part == "hour":
        hour: NDArray[np.float64] = (seconds - days * 86400) / 3600
        return hour
    if part == "weekday":
        weekday: NDArray[np.float64] = (days + 3) % 7
        return weekday
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return (months % 12).astype(np.float64)
