"""Fitted on training rows, stored, applied by name."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from column_tables import KINDS, text_table, typed_table
from plap.data.columns import CellError, ColumnTransform, drift, infer_columns
from plap.errors import InputError

TRAIN = np.arange(200) % 2 == 0


def fitted(frame: pl.DataFrame, train: NDArray[np.bool_] = TRAIN) -> ColumnTransform:
    return ColumnTransform.fit(frame, train, infer_columns(frame, train))


def test_text_and_types_give_the_same_features() -> None:
    text, typed = fitted(text_table()), fitted(typed_table())
    assert [column.name for column in text.columns] == list(KINDS)
    assert text.feature_names == typed.feature_names
    expected = typed.apply(typed_table()).matrix
    np.testing.assert_array_equal(text.apply(text_table()).matrix, expected)
    np.testing.assert_array_equal(text.apply(typed_table()).matrix, expected)
    np.testing.assert_array_equal(typed.apply(text_table()).matrix, expected)
    assert expected.dtype == np.float32
    assert np.isfinite(expected).all()


def test_groups_name_the_source_of_each_feature() -> None:
    transform = fitted(typed_table())
    assert len(transform.groups) == len(transform.feature_names) == len(set(transform.feature_names))
    assert set(transform.groups) == set(KINDS)
    assert all(
        name.startswith(group) for name, group in zip(transform.feature_names, transform.groups, strict=True)
    )


def test_round_trip_through_files(tmp_path: Path) -> None:
    frame = typed_table()
    transform = fitted(frame)
    save_file(transform.tensors(), tmp_path / "columns.safetensors")
    text = json.dumps(transform.to_json(), allow_nan=False)
    loaded = ColumnTransform.from_json(text, load_file(tmp_path / "columns.safetensors"))
    assert loaded.feature_names == transform.feature_names
    assert loaded.to_json() == transform.to_json()
    other = typed_table(seed=1)
    np.testing.assert_array_equal(loaded.apply(other).matrix, transform.apply(other).matrix)


@settings(deadline=None, max_examples=20)
@given(st.randoms(use_true_random=False), st.integers(1, 200))
def test_rows_do_not_depend_on_their_order_nor_on_each_other(random: Any, rows: int) -> None:
    frame = typed_table()
    transform = fitted(frame)
    whole = transform.apply(frame).matrix
    some = random.sample(range(200), rows)
    columns = random.sample(frame.columns, len(frame.columns))
    np.testing.assert_array_equal(transform.apply(frame[some].select(columns)).matrix, whole[some])


def test_other_rows_than_training_rows_change_nothing() -> None:
    frame, other = typed_table(), typed_table(seed=5, missing=0.4)
    mixed = pl.concat(
        [
            frame.with_row_index("row").filter(pl.Series(TRAIN)),
            other.with_row_index("row").filter(pl.Series(~TRAIN)),
        ]
    )
    mixed = mixed.sort("row").drop("row")
    plan = infer_columns(frame, TRAIN)
    first, second = (ColumnTransform.fit(table, TRAIN, plan) for table in (frame, mixed))
    assert first.to_json() == second.to_json()
    assert fitted(mixed).to_json() == first.to_json()
    for name, array in first.tensors().items():
        np.testing.assert_array_equal(array, second.tensors()[name])


def test_columns_are_found_by_name() -> None:
    frame = typed_table()
    transform = fitted(frame)
    applied = transform.apply(
        frame.with_columns(new=1, further=2).select(sorted([*frame.columns, "new", "further"]))
    )
    np.testing.assert_array_equal(applied.matrix, transform.apply(frame).matrix)
    extra = [note for note in applied.notes if note.what == "extra"]
    assert [note.count for note in extra] == [2]
    assert "'further', 'new'" in str(extra[0])
    with pytest.raises(InputError, match="has no column 'age', 'town', which the model needs"):
        transform.apply(frame.drop("age", "town"))


def test_columns_without_use_are_not_missed_and_not_extra() -> None:
    frame = pl.DataFrame({"x": [1.5, 2.5, 9.5], "constant": [1, 1, 1], "id": ["a", "b", "c"]})
    transform = fitted(frame, np.ones(3, dtype=bool))
    assert transform.unused == ("constant", "id")
    assert transform.apply(frame).notes == []
    assert transform.apply(frame.select("x")).matrix.shape == (3, 1)


def test_bad_cells_are_refused_with_their_row_or_counted() -> None:
    frame = pl.DataFrame({"x": ["1.5", "2.5", "4"], "day": ["2020-01-01", "2020-01-02", "2020-03-05"]})
    transform = fitted(frame, np.ones(3, dtype=bool))
    bad = frame.with_columns(x=pl.Series(["1", "abc", "?"]))
    with pytest.raises(CellError, match="column 'x', row 2: 'abc' is not a number") as caught:
        transform.apply(bad)
    assert (caught.value.column, caught.value.row, caught.value.value) == ("x", 1, "abc")
    applied = transform.apply(bad, on_bad="missing")
    assert {note.what: note.count for note in applied.notes} == {"bad": 1, "missing": 2}
    assert applied.matrix[1, 0] == applied.matrix[2, 0]
    with pytest.raises(InputError, match="column 'day', row 1: 'soon' is not a date"):
        transform.apply(frame.with_columns(day=pl.lit("soon")))
    with pytest.raises(InputError, match="column 'x': holds Date, and must hold numbers"):
        transform.apply(frame.with_columns(x=pl.Series([None] * 3, dtype=pl.Date)))


def test_a_bad_training_cell_is_named_by_its_row_of_the_table() -> None:
    cells = [str(k / 7) for k in range(40)]
    cells[31] = "x7"
    frame = pl.DataFrame({"x": cells})
    train = np.arange(40) > 20
    plan = infer_columns(frame, train)
    with pytest.raises(InputError, match="column 'x', row 32: 'x7' is not a number"):
        ColumnTransform.fit(frame, train, plan)
    assert ColumnTransform.fit(frame, train, plan, on_bad="missing").feature_names == ("x", "x is missing")


def test_wrong_widths_of_vectors_are_refused() -> None:
    frame = pl.DataFrame({"v": [[1.0, 2.0], [3.0, 5.0], [2.0, 9.0]]})
    transform = fitted(frame, np.ones(3, dtype=bool))
    with pytest.raises(InputError, match=r"column 'v', row 2: \[3.0\] is not a vector of 2 numbers"):
        transform.apply(pl.DataFrame({"v": [[1.0, 2.0], [3.0]]}))
    with pytest.raises(InputError, match="column 'v', row 1: 'abc' is not a vector"):
        transform.apply(pl.DataFrame({"v": ["abc", "[1, 2]"]}))


def test_notes_count_what_the_training_rows_did_not_have() -> None:
    frame = typed_table(missing=0)
    transform = fitted(frame)
    new = frame.with_columns(
        country=pl.lit("XX"), income=pl.lit(float("inf")), age=pl.lit(None, dtype=pl.Int64)
    )
    notes = {(note.what, note.column): note.count for note in transform.apply(new).notes}
    assert notes["unseen", "country"] == 200
    assert notes["infinite", "income"] == 200
    assert notes["missing", "age"] == 200


def test_another_spelling_of_numbers_is_noted() -> None:
    transform = fitted(pl.DataFrame({"x": ["1.5", "2.25"]}), np.ones(2, dtype=bool))
    applied = transform.apply(pl.DataFrame({"x": ["1,5", "2,25"]}))
    assert list(applied.matrix[:, 0]) == [-1, 1]
    assert [note.what for note in applied.notes] == ["reading"]


def test_tables_of_one_row_and_of_none() -> None:
    frame = typed_table()
    transform = fitted(frame)
    assert transform.apply(frame.head(0)).matrix.shape == (0, len(transform.feature_names))
    single = fitted(frame.head(1), np.ones(1, dtype=bool))
    assert single.columns == ()
    assert single.apply(frame).matrix.shape == (200, 0)
    one = np.zeros(200, dtype=bool)
    one[3] = True
    assert fitted(frame, one).columns == ()


def test_names_of_features_are_distinct() -> None:
    frame = pl.DataFrame({"a": [1.5, None, 2.5], "a is missing": [1.5, 2.5, 7.5]})
    transform = fitted(frame, np.ones(3, dtype=bool))
    assert transform.feature_names == ("a", "a is missing", "a is missing (2)")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to every entry of a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [p for key, entry in inside for p in places(entry, (*path, key))]


DESCRIBED = fitted(typed_table())
PLACES = [
    path for path in places(DESCRIBED.to_json()) if "words" not in path[:-1] and "levels" not in path[:-1]
]


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(PLACES), st.sampled_from([None, -1, 0, 1.5, "x", [], {}, True, float("nan"), ["a", "a"]])
)
def test_a_damaged_description_is_refused_or_harmless(path: tuple[Any, ...], value: Any) -> None:
    damaged = copy.deepcopy(DESCRIBED.to_json())
    inside = damaged
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    try:
        loaded = ColumnTransform.from_json(damaged, DESCRIBED.tensors())
        matrix = loaded.apply(typed_table(), on_bad="missing").matrix
    except InputError:
        return
    assert np.isfinite(matrix).all()


@pytest.mark.parametrize(
    "description", ["", "{", "[]", "null", '{"format": "other"}', '{"format": "plap columns"}']
)
def test_what_is_no_description_is_refused(description: str) -> None:
    with pytest.raises(InputError, match="the stored description of the columns is damaged"):
        ColumnTransform.from_json(description)


def test_missing_or_wrong_tensors_are_refused() -> None:
    tensors = DESCRIBED.tensors()
    for name, array in tensors.items():
        for wrong in (array[:-1], array.astype(np.float32), array[None], -array):
            if not (name.endswith("centre") and wrong.dtype == np.float64 and wrong.shape == array.shape):
                with pytest.raises(InputError, match="damaged"):
                    ColumnTransform.from_json(DESCRIBED.to_json(), tensors | {name: wrong})
    with pytest.raises(InputError, match="damaged"):
        ColumnTransform.from_json(DESCRIBED.to_json())


def test_another_version_is_refused() -> None:
    with pytest.raises(InputError, match="another version"):
        ColumnTransform.from_json(DESCRIBED.to_json() | {"version": 2})


CELL = st.one_of(
    st.none(),
    st.sampled_from(
        ["NA", "yes", "1,5", "1.234,5", "12%", "2020-01-31", "01/02/2020", "[1, 2]", "train", "€ 5"]
    ),
    st.floats().map(str),
    st.integers(-(10**30), 10**30).map(str),
    st.text(max_size=12),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=25), st.data())
def test_any_table_of_text_gives_finite_features_or_a_sentence(
    rows: list[list[str | None]], data: Any
) -> None:
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String, "c": pl.String}, orient="row")
    train = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    try:
        transform = ColumnTransform.fit(frame, train, infer_columns(frame, train), on_bad="missing")
        matrix = transform.apply(frame, on_bad="missing").matrix
    except InputError:
        return
    assert np.isfinite(matrix).all()
    assert matrix.shape == (len(rows), len(transform.groups))
    again = ColumnTransform.from_json(json.dumps(transform.to_json(), allow_nan=False), transform.tensors())
    np.testing.assert_array_equal(again.apply(frame[::-1], on_bad="missing").matrix, matrix[::-1])


def test_other_columns_say_how_an_ambiguous_one_is_written() -> None:
    """1.100 is eleven hundred beside 12,34, and eleven tenths beside 12.34."""
    count = [str(300 + k * k % 70) for k in range(200)]
    price = [f"{k},{k % 90 + 10}" for k in range(200)]
    transform = fitted(pl.DataFrame({"count": count, "price": price}))

    def features(count: str, price: str) -> Any:
        return transform.apply(pl.DataFrame({"count": [count] * 3, "price": [price] * 3}))

    plain = features("1100", "12,34")
    found = features("1.100", "12,34")
    assert np.array_equal(found.matrix, plain.matrix)
    (note,) = found.notes
    assert "count: read with dots between thousands, because other columns of the table have" in str(note)
    assert np.array_equal(features("1.100", "12.34").matrix, features("1,1", "12,34").matrix)
    assert not plain.notes
    small = pl.DataFrame({"count": ["1.100"] * 3, "price": ["12,34"] * 3})
    assert drift(transform, small)[0].sentence == drift(
        transform, small.with_columns(count=pl.lit("1100"))
    )[0].sentence  # fmt: skip


def test_columns_that_contradict_each_other_say_nothing() -> None:
    frame = pl.DataFrame({name: [str(300 + k * k % 70) for k in range(200)] for name in "abc"})
    transform = fitted(frame)
    table = pl.DataFrame({"a": ["1.100"], "b": ["12,34"], "c": ["12.34"]})
    assert not any("because" in str(note) for note in transform.apply(table).notes)
