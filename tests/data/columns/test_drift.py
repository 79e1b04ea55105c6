"""How far a new table is from the training rows."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from column_tables import KINDS, typed_table
from plap.data.columns import ColumnTransform, drift, infer_columns
from plap.errors import InputError


@pytest.fixture(scope="module")
def transform() -> ColumnTransform:
    frame = typed_table(1000)
    train = np.ones(1000, dtype=bool)
    fitted = ColumnTransform.fit(frame, train, infer_columns(frame, train))
    return ColumnTransform.from_json(json.dumps(fitted.to_json()), fitted.tensors())


def test_the_training_rows_have_none(transform: ColumnTransform) -> None:
    for found in drift(transform, typed_table(1000)):
        assert found.psi == pytest.approx(0, abs=1e-12)
        assert found.distance == pytest.approx(0, abs=1e-12)
        assert found.p_value == pytest.approx(1)
        assert not found.notable
        assert found.sentence == ""


@pytest.mark.parametrize("rows", [5, 50, 1000])
def test_rows_of_the_same_distribution_have_none_to_speak_of(transform: ColumnTransform, rows: int) -> None:
    frames = [typed_table(rows, seed) for seed in range(1, 6)]
    assert [found for frame in frames for found in drift(transform, frame) if found.notable] == []


def test_each_kind_of_column_can_drift(transform: ColumnTransform) -> None:
    frame = typed_table(300, seed=9).with_columns(
        age=pl.col("age") + 40,
        income=pl.col("income") * 5,
        member=pl.lit(True),
        country=pl.lit("FR"),
        town=pl.lit("elsewhere"),
        since=pl.col("since") + pl.duration(days=4000),
        comment=pl.lit("other words entirely"),
        vector=pl.col("vector").arr.to_list().list.eval(pl.element() * 3),
    )
    found = {entry.column: entry for entry in drift(transform, frame)}
    assert set(found) == set(KINDS)
    assert all(entry.notable and entry.sentence.startswith(name) for name, entry in found.items())
    assert "the median is" in found["income"].sentence
    assert "'FR' is" in found["country"].sentence
    assert "20" in found["since"].sentence
    json.dumps([entry.to_json() for entry in found.values()], allow_nan=False)


def test_missing_values_are_drift(transform: ColumnTransform) -> None:
    frame = typed_table(300, seed=9).with_columns(age=pl.lit(None, dtype=pl.Int64))
    found = next(entry for entry in drift(transform, frame) if entry.column == "age")
    assert found.notable
    assert found.missing_now == 1
    assert found.sentence.startswith("age: missing in ")


def test_the_index_is_its_formula() -> None:
    frame = pl.DataFrame({"c": ["a"] * 60 + ["b"] * 40})
    train = np.ones(100, dtype=bool)
    transform = ColumnTransform.fit(frame, train, infer_columns(frame, train))
    (found,) = drift(transform, pl.DataFrame({"c": ["a"] * 20 + ["b"] * 80}))
    assert found.psi == pytest.approx(0.4 * np.log(0.8 / 0.4) - 0.4 * np.log(0.2 / 0.6))
    assert found.distance == pytest.approx(0.4)


def test_a_table_without_rows_or_columns(transform: ColumnTransform) -> None:
    assert drift(transform, typed_table(10).head(0)) == []
    with pytest.raises(InputError, match="no column 'age'"):
        drift(transform, typed_table(10).drop("age"))
