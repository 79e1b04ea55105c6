"""Budgets as people write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plap.errors import InputError
from plap.memory import parse_budget, readable


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1B", 1),
        ("3 kB", 3000),
        ("512MB", 512_000_000),
        ("4GiB", 4 * 2**30),
        (" .5 gib ", 2**29),
        ("1.5TiB", 3 * 2**39),
        (2**40, 2**40),
        (None, None),
    ],
)
def test_reads_what_people_write(text: Any, size: int | None) -> None:
    assert parse_budget(text) == size


@pytest.mark.parametrize(
    "value", ["", "4", "4G", "GiB", "-4GiB", "four GiB", "4 GiB GiB", 4.0, True, b"4GB", [4]]
)
def test_refuses_what_has_no_unit_or_is_no_size(value: Any) -> None:
    with pytest.raises(InputError, match="memory_budget must be bytes or text like '512MB' or '4GiB', not "):
        parse_budget(value)


@pytest.mark.parametrize("value", [0, -1, "0GB", "0.1B"])
def test_refuses_nothing(value: Any) -> None:
    with pytest.raises(InputError, match="budget must be positive"):
        parse_budget(value, "budget")


@given(st.integers(1, 2**50))
def test_what_is_printed_is_enough_and_not_much_more(size: int) -> None:
    again = parse_budget(readable(size))
    assert again is not None
    assert size <= again <= 1.01 * size + 1
