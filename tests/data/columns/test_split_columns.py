"""Columns that are a split are never features."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from plap.data.columns import Role, find_split, infer_columns
from plap.errors import InputError

SPLITS: dict[str, dict[str, list[Any]]] = {
    "words": {"split": ["train", "val", "test", None]},
    "other words": {"Partition": ["Training", "dev", "TEST", ""]},
    "numbers": {"split": [0, 1, 2, None]},
    "masks": {"train_mask": [1, 0, 0, 0], "val_mask": [0, 1, 0, 0], "test_mask": [0, 0, 1, 0]},
    "masks in text": {
        "Train Mask": ["true", "", "", ""],
        "is_val": ["", "yes", "", ""],
        "test": ["0", "0", "1", "0"],
    },
    "lists": {
        f"{part}_masks": [[k == j, k != j] for k in range(4)]
        for j, part in enumerate(("train", "val", "test"))
    },
}


@pytest.mark.parametrize("columns", SPLITS.values(), ids=SPLITS)
def test_splits_are_found_and_are_no_features(columns: dict[str, list[Any]]) -> None:
    frame = pl.DataFrame({"x": [1.5, 2.5, 3.5, 9.5]} | columns)
    found = find_split(frame)
    assert found is not None
    assert found.names == tuple(columns)
    for k, mask in enumerate((found.train, found.val, found.test)):
        assert list(np.flatnonzero(mask)) == [k]
    plan = infer_columns(frame, found.train | True)
    assert plan.split == tuple(columns)
    assert [column.name for column in plan.features] == ["x"]


@pytest.mark.parametrize(
    "columns",
    [
        {"x": [1, 2]},
        {"test": ["yes", "no"]},
        {"is_valid": [True, False]},
        {"transport": ["train", "bus"]},
        {"split": [0.5, 0.7]},
        {"train_mask": [3, 7]},
        {"test": [1, 0], "valid": [1, 1]},
    ],
)
def test_what_is_no_split(columns: dict[str, list[Any]]) -> None:
    frame = pl.DataFrame(columns)
    assert find_split(frame) is None
    assert all(column.role is not Role.SPLIT for column in infer_columns(frame, np.ones(2, dtype=bool)))


def test_one_of_several_splits_is_chosen_by_index() -> None:
    frame = pl.DataFrame(SPLITS["lists"])
    with pytest.raises(InputError, match="two parts"):
        find_split(frame, index=1)
    with pytest.raises(InputError, match="there is no split number 2"):
        find_split(frame, index=2)
    found = find_split(frame.select("train_masks"), index=1)
    assert found is not None
    assert list(found.train) == [False, True, True, True]


def test_a_row_in_two_parts_is_refused() -> None:
    with pytest.raises(InputError, match="column 'test_mask', row 2: the row is in two parts"):
        find_split(pl.DataFrame({"train_mask": [1, 1], "test_mask": [0, 1]}))
