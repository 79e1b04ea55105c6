"""Dates as people write them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plap.data.columns.dates import PATTERNS, DateReader, guess_order
from plap.errors import InputError

UTC = dt.UTC
WRITTEN = {
    "ISO": ("2020-01-31", "year-month-day", (2020, 1, 31)),
    "ISO with slashes": ("2020/1/31", "year-month-day", (2020, 1, 31)),
    "ISO time": ("2020-01-31T10:20:30.5Z", "year-month-day", (2020, 1, 31, 10, 20, 30, 500000)),
    "time without seconds": ("2020-01-31 10:20", "year-month-day", (2020, 1, 31, 10, 20)),
    "zone": ("2020-01-31T01:00:00+02:00", "year-month-day", (2020, 1, 30, 23)),
    "day first": ("31/01/2020", "day-month-year", (2020, 1, 31)),
    "dots, two digits": ("31.1.20", "day-month-year", (2020, 1, 31)),
    "last century": ("31.1.75", "day-month-year", (1975, 1, 31)),
    "month first": ("01/31/2020 11:05 PM", "month-day-year", (2020, 1, 31, 23, 5)),
    "noon": ("01/31/2020 12:00 am", "month-day-year", (2020, 1, 31)),
    "name": ("3 March 2020", "day-name-year", (2020, 3, 3)),
    "German name": ("3. Mai 2020", "day-name-year", (2020, 5, 3)),
    "dashed name": ("03-Dez-20", "day-name-year", (2020, 12, 3)),
    "American": ("Mar 3rd, 2020", "name-day-year", (2020, 3, 3)),
    "mail": ("Tue, 3 Mar 2020 10:00:00 -0100", "day-name-year", (2020, 3, 3, 11)),
    "month": ("2020-11", "year-month", (2020, 11, 1)),
    "compact": ("20200131", "compact", (2020, 1, 31)),
    "compact time": ("20200131T102030Z", "compact", (2020, 1, 31, 10, 20, 30)),
    "clock": ("23:59:58", "clock", (1970, 1, 1, 23, 59, 58)),
}


@pytest.mark.parametrize(("text", "order", "parts"), WRITTEN.values(), ids=WRITTEN)
def test_written_dates(text: str, order: str, parts: tuple[int, ...]) -> None:
    column = pl.Series("c", [text])
    assert guess_order(column).order == order
    year, month, day, hour, minute, second, fraction = (*parts, 0, 0, 0, 0)[:7]
    expected = dt.datetime(year, month, day, hour, minute, second, fraction, UTC).timestamp()
    assert DateReader(order).read(column).values[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "text", ["2020-02-30", "2020-13-01", "31/02/2020", "2020-01-01 25:00", "30 Foo 2020", "24:00", "1/2", "x"]
)
def test_what_is_no_date(text: str) -> None:
    assert guess_order(pl.Series("c", [text])).share == 0
    assert all(DateReader(order).read(pl.Series("c", [text])).bad.size == 1 for order in PATTERNS)


def test_one_value_settles_day_and_month_for_the_column() -> None:
    cells = ["03/04/2020", "05/06/2020"]
    guess = guess_order(pl.Series("c", cells))
    assert (guess.order, guess.other) == ("day-month-year", "month-day-year")
    assert guess_order(pl.Series("c", [*cells, "12/25/2020"])).order == "month-day-year"
    assert guess_order(pl.Series("c", [*cells, "25/12/2020"])).other is None


def test_another_order_is_read_if_it_alone_fits() -> None:
    read = DateReader("year-month-day").read(pl.Series("c", ["31/01/2020", "01/02/2020"]))
    assert not read.bad.size
    assert read.reading == "read as day-month-year"
    assert DateReader("year-month-day").read(pl.Series("c", ["01/02/2020"])).bad.size == 1


def test_typed_dates_equal_written_ones() -> None:
    days = [dt.date(2020, 1, 31), None, dt.date(1960, 2, 29), dt.date(9999, 12, 31), dt.date(1, 1, 1)]
    typed = DateReader().read(pl.Series("c", days))
    text = DateReader().read(pl.Series("c", [str(day) if day else "NA" for day in days]))
    np.testing.assert_array_equal(typed.values, text.values)
    assert list(typed.missing) == [False, True, False, True, True]
    assert not text.bad.size
    moment = dt.datetime(2020, 6, 1, 12, tzinfo=UTC)
    zoned = pl.Series("c", [moment]).dt.convert_time_zone("Asia/Tokyo")
    assert DateReader().read(zoned).values[0] == moment.timestamp()
    assert DateReader().read(pl.Series("c", [dt.time(1, 0, 1)])).values[0] == 3601


def test_columns_of_other_types_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="column 'c': holds Float64, and must hold dates"):
        DateReader().read(pl.Series("c", [1.5]))


@settings(deadline=None)
@given(st.lists(st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)), min_size=1, max_size=20))
def test_every_calendar_day_is_read_back(moments: list[dt.datetime]) -> None:
    expected = [moment.replace(microsecond=0, tzinfo=UTC).timestamp() for moment in moments]
    for order, form in (
        ("year-month-day", "%Y-%m-%dT%H:%M:%S"),
        ("year-month-day", "%Y/%m/%d %H:%M:%S"),
        ("day-month-year", "%d.%m.%Y %H:%M:%S"),
        ("month-day-year", "%m/%d/%Y %I:%M:%S %p"),
        ("day-name-year", "%d %B %Y %H:%M:%S"),
    ):
        read = DateReader(order).read(pl.Series("c", [moment.strftime(form) for moment in moments]))
        assert list(read.values) == expected
