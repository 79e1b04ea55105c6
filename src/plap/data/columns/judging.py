"""What a column is, why, and what is to become of it: decided from all of its cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import Reader, floats, trimmed
from plap.data.columns.dates import DateReader, guess_order
from plap.data.columns.numbers import SHARE, NumberGuess, NumberReader, guess_format
from plap.data.columns.vectors import VectorReader, vector_width
from plap.data.columns.words import BOOLEAN_PAIRS, MOST_LEVELS, BooleanReader, TextReader


class Kind(StrEnum):
    """What the cells of a column are."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    CATEGORY = "category"
    DATE = "date"
    TEXT = "text"
    VECTOR = "vector"
    IDENTIFIER = "identifier"
    CONSTANT = "constant"
    EMPTY = "empty"
    UNSUPPORTED = "unsupported"
    UNREAD = "not read"


class Role(StrEnum):
    """What a column is used for."""

    FEATURE = "feature"
    DROPPED = "dropped"
    IGNORED = "ignored"
    SPLIT = "split"
    ID = "id"
    LABEL = "label"


@dataclass(frozen=True)
class Column:
    """The decision on one column.

    ``reader`` turns its cells into values and is None exactly where the column becomes no feature.
    ``looks_like_codes`` marks whole numbers that are read as numbers and may be codes of a category.
    ``missing`` and ``distinct`` count over all rows; ``examples`` are the most frequent values.
    """

    name: str
    kind: Kind
    role: Role
    why: str
    reader: Reader | None = None
    missing: int = 0
    distinct: int = 0
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    looks_like_codes: bool = False


@dataclass(frozen=True)
class ColumnPlan:
    """The decisions on all columns of a table, in the order of the table."""

    columns: tuple[Column, ...]
    rows: int

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns that become features."""
        return tuple(column for column in self.columns if column.role is Role.FEATURE)

    @property
    def split(self) -> tuple[str, ...]:
        """Names of the columns that hold a split into training, validation and test rows."""
        return tuple(column.name for column in self.columns if column.role is Role.SPLIT)


ID_NAME = re.compile(r"(?:^|[_\W])(?:id|ids|uid|uuid|guid|key|index|idx|nr|rownum|row)$", re.IGNORECASE)
CODE_NAME = re.compile(
    r"(?:^|[_\W])(?:id|code|codes|type|kind|category|cat|class|group|cluster|region|zip|plz|mcc|sic|naics|iso)$",
    re.IGNORECASE,
)
UNIX_SECONDS, UNIX_MILLISECONDS = (1e9, 2e9), (1e12, 2e12)
"""Unix times between 2001 and 2033."""


def judge(column: pl.Series, *, day_first: bool | None = None) -> Column:
    """Decide what a column is from its type and all of its cells; whether it varies is not asked here."""
    dtype = column.dtype
    if column.null_count() == column.len():
        return _drop(column, Kind.EMPTY, "every cell is missing")
    if isinstance(dtype, pl.List | pl.Array):
        return _vectors(column)
    if dtype.is_temporal() and dtype != pl.Duration:
        return _with_sentinels(_feature(column, Kind.DATE, f"holds {dtype} values", DateReader()), column)
    if dtype == pl.Duration:
        return _feature(column, Kind.NUMBER, "holds durations, read in seconds", NumberReader())
    if dtype == pl.Boolean:
        return _feature(column, Kind.BOOLEAN, "holds true and false", BooleanReader())
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return _feature(column, Kind.CATEGORY, f"holds {type(dtype).__name__} values", TextReader())
    if dtype.is_numeric():
        return judge_numbers(column, floats(column), NumberReader())
    if dtype == pl.String:
        return _text(column, day_first)
    return _drop(column, Kind.UNSUPPORTED, f"holds {dtype} values, which cannot become features")


def judge_numbers(column: pl.Series, values: NDArray[np.float64], reader: NumberReader) -> Column:
    """Decide what a column of numbers is; ``values`` [rows] are NaN where missing."""
    known = values[np.isfinite(values)]
    missing, infinite = column.len() - known.size, int(np.isinf(values).sum())
    if not known.size:
        return replace(_drop(column, Kind.EMPTY, "no cell holds a finite number"), missing=missing)
    notes = [_count(infinite, "infinite value is", "infinite values are") + " treated as missing"]
    found = replace(
        _feature(column, Kind.NUMBER, "all filled cells are numbers", reader),
        missing=missing, notes=tuple(notes * (infinite > 0)),
    )  # fmt: skip
    if ((known == 0) | (known == 1)).all():
        found = replace(found, distinct=1 + int(known.min() < known.max()))
        return replace(found, kind=Kind.BOOLEAN, why="the only values are 0 and 1", reader=BooleanReader())
    found = replace(found, distinct=pl.Series(known).n_unique())
    if column.dtype == pl.String and column.str.contains(r"^\s*[+-]?0\d").any():
        why = "written with leading zeros, as codes are"
        return replace(found, kind=Kind.CATEGORY, why=why, reader=TextReader())
    return _whole_numbers(column, found, known) if (known == np.floor(known)).all() else found


def _whole_numbers(column: pl.Series, found: Column, known: NDArray[np.float64]) -> Column:
    name, count, distinct = column.name.strip(), known.size, found.distinct
    low, high = float(known.min()), float(known.max())
    if low >= 19000101 and high <= 20991231 and distinct >= 10:
        reader = DateReader("compact")
        if not reader.read(pl.Series(known)).bad.size:
            return replace(found, kind=Kind.DATE, why="all values are dates as YYYYMMDD", reader=reader)
    if distinct == count and count >= 2 and ID_NAME.search(name):
        why = "every value is different and the name is that of an identifier"
        return replace(found, kind=Kind.IDENTIFIER, role=Role.DROPPED, why=why, reader=None)
    if distinct == count == high - low + 1 and count >= 20:
        why = "the values number the rows without a gap, as identifiers do"
        return replace(found, kind=Kind.IDENTIFIER, role=Role.DROPPED, why=why, reader=None)
    for unit, (first, last) in (("seconds", UNIX_SECONDS), ("milliseconds", UNIX_MILLISECONDS)):
        if first <= low and high < last and distinct > 1:
            note = f"looks like Unix time in {unit}; as a date it would also give month, weekday and hour"
            return replace(found, notes=(*found.notes, note))
    if _looks_like_codes(name, count, distinct, low, high):
        note = f"{distinct} different whole numbers: if they are codes, name the column as categorical"
        return replace(found, notes=(*found.notes, note), looks_like_codes=True)
    return found


def _looks_like_codes(name: str, count: int, distinct: int, low: float, high: float) -> bool:
    """Whether whole numbers may be codes: by name, because there are few, or by many digits with gaps."""
    if low < 0 or distinct < 3 or count < 3 * distinct:
        return False
    few = distinct <= 20 and count >= 30 * distinct
    digits = low >= 100 and len(f"{low:.0f}") == len(f"{high:.0f}")
    return bool(CODE_NAME.search(name)) or few or (digits and distinct < 0.2 * (high - low + 1))


def _text(column: pl.Series, day_first: bool | None) -> Column:
    parsed = column.str.strip_chars().cast(pl.Float64, strict=False)
    nulls = parsed.null_count()
    unparsed = column.filter(parsed.is_null()) if nulls > column.null_count() else None
    if nulls < column.len() and (unparsed is None or trimmed(unparsed).null_count() == unparsed.len()):
        return judge_numbers(column, floats(parsed), NumberReader())
    cells = trimmed(column).drop_nulls()
    missing = column.len() - cells.len()
    if cells.is_empty():
        return replace(_drop(column, Kind.EMPTY, "every cell is missing"), missing=missing)
    found = _booleans(column, cells) or _figures(column, cells, day_first)
    levels = cells.n_unique()
    found = found or _words(column, cells, levels)
    further = found.missing if found.kind in (Kind.NUMBER, Kind.DATE) else 0
    return replace(found, missing=missing + further, distinct=levels)


def _booleans(column: pl.Series, cells: pl.Series) -> Column | None:
    if cells.head(1000).n_unique() > 4:
        return None
    words = set(cells.unique().str.to_lowercase().to_list())
    if not any(words <= set(pair) for pair in BOOLEAN_PAIRS):
        return None
    shown = " and ".join(sorted(repr(word) for word in words))
    return _feature(column, Kind.BOOLEAN, f"the only values are {shown}", BooleanReader())


def _figures(column: pl.Series, cells: pl.Series, day_first: bool | None) -> Column | None:
    """Numbers, dates or vectors; an evenly spaced sample tells which of them are worth a full look."""
    sample = cells.gather_every(max(cells.len() // 1000, 1))
    distinct, counts = cells, np.ones(cells.len(), dtype=np.int64)
    if 2 * sample.n_unique() < sample.len():
        table = cells.alias("cell").value_counts()
        distinct, counts = table["cell"], table["count"].cast(pl.Int64).to_numpy()
    found = None
    if guess_format(sample).share >= 0.25:
        found = _written_numbers(column, distinct, counts)
    if found is None and guess_order(sample).share >= 0.25:
        found = _dates(column, distinct, counts, day_first)
    width = vector_width(column) if found is None else None
    if width is not None:
        found = _feature(
            column, Kind.VECTOR, f"every cell is a vector of {width} numbers", VectorReader(width)
        )
    return found


def _written_numbers(column: pl.Series, cells: pl.Series, counts: NDArray[np.int64]) -> Column | None:
    """The column as numbers with separators or signs, possibly with a few words for "missing"."""
    guess = guess_format(cells, counts)
    if guess.share < 0.5:
        return None
    reader = NumberReader(guess.format)
    bad = reader.read(cells).bad
    notes = _format_notes(guess)
    strays: dict[str, int] = {}
    for word, count in zip(cells.gather(bad).to_list(), counts[bad].tolist(), strict=True):
        strays[word] = strays.get(word, 0) + count
    number, why, marked = sum(strays.values()), "all filled cells are numbers", 0
    if strays and _stand_for_missing(strays):
        reader = NumberReader(guess.format, tuple(sorted({word.lower() for word in strays})))
        shown, marked = ", ".join(sorted(repr(word) for word in strays)), number
        notes.append(f"{shown} ({number:,} times) {'is' if len(strays) == 1 else 'are'} read as missing")
    elif guess.share < SHARE:
        return None
    elif strays:
        why = "almost all filled cells are numbers"
        notes.append(_count(number, "cell is", "cells are") + f" not a number, such as {min(strays)!r}")
    return replace(_feature(column, Kind.NUMBER, why, reader), notes=tuple(notes), missing=marked)


def _stand_for_missing(strays: dict[str, int]) -> bool:
    """Whether cells that are no numbers are up to three words, each of them repeated."""
    few = len(strays) <= 3 and min(strays.values()) >= 2
    return few and all(re.fullmatch(r"[^\W\d]+(?:[\s./_-]+[^\W\d]+)*\.?", word) for word in strays)


def _format_notes(guess: NumberGuess) -> list[str]:
    written = [guess.marks] if guess.marks else []
    written += ["per cent signs (read as hundredths)"] * guess.percent
    written += [f"currency signs ({', '.join(guess.currencies)})"] * bool(guess.currencies)
    notes = [f"written with {', '.join(written)}"] if written else []
    if guess.other is not None and guess.format.group == ",":
        notes.append("a comma before exactly three digits is taken as a mark between thousands")
    if len(guess.currencies) > 1:
        notes.append("amounts in several currencies are not converted")
    return notes


def _dates(
    column: pl.Series, cells: pl.Series, counts: NDArray[np.int64], day_first: bool | None
) -> Column | None:
    guess = guess_order(cells, counts)
    if guess.share < SHARE:
        return None
    order, notes = guess.order, []
    if guess.other is not None:
        wanted = guess.order if day_first is not False else guess.other
        reason = "by rule" if day_first is None else "as requested"
        notes = [f"day and month cannot be told apart: read as {wanted} {reason}"]
        order = wanted
    reader = DateReader(order)
    bad = reader.read(cells).bad
    if bad.size:
        number = int(counts[bad].sum())
        notes.append(
            _count(number, "cell is", "cells are") + f" not a date, such as {cells.gather(bad).sort()[0]!r}"
        )
    found = _feature(column, Kind.DATE, f"dates written as {order}", reader)
    return _with_sentinels(replace(found, notes=tuple(notes), missing=0), cells, counts)


def _with_sentinels(found: Column, cells: pl.Series, counts: NDArray[np.int64] | None = None) -> Column:
    """Count dates such as 9999-12-31 as missing."""
    read = DateReader(found.reader.order).read(cells) if isinstance(found.reader, DateReader) else None
    if read is None:
        return found
    absent = read.missing & cells.is_not_null().to_numpy()
    absent[read.bad] = False
    number = int(absent.sum() if counts is None else counts[absent].sum())
    if not number:
        return found
    note = _count(number, "date", "dates") + " in the year 1 or 9999 treated as missing"
    return replace(found, notes=(*found.notes, note), missing=found.missing + number)


def _words(column: pl.Series, cells: pl.Series, levels: int) -> Column:
    """Text, a category or an identifier, by the number of words and of distinct values."""
    filled = cells.len()
    blanks = cells.str.count_matches(r"\s+|[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]")
    words = 1 + float(blanks.to_numpy().mean())
    if levels > 1 and words < 1.5 and (levels == filled or (filled >= 20 and levels >= 0.95 * filled)):
        how = "every value is different" if levels == filled else f"{levels} of {filled} values are different"
        return _drop(column, Kind.IDENTIFIER, f"{how}, as identifiers are")
    if words >= 2 and (levels > MOST_LEVELS or 2 * levels > filled):
        why = f"{words:.0f} words per cell, {levels} different texts"
        return _feature(column, Kind.TEXT, why, TextReader())
    return _feature(
        column, Kind.CATEGORY, _count(levels, "different value", "different values"), TextReader()
    )


def _vectors(column: pl.Series) -> Column:
    width = vector_width(column)
    if not width:
        return _drop(column, Kind.UNSUPPORTED, f"holds {column.dtype} values, which cannot become features")
    return _feature(column, Kind.VECTOR, f"every cell is a vector of {width} numbers", VectorReader(width))


def _feature(
    column: pl.Series,
    kind: Kind,
    why: str,
    reader: NumberReader | BooleanReader | TextReader | DateReader | VectorReader,
) -> Column:
    return Column(column.name, kind, Role.FEATURE, why, reader, column.null_count())


def _drop(column: pl.Series, kind: Kind, why: str) -> Column:
    return Column(column.name, kind, Role.DROPPED, why, None, column.null_count())


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
