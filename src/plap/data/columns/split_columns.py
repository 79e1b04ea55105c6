"""Columns that say which rows are for training, validation and test."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.reading.cells import CellError, trimmed
from plap.data.columns.reading.plain import BooleanReader
from plap.data.columns.reading.vectors import as_lists

PARTS = ("train", "val", "test")
WORDS = {
    "train": ("train", "training", "tr"),
    "val": ("val", "valid", "validation", "dev", "development"),
    "test": ("test", "testing", "te", "holdout", "hold-out", "heldout"),
}
NONE = ("unlabelled", "unlabeled", "unused", "other", "ignore")
SPLIT_NAMES = ("split", "data_split", "dataset_split", "train_val_test", "train_test")
_PART = {word: part for part, words in WORDS.items() for word in words}
_MASK = re.compile(
    rf"^(?:is_|in_|mask_)?({'|'.join(sorted(_PART, key=len, reverse=True))})(?:_?masks?|_set)?$"
)


@dataclass(frozen=True)
class SplitColumns:
    """Boolean masks [rows] from the columns ``names``; ``numbered`` where 0, 1, 2 stood for the parts."""

    names: tuple[str, ...]
    train: NDArray[np.bool_]
    val: NDArray[np.bool_]
    test: NDArray[np.bool_]
    numbered: bool = False


def split_part(column: pl.Series) -> str | None:
    """Return what a column says of a split: "split", "train", "val", "test", or None if it is none.

    "split" is one column with the words train, val and test (or 0, 1, 2 if its name is ``split``); the
    others are masks of true and false, such as ``train_mask``.

    Examples
    --------
    >>> split_part(pl.Series("val_mask", [0, 1])), split_part(pl.Series("fold", ["train", "test"]))
    ('val', 'split')
    """
    name = re.sub(r"[^a-z0-9]+", "_", column.name.strip().lower()).strip("_")
    named = _MASK.match(name)
    if named and _holds_masks(column):
        return _PART[named.group(1)]
    if (
        column.dtype.is_integer()
        or column.dtype == pl.String
        or isinstance(column.dtype, pl.Categorical | pl.Enum)
    ):
        words = _words(column)
        if name in SPLIT_NAMES and words <= {"0", "1", "2"} and "0" in words:
            return "split"
        parts = {_PART[word] for word in words if word in _PART}
        known = words <= {*_PART, *NONE}
        if known and "train" in parts and (len(parts) > 1 or name in SPLIT_NAMES):
            return "split"
    return None


def find_split(frame: pl.DataFrame, *, index: int = 0) -> SplitColumns | None:
    """Return the split that the columns of a table describe, or None.

    ``index`` chooses among several splits where each cell of a mask holds a list. One column of words
    comes before masks. A row that two masks claim is refused.
    """
    parts = {name: split_part(frame[name]) for name in frame.columns}
    whole = next((name for name, part in parts.items() if part == "split"), None)
    if whole is not None:
        return _from_words(frame[whole])
    names = tuple(name for name, part in parts.items() if part is not None)
    if not names:
        return None
    masks = {part: np.zeros(frame.height, dtype=np.bool_) for part in PARTS}
    claimed = np.zeros(frame.height, dtype=np.bool_)
    for name in names:
        mask = _mask(frame[name], index)
        if (claimed & mask).any():
            row = int((claimed & mask).argmax())
            raise CellError(name, row, True, "the row is in two parts of the split")
        claimed |= mask
        masks[str(parts[name])] |= mask
    return SplitColumns(names, masks["train"], masks["val"], masks["test"])


def _words(column: pl.Series) -> set[str]:
    """Distinct filled values in lower case, as long as they are few."""
    distinct = column.head(1000).cast(pl.String).drop_nulls().unique()
    if distinct.len() > 24:
        return {"?"}
    return set(trimmed(column.unique().cast(pl.String)).drop_nulls().str.to_lowercase().to_list())


def _holds_masks(column: pl.Series) -> bool:
    lists = as_lists(column) if column.dtype.is_nested() else None
    if lists is not None:
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
    numbered = _words(column) <= {"0", "1", "2"}
    spelled = {part: (str(k),) if numbered else WORDS[part] for k, part in enumerate(PARTS)}
    train, val, test = (words.is_in(spelled[part]).fill_null(False).to_numpy() for part in PARTS)
    return SplitColumns((column.name,), train, val, test, numbered)
