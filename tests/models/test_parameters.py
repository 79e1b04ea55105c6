from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from plap import InputError
from plap.models import Parameters, choice, integer, number, share, switch


@dataclass(frozen=True)
class Everything(Parameters):
    width: int = integer(4)
    few: int = integer(2, at_least=0, at_most=3)
    free: float = number(0.0)
    rate: float = number(1.0, above=0)
    power: float = number(2.0, at_least=1)
    part: float = number(0.5, at_least=0, at_most=1)
    slope: float = number(0.0, above=-1, below=1)
    dropped: float = share(0.5)
    deep: bool = switch(False)
    way: str = choice("up", "up", "down")
    other: Any = None


def test_values_come_out_in_their_own_type() -> None:
    given: dict[str, Any] = {"width": np.int64(8), "rate": 2, "part": np.float32(0.5), "other": [1]}
    found = Everything(**given)
    assert (found.width, found.rate, found.part, found.other) == (8, 2.0, 0.5, [1])
    assert [type(value) for value in (found.width, found.rate, found.part)] == [int, float, float]


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("width", 0, "an integer of 1 or more"),
        ("width", 2.5, "an integer of 1 or more"),
        ("width", True, "an integer of 1 or more"),
        ("few", 4, "an integer from 0 to 3"),
        ("free", float("inf"), "a finite number"),
        ("free", "1", "a finite number"),
        ("rate", 0, "a positive number"),
        ("power", 0.99, "a number of at least 1"),
        ("power", float("nan"), "a number of at least 1"),
        ("part", 1.1, "a number from 0 to 1"),
        ("slope", 1, "a number above -1 and less than 1"),
        ("dropped", 1.0, "a number of at least 0 and less than 1"),
        ("deep", 1, "True or False"),
        ("way", "left", "one of up, down"),
    ],
)
def test_other_values_are_refused_by_name(field: str, value: Any, wanted: str) -> None:
    with pytest.raises(InputError) as caught:
        Everything(**{field: value})
    assert str(caught.value) == f"{field} must be {wanted}, not {value!r}"
