"""A table of raw columns: what each one is, which say how rows are split, and what is to become of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import MISSING, CellError, trimmed
from plap.data.columns.judging import Column, ColumnPlan, Kind, Role, judge
from plap.data.columns.numbers import NumberReader, following, guess_format
from plap.data.columns.vectors import as_lists
from plap.data.columns.words import BooleanReader, TextReader
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
    if not isinstance(column.reader, NumberReader):
        return column
    reader, note = following(column.reader, series, ",")
    return replace(column, reader=reader, notes=(note,)) if note else column


PARTS = ("train", "val", "test")
WORDS = {
    "train": ("train", "training", "tr"),
    "val": ("val", "valid", "validation", "dev", "development"),
    "test": ("test", "testing", "te", "holdout", "hold-out", "heldout"),
}
NONE = ("unlabelled", "unlabeled", "unused", "other", "ignore", "ignored", "exclude", "excluded", "predict")
NUMBERS = {"0", "1", "2"}
SPLIT_NAMES = ("split", "data_split", "dataset_split", "train_val_test", "train_test")
_PART = {word: part for part, words in WORDS.items() for word in words}
_MASK = re.compile(
    rf"^(?:is_|in_|mask_)?({'|'.join(sorted(_PART, key=len, reverse=True))})(?:_?masks?|_set)?$"
)


@dataclass(frozen=True)
class SplitColumns:
    """Boolean masks [rows] from the columns ``names``; ``numbered`` where 0, 1, 2 stood for the parts.

    ``rest_is_test`` where there are masks and none of them marks test rows.
    """

    names: tuple[str, ...]
    train: NDArray[np.bool_]
    val: NDArray[np.bool_]
    test: NDArray[np.bool_]
    numbered: bool = False
    rest_is_test: bool = False


def split_roles(frame: pl.DataFrame) -> dict[str, str]:
    """Return the columns that describe a split: "split" for one of words, else the part that a mask marks.

    A column of the words train, val and test (or 0, 1, 2 if its name is ``split``) is one whatever its name.
    A mask of true and false is one if its name has "mask" in it or begins like ``is_train``; a plain name
    such as ``test`` is one only where both ``train`` and another part have columns.

    Examples
    --------
    >>> split_roles(pl.DataFrame({"val_mask": [0, 1], "fold": ["train", "test"], "test": [1, 0]}))
    {'val_mask': 'val', 'fold': 'split'}
    """
    roles: dict[str, str] = {}
    plain: dict[str, str] = {}
    for column in frame.get_columns():
        name = _plain_name(column.name)
        named = _MASK.match(name)
        if named and _holds_masks(column):
            part = _PART[named.group(1)]
            sure = "mask" in name or (part == "train" and name.startswith(("is_", "in_")))
            (roles if sure else plain)[column.name] = part
        elif _holds_words(column, name in SPLIT_NAMES):
            roles[column.name] = "split"
    parts = {*plain.values(), *roles.values()}
    if "train" in parts and len(parts - {"split"}) > 1:
        roles |= plain
    return {name: roles[name] for name in frame.columns if name in roles}


def unread_splits(frame: pl.DataFrame) -> list[str]:
    """Columns that are called a split and whose cells do not say which rows are for what.

    Examples
    --------
    >>> unread_splits(pl.DataFrame({"split": [1, 2, 3], "Data split": ["train", "test", "val"]}))
    ['split']
    """
    known = split_roles(frame)
    return [name for name in frame.columns if name not in known and _plain_name(name) in SPLIT_NAMES]


def _plain_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def find_split(frame: pl.DataFrame, *, index: int = 0) -> SplitColumns | None:
    """Return the split that the columns of a table describe, or None.

    ``index`` chooses among several splits where each cell of a mask holds a list. One column of words
    comes before masks. A row that two masks claim is refused.
    """
    parts = split_roles(frame)
    whole = next((name for name, part in parts.items() if part == "split"), None)
    if whole is not None:
        return _from_words(frame[whole])
    if not parts:
        return None
    masks = {part: np.zeros(frame.height, dtype=np.bool_) for part in PARTS}
    claimed = np.zeros(frame.height, dtype=np.bool_)
    for name, part in parts.items():
        mask = _mask(frame[name], index)
        if (claimed & mask).any():
            row = int((claimed & mask).argmax())
            raise CellError(name, row, True, "the row is in two parts of the split")
        claimed |= mask
        masks[part] |= mask
    rest = "test" not in parts.values()
    return SplitColumns(tuple(parts), masks["train"], masks["val"], masks["test"], rest_is_test=rest)


def _holds_words(column: pl.Series, named: bool) -> bool:
    """Whether a column says train, val or test in each row; ``named`` if its name says that it does."""
    words = _words(column)
    if named and "0" in words and words <= NUMBERS:
        return True
    parts = {_PART[word] for word in words if word in _PART}
    return "train" in parts and words <= {*_PART, *NONE} and (named or len(parts) > 1)


def _words(column: pl.Series) -> set[str]:
    """Distinct filled values in lower case; none where they cannot be words or are too many."""
    text = column.dtype == pl.String or isinstance(column.dtype, pl.Categorical | pl.Enum)
    if not (text or column.dtype.is_integer()) or column.head(1000).n_unique() > 24:
        return set()
    return {str(value).strip().lower() for value in column.unique().to_list()} - {"none", *MISSING}


def _holds_masks(column: pl.Series) -> bool:
    if column.dtype.is_nested():
        lists = as_lists(column)
        if lists is None:
            return False
        inner = lists.explode(empty_as_null=False).drop_nulls()
        return bool(inner.is_in([0.0, 1.0]).all()) and inner.len() > 0
    if column.dtype == pl.Boolean:
        return True
    if column.dtype == pl.String:
        return not BooleanReader().read(column.unique()).bad.size
    return column.dtype.is_numeric() and not BooleanReader().read(column.unique()).bad.size


def _mask(column: pl.Series, index: int) -> NDArray[np.bool_]:
    if column.dtype.is_nested():
        lists = column.cast(pl.List(pl.Float64))
        shortest = int(lists.list.len().fill_null(0).to_numpy().min(initial=1 << 30))
        if not 0 <= index < shortest:
            raise CellError(column.name, 0, index, f"there is no split number {index}")
        column = lists.list.get(index)
    mask: NDArray[np.bool_] = BooleanReader().read(column).values == 1
    return mask


def _from_words(column: pl.Series) -> SplitColumns:
    words = trimmed(column.cast(pl.String)).str.to_lowercase()
    numbered = _words(column) <= NUMBERS
    spelled = {part: (str(k),) if numbered else WORDS[part] for k, part in enumerate(PARTS)}
    train, val, test = (words.is_in(spelled[part]).fill_null(False).to_numpy() for part in PARTS)
    return SplitColumns((column.name,), train, val, test, numbered)
