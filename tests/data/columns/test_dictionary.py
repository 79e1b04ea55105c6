"""What each column became, in words and as JSON."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from column_tables import typed_table
from plap.data.columns import ColumnTransform, DataDictionary, Role, infer_columns


def dictionary(frame: pl.DataFrame) -> DataDictionary:
    train = np.ones(frame.height, dtype=bool)
    plan = infer_columns(frame, train, roles={"id": Role.ID} if "id" in frame.columns else None)
    return DataDictionary.of(plan, ColumnTransform.fit(frame, train, plan))


def test_sentences() -> None:
    frame = typed_table(6000).with_columns(
        id=pl.int_range(6000),
        flat=pl.lit(3),
        split=pl.Series(["train", "test"] * 3000),
        name=pl.format("n{}", pl.int_range(6000)),
    )
    sentences = {entry.name: entry.sentence for entry in dictionary(frame)}
    missing = frame["income"].null_count()
    assert sentences["income"] == (
        "income: number, heavy right tail, log-scaled and standardised; "
        f"{missing} of 6,000 missing, filled with the median and marked"
    )
    assert sentences["country"].startswith("country: category, one feature for each of 3 levels, missing is")
    assert sentences["town"].startswith("town: category, many levels: one feature for each of the 32 most")
    assert sentences["since"].startswith("since: date, standardised time, with month and weekday as sine and")
    assert sentences["comment"].startswith("comment: text, TF-IDF of 7 words")
    assert sentences["vector"] == "vector: vector, 3 components, each standardised"
    assert sentences["flat"] == "flat: not used, every row has the same value"
    assert sentences["split"] == "split: the split, names the part of each row: never a feature"
    assert sentences["id"] == "id: the id, set by the caller"
    assert sentences["name"] == "name: not used, every value is different, as identifiers are"


def test_json() -> None:
    entries = json.loads(json.dumps(dictionary(typed_table()).to_json(), allow_nan=False))
    assert [entry["name"] for entry in entries] == typed_table().columns
    age = entries[0]
    assert (age["kind"], age["role"], age["width"]) == ("number", "feature", 2)
    assert age["features"] == ["age", "age is missing"]
    assert age["missing"] == typed_table()["age"].null_count()
    assert len(age["examples"]) == 3


def test_a_column_of_which_nothing_is_left_is_dropped_with_a_reason() -> None:
    frame = pl.DataFrame({"x": ["one two three", "four five six", "seven eight nine"], "y": [1.5, 2.5, 3.5]})
    entry = next(iter(dictionary(frame)))
    assert (entry.role, entry.features) == (Role.DROPPED, ())
    assert entry.sentence == "x: not used, no word occurs in enough training rows to tell them apart"


def test_missing_cells_outside_the_training_rows_are_said_not_to_be_marked() -> None:
    frame = pl.DataFrame({"x": [1.5, 2.5, 4.5, None]})
    train = np.array([True, True, True, False])
    plan = infer_columns(frame, train)
    text = str(DataDictionary.of(plan, ColumnTransform.fit(frame, train, plan)))
    assert text.endswith(
        "1 of 4 missing, filled with the median but not marked, because no training row lacks it"
    )
