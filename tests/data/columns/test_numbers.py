"""Numbers as people write them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plap.data.columns.cells import MISSING
from plap.data.columns.numbers import FORMATS, NumberFormat, NumberReader, guess_format
from plap.errors import InputError

WRITTEN = {
    "1,234.5 and 2,000,000": (["1,234.5", "2,000,000", "7"], [1234.5, 2e6, 7]),
    "1.234,5": (["1.234,5", "2.000.000", "7,25"], [1234.5, 2e6, 7.25]),
    "1 234,5 with any blank": (["1 234,5", "2\u202f000\u00a0000", "7"], [1234.5, 2e6, 7]),
    "1'234.5 with any apostrophe": (["1'234.5", "2’000'000", "7"], [1234.5, 2e6, 7]),
    "Indian groups": (["1,23,456", "12,34,56,789.5"], [123456, 123456789.5]),
    "per cent": (["12%", "7.5 %", "-3%"], [0.12, 0.075, -0.03]),
    "currency": (["€ 5", "€7.50", "12 EUR", "-€3", "$1,000.00"], [5, 7.5, 12, -3, 1000]),
    "accounting": (["(1,234.50)", "5.00"], [-1234.5, 5]),
    "signs": (["+5", "−3", "1e-3", ".5", "5."], [5, -3, 1e-3, 0.5, 5]),
    "blanks around": (["  5", "7 ", "\t9"], [5, 7, 9]),
    "decimal commas": (["0,5", "12,25"], [0.5, 12.25]),
    "a leading zero is no group": (["0,123", "1,234"], [0.123, 1.234]),
}


def read_as_guessed(cells: list[str]) -> list[float]:
    column = pl.Series("c", cells)
    read = NumberReader(guess_format(column.str.strip_chars()).format).read(column)
    assert not read.bad.size
    return list(read.values)


@pytest.mark.parametrize(("cells", "numbers"), WRITTEN.values(), ids=WRITTEN)
def test_written_numbers(cells: list[str], numbers: list[float]) -> None:
    np.testing.assert_allclose(read_as_guessed(cells), numbers, rtol=1e-15)


def test_a_comma_before_three_digits_everywhere_is_ambiguous() -> None:
    guess = guess_format(pl.Series(["1,234", "-5,678"]))
    assert guess.format == NumberFormat(".", ",")
    assert guess.other == NumberFormat(",", ".")
    assert guess_format(pl.Series(["1,234", "5,678.9"])).other is None
    assert guess_format(pl.Series(["12", "34"])).other is None


@pytest.mark.parametrize("marker", [*MISSING, " NA ", "NaN", "#N/A", "NULL"])
def test_missing_markers_are_missing_and_never_bad(marker: str) -> None:
    for form in FORMATS:
        read = NumberReader(form).read(pl.Series("c", ["5", marker, None]))
        assert list(np.isnan(read.values)) == [False, True, True]
        assert not read.bad.size


def test_infinite_numbers_are_missing_and_counted() -> None:
    for cells in (["1", "inf", "-Infinity", "1e400"], [1.0, np.inf, -np.inf, np.inf]):
        read = NumberReader().read(pl.Series("c", cells))
        assert read.infinite == 3
        assert np.isnan(read.values[1:]).all()


def test_bad_cells_are_named_by_row() -> None:
    read = NumberReader().read(pl.Series("c", ["5", "abc", "1_000", None, "0x10"]))
    assert list(read.bad) == [1, 2, 4]
    assert np.isnan(read.values[1:]).all()


def test_another_format_is_read_if_it_is_unmistakable() -> None:
    read = NumberReader().read(pl.Series("c", ["1,5", "2,75"]))
    assert list(read.values) == [1.5, 2.75]
    assert read.reading == "read with decimal commas"
    assert NumberReader().read(pl.Series("c", ["1,234", "2,345"])).bad.size == 2
    assert NumberReader().read(pl.Series("c", ["1,5", "x"])).bad.size == 2


def test_own_words_for_missing() -> None:
    read = NumberReader(missing=("unknown",)).read(pl.Series("c", ["1", "Unknown", "other"]))
    assert list(read.bad) == [2]


def test_columns_of_other_types_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"column 'c': holds Struct.*must hold numbers"):
        NumberReader().read(pl.Series("c", [{"a": 1}]))


def written(value: float, form: NumberFormat) -> str:
    text = f"{value:,.3f}" if form.group else f"{value:.3f}"
    return text.replace(",", "_").replace(".", form.decimal).replace("_", form.group)


@settings(deadline=None)
@given(
    values=st.lists(st.integers(-(10**12), 10**12).map(lambda k: k / 1000 + 0.0005), min_size=1, max_size=30),
    form=st.sampled_from(FORMATS),
)
def test_numbers_with_four_decimals_are_read_back_in_every_format(
    values: list[float], form: NumberFormat
) -> None:
    cells = [written(value, form).replace(form.decimal, f"{form.decimal}0") for value in values]
    plain = [float(written(value, NumberFormat()).replace(".", ".0")) for value in values]
    assert read_as_guessed(cells) == plain
