"""A table of raw columns: what each one is, and what is to become of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.decisions import Column, ColumnPlan, Kind, Role
from plap.data.columns.judging import judge
from plap.data.columns.reading.cells import trimmed
from plap.data.columns.reading.numbers import NumberReader, guess_format
from plap.data.columns.reading.plain import TextReader
from plap.data.columns.split_columns import split_roles
from plap.errors import InputError


def infer_columns(
    frame: pl.DataFrame,
    train: NDArray[np.bool_],
    *,
    categorical: Collection[str] = (),
    numeric: Collection[str] = (),
    text: Collection[str] = (),
    ignore: Collection[str] = (),
    roles: Mapping[str, Role] | None = None,
    day_first: bool | None = None,
) -> ColumnPlan:
    """Decide for every column of a table what it is and why.

    How cells are written (numbers, dates, words) is decided from all rows; whether a column varies, from
    the training rows. Labels are never looked at.

    Parameters
    ----------
    frame
        The table, columns of any type; text where a CSV reader infers nothing.
    train
        Mask of the training rows [rows].
    categorical, numeric, text
        Columns to read as this whatever they look like.
    ignore
        Columns to leave out.
    roles
        Columns with another use, such as ``{"id": Role.ID, "label": Role.LABEL}``; they are not read.
    day_first
        Whether the day comes first where a column of dates leaves it open (default: yes, with a note).

    Examples
    --------
    >>> frame = pl.DataFrame({"age": ["31", "NA", "52"], "city": ["Bern", "Wien", "Bern"]})
    >>> [str(column.kind) for column in infer_columns(frame, np.ones(3, dtype=bool))]
    ['number', 'category']
    """
    check_rows(frame, train)
    check_names(frame.columns)
    given = dict(roles or {}) | dict.fromkeys(ignore, Role.IGNORED)
    forced = _forced(frame, categorical, numeric, text, given)
    splits = split_roles(frame.drop(*given, *forced))
    columns = []
    for series in frame.get_columns():
        if series.name in given:
            column = Column(series.name, Kind.UNREAD, given[series.name], "set by the caller")
        elif series.name in forced:
            column = _force(series, forced[series.name])
        elif series.name in splits:
            column = _split(series.name, splits[series.name])
        else:
            column = _decide(series, train, day_first)
        columns.append(_with_counts(series, column))
    return ColumnPlan(tuple(_follow_decimal_commas(frame, columns)), frame.height)


def check_rows(frame: pl.DataFrame, train: NDArray[np.bool_]) -> None:
    """Refuse a mask that does not fit the table or has no training row."""
    if train.dtype != np.bool_ or train.shape != (frame.height,):
        raise InputError(
            f"the mask of training rows must be {frame.height} booleans, not {train.dtype} {train.shape}"
        )
    if not train.any():
        raise InputError("no row is a training row, and columns are scaled by those")


def check_names(names: Collection[str]) -> None:
    """Refuse two columns whose names differ by nothing but blanks around them."""
    twice = next((name for name, count in Counter(name.strip() for name in names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"the column {twice!r} is there twice")


def _forced(
    frame: pl.DataFrame,
    categorical: Collection[str],
    numeric: Collection[str],
    text: Collection[str],
    given: Mapping[str, Role],
) -> dict[str, Kind]:
    wanted = [(name, Kind.CATEGORY) for name in categorical]
    wanted += [(name, Kind.NUMBER) for name in numeric] + [(name, Kind.TEXT) for name in text]
    for name in (*(name for name, _ in wanted), *given):
        if name not in frame.columns:
            known = ", ".join(repr(column) for column in frame.columns[:8])
            raise InputError(
                f"there is no column {name!r}, the columns are {known}{', …' if frame.width > 8 else ''}"
            )
    forced: dict[str, Kind] = {}
    for name, kind in wanted:
        if name in given or forced.get(name, kind) is not kind:
            raise InputError(f"the column {name!r} is given two uses")
        forced[name] = kind
    return forced


def _force(series: pl.Series, kind: Kind) -> Column:
    why = f"named as {'categorical' if kind is Kind.CATEGORY else kind}"
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary):
        raise InputError(f"column {series.name!r}: holds {series.dtype}, and cannot be read as {kind}")
    if kind is not Kind.NUMBER:
        missing = int(TextReader().read(series).missing.sum())
        return Column(series.name, kind, Role.FEATURE, why, TextReader(), missing)
    reader = NumberReader()
    if series.dtype == pl.String:
        reader = NumberReader(guess_format(trimmed(series).drop_nulls()).format)
    missing = int(reader.read(series).missing.sum())
    return Column(series.name, kind, Role.FEATURE, why, reader, missing)


def _split(name: str, part: str) -> Column:
    says = "names the part of each row" if part == "split" else f"marks the {part} rows"
    return Column(name, Kind.UNREAD, Role.SPLIT, f"{says}: never a feature")


def _decide(series: pl.Series, train: NDArray[np.bool_], day_first: bool | None) -> Column:
    column = judge(series, day_first=day_first)
    if column.role is not Role.FEATURE:
        return column
    seen = series.filter(pl.Series(train))
    if seen.dtype.is_float():
        seen = seen.fill_nan(None)
    if seen.null_count() == seen.len():
        return _drop(column, Kind.EMPTY, "every training row is missing")
    if not seen.null_count() and bool((seen == seen.gather([0] * seen.len())).all()):
        if seen.dtype == pl.String and trimmed(seen.head(1))[0] is None:
            return _drop(column, Kind.EMPTY, "every training row is missing")
        everywhere = "every row" if column.distinct <= 1 else "every training row"
        return _drop(column, Kind.CONSTANT, f"{everywhere} has the same value")
    return column


def _drop(column: Column, kind: Kind, why: str) -> Column:
    return replace(column, kind=kind, role=Role.DROPPED, why=why, reader=None, looks_like_codes=False)


def _with_counts(series: pl.Series, column: Column) -> Column:
    """Add examples, and counts where the decision did not need them."""
    if series.dtype in (pl.Object, pl.Unknown):
        return column
    head = series.drop_nulls().head(200).unique(maintain_order=True).head(3)
    examples = tuple(_shown(value) for value in head.to_list())
    distinct = column.distinct
    if not distinct and not series.dtype.is_nested():
        distinct = series.drop_nulls().n_unique()
    missing = column.missing or series.null_count()
    return replace(column, examples=examples, distinct=distinct, missing=missing)


def _shown(value: object) -> str:
    shown = str(value).strip()
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def _follow_decimal_commas(frame: pl.DataFrame, columns: list[Column]) -> list[Column]:
    """Read an ambiguous column with decimal commas if another column of the table certainly has them."""
    readers = [column.reader for column in columns if isinstance(column.reader, NumberReader)]
    if not any(reader.format.decimal == "," for reader in readers):
        return columns
    return [_follow(frame[column.name], column) for column in columns]


def _follow(series: pl.Series, column: Column) -> Column:
    reader = column.reader
    if not isinstance(reader, NumberReader):
        return column
    if series.dtype != pl.String or reader.format.decimal == ",":
        return column
    cells = trimmed(series).drop_nulls()
    other = guess_format(cells).other
    if other is None:
        return column
    note = f"read with {other.describe(cells)}, because other columns of the table have decimal commas"
    return replace(column, reader=replace(reader, format=other), notes=(note,))
