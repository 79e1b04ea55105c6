"""Columns that say which rows are for training, validation and test."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.reading.cells import MISSING, CellError, trimmed
from plap.data.columns.reading.plain import BooleanReader
from plap.data.columns.reading.vectors import as_lists

PARTS = ("train", "val", "test")
WORDS = {
    "train": ("train", "training", "tr"),
    "val": ("val", "valid", "validation", "dev", "development"),
    "test": ("test", "testing", "te", "holdout", "hold-out", "heldout"),
}
NONE = ("unlabelled", "unlabeled", "unused", "other", "ignore")
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
        name = re.sub(r"[^a-z0-9]+", "_", column.name.strip().lower()).strip("_")
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
