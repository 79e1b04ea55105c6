"""What a column is taken for, and why."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from plap.data.columns import Column, Kind, Role, infer_columns
from plap.data.columns.dates import DateReader
from plap.data.columns.numbers import NumberFormat, NumberReader
from plap.errors import InputError


def decide(values: Any, name: str = "c", **options: Any) -> Column:
    column = values.alias(name) if isinstance(values, pl.Series) else pl.Series(name, values)
    return infer_columns(column.to_frame(), np.ones(column.len(), dtype=bool), **options)[name]


KINDS: dict[str, tuple[Any, Kind]] = {
    "numbers": (["1.5", "NA", "2"], Kind.NUMBER),
    "floats": ([1.5, None, float("nan"), 2.0], Kind.NUMBER),
    "decimals": ([Decimal("1.5"), Decimal("2.5")], Kind.NUMBER),
    "large integers": (pl.Series([2**100, 5, 7], dtype=pl.Int128), Kind.NUMBER),
    "durations": ([dt.timedelta(1), dt.timedelta(2)], Kind.NUMBER),
    "money": (["€ 1.234,50", "€ 7,00"], Kind.NUMBER),
    "yes and no": (["yes", "No", "", "YES"], Kind.BOOLEAN),
    "t and f": (["t", "f"], Kind.BOOLEAN),
    "0 and 1": (["0", "1", "?"], Kind.BOOLEAN),
    "0.0 and 1.0": ([0.0, 1.0, None], Kind.BOOLEAN),
    "booleans": ([True, False], Kind.BOOLEAN),
    "words": (["red", "blue", "red"], Kind.CATEGORY),
    "categorical": (pl.Series(["1", "2", "1"], dtype=pl.Categorical), Kind.CATEGORY),
    "enum": (pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), Kind.CATEGORY),
    "postal codes": (["01067", "10115", "01067"], Kind.CATEGORY),
    "dates": (["2020-01-31", "2020-02-01"], Kind.DATE),
    "typed dates": ([dt.date(2020, 1, 1), dt.date(2020, 1, 2)], Kind.DATE),
    "times": ([dt.time(1), dt.time(2)], Kind.DATE),
    "YYYYMMDD": ([20200101 + k for k in range(20)], Kind.DATE),
    "text": (["the dog barks", "a cat sleeps", "the dog sleeps"], Kind.TEXT),
    "text without blanks": (["我喜欢猫", "我喜欢狗", "他喜欢猫"], Kind.TEXT),
    "lists": ([[1.0, 2.0], [3.0, None]], Kind.VECTOR),
    "arrays": (pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int8, 2)), Kind.VECTOR),
    "written vectors": (["[1, 2.5]", "[3, 4]"], Kind.VECTOR),
    "vectors without brackets": (["0.5 -1.25 3", "1.5 2 0.25", "NA"], Kind.VECTOR),
    "telephone numbers": (["030 123 456", "089 654 321", "040 111 222"] * 2, Kind.CATEGORY),
    "strings, all distinct": (["a1", "b2", "c3"], Kind.IDENTIFIER),
    "row numbers": (list(range(100, 130)), Kind.IDENTIFIER),
    "constant": (["x", "x"], Kind.CONSTANT),
    "constant number": ([5, 5], Kind.CONSTANT),
    "null": ([None, None], Kind.EMPTY),
    "markers only": (["", "NA"], Kind.EMPTY),
    "infinite only": ([float("inf"), float("nan")], Kind.EMPTY),
    "struct": ([{"a": 1}, {"a": 2}], Kind.UNSUPPORTED),
    "object": (pl.Series([object(), object()], dtype=pl.Object), Kind.UNSUPPORTED),
    "bytes": ([b"a", b"b"], Kind.UNSUPPORTED),
    "lists of text": ([["a"], ["b"]], Kind.UNSUPPORTED),
}


@pytest.mark.parametrize(("values", "kind"), KINDS.values(), ids=KINDS)
def test_kinds(values: Any, kind: Kind) -> None:
    column = decide(values)
    assert column.kind is kind
    assert (column.role is Role.FEATURE) == (column.reader is not None)
    assert column.why


def test_names_of_identifiers_and_vectors_count() -> None:
    assert decide([7, 3, 900], "customer_id").kind is Kind.IDENTIFIER
    assert decide([7, 3, 900], "number_of_items").kind is Kind.NUMBER
    assert decide(["1 2", "3 4"], "embedding").kind is Kind.VECTOR


def test_counts_and_examples() -> None:
    column = decide(["red", "blue", "NA", None, "red"])
    assert (column.missing, column.distinct, column.examples) == (2, 2, ("red", "blue", "NA"))
    assert decide([1.0, None, float("inf"), 2.0]).missing == 2


@pytest.mark.parametrize(
    ("values", "name"),
    [([5411, 5812, 5999] * 40, "c"), ([1, 2, 3, 4, 5] * 200, "c"), ([10, 20, 30] * 5, "region_code")],
)
def test_whole_numbers_that_may_be_codes_are_numbers_with_a_note(values: list[int], name: str) -> None:
    column = decide(values, name)
    assert column.kind is Kind.NUMBER
    assert column.looks_like_codes
    assert "categorical" in column.notes[-1]
    assert decide(values, name, categorical=[name]).kind is Kind.CATEGORY


def test_ages_and_years_do_not_look_like_codes() -> None:
    random = np.random.default_rng(0)
    assert not decide(random.integers(18, 90, 600), "age").looks_like_codes
    assert not decide(random.integers(1950, 2020, 600), "year").looks_like_codes


def test_unix_times_are_numbers_with_a_note() -> None:
    column = decide([1_600_000_000 + 997 * k for k in range(30)])
    assert column.kind is Kind.NUMBER
    assert "Unix time in seconds" in column.notes[0]


def test_a_repeated_word_among_numbers_is_missing() -> None:
    column = decide(["5", "7", "9", "unknown", "Unknown"] * 4)
    assert column.kind is Kind.NUMBER
    assert column.missing == 8
    assert column.reader == NumberReader(missing=("unknown",))


def test_few_strays_leave_a_number_and_many_do_not() -> None:
    numbers = [str(k / 7) for k in range(50)]
    assert decide([*numbers, "x1"]).notes == ("1 cell is not a number, such as 'x1'",)
    assert decide([*numbers, *(f"x{k}" for k in range(30))]).kind is not Kind.NUMBER


def test_ambiguous_numbers_follow_the_decimal_commas_of_other_columns() -> None:
    frame = pl.DataFrame(
        {"a": ["1,234", "5,678"], "b": ["1.234", "5.678"], "sure": ["0,5", "1,75"], "c": ["1.5", "2.25"]}
    )
    train = np.ones(2, dtype=bool)
    plan = infer_columns(frame, train)
    for name in "ab":
        assert plan[name].reader == NumberReader(NumberFormat(",", "."))
        assert "other columns" in plan[name].notes[0]
    assert plan["c"].reader == NumberReader()
    alone = infer_columns(frame.drop("sure"), train)
    assert alone["a"].reader == NumberReader(NumberFormat(".", ","))
    assert "three digits" in alone["a"].notes[1]
    assert alone["b"].reader == NumberReader()


def test_ambiguous_dates_follow_the_rule_or_the_caller() -> None:
    cells = ["01/02/2020", "03/04/2020"]
    assert decide(cells).reader == DateReader("day-month-year")
    assert "cannot be told apart" in decide(cells).notes[0]
    assert decide(cells, day_first=False).reader == DateReader("month-day-year")


def test_sentinel_dates_are_missing_with_a_note() -> None:
    for cells in (["2020-01-01", "9999-12-31", "2021-01-01"], [dt.date(2020, 1, 1), dt.date(9999, 12, 31)]):
        column = decide(cells)
        assert column.missing == 1
        assert "9999" in column.notes[0]


def test_a_column_that_varies_outside_the_training_rows_only_is_constant() -> None:
    frame = pl.DataFrame({"a": ["x", "x", "y"], "b": ["NA", "NA", "1"], "c": [None, None, 2.5]})
    plan = infer_columns(frame, np.array([True, True, False]))
    assert [column.kind for column in plan] == [Kind.CONSTANT, Kind.EMPTY, Kind.EMPTY]
    assert "training" in plan["a"].why


def test_roles_are_kept_and_not_read() -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "label": ["u", "v"], "x": [1.5, 2.5], "y": [1.5, 2.5]})
    plan = infer_columns(
        frame, np.ones(2, dtype=bool), roles={"id": Role.ID, "label": Role.LABEL}, ignore=["y"]
    )
    assert [column.role for column in plan] == [Role.ID, Role.LABEL, Role.FEATURE, Role.IGNORED]
    assert [column.name for column in plan.features] == ["x"]


def test_bad_requests_are_refused() -> None:
    frame = pl.DataFrame({"a": ["1", "2"], "b": [[1], [2]]})
    train = np.ones(2, dtype=bool)
    with pytest.raises(InputError, match="there is no column 'z'"):
        infer_columns(frame, train, categorical=["z"])
    with pytest.raises(InputError, match="'a' is given two uses"):
        infer_columns(frame, train, categorical=["a"], ignore=["a"])
    with pytest.raises(InputError, match="'a' is given two uses"):
        infer_columns(frame, train, categorical=["a"], numeric=["a"])
    with pytest.raises(InputError, match="column 'b': holds List"):
        infer_columns(frame, train, categorical=["b"])
    with pytest.raises(InputError, match="no row is a training row"):
        infer_columns(frame, ~train)
    with pytest.raises(InputError, match="must be 2 booleans"):
        infer_columns(frame, np.ones(3, dtype=bool))
    with pytest.raises(InputError, match="'a' is there twice"):
        infer_columns(frame.rename({"b": " a"}), train)
