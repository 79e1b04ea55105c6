from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from plap.data.labels import codes_of, encode
from plap.errors import InputError

NAN = math.nan


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        (["b", None, "a", "b"], ["a", "b"], [1, -1, 0, 1]),
        ([3, -1, 7, 3], [3, 7], [0, -1, 1, 0]),
        (np.array([3, -1, 7]), [3, 7], [0, -1, 1]),
        (np.array([2.0, NAN, 0.0, -1.0]), [0, 2], [1, -1, 0, -1]),
        ([True, False, None], [False, True], [1, 0, -1]),
        (np.array([True, False]), [False, True], [1, 0]),
        (torch.tensor([1, -1, 0]), [0, 1], [1, -1, 0]),
        (torch.tensor([1.0, NAN, 0.0]), [0, 1], [1, -1, 0]),
        (np.array(["x", "-1", "nan"]), ["-1", "nan", "x"], [2, 0, 1]),
        (np.array(["x", None, NAN], dtype=object), ["x"], [0, -1, -1]),
        ([np.int64(4), np.float64(NAN), 2], [2, 4], [1, -1, 0]),
        (("é", "z", "é"), ["z", "é"], [1, 0, 1]),
        ([2**40, -5, -1], [-5, 2**40], [1, 0, -1]),
        ([1, -1, 1, None], [-1, 1], [1, 0, 1, -1]),
        (np.array([1.0, -1.0, NAN]), [-1, 1], [1, 0, -1]),
        (torch.tensor([-1, 1]), [-1, 1], [0, 1]),
        ([True, None, -1], [True], [0, -1, -1]),
    ],
)
def test_encode(y: Any, classes: list[Any], codes: list[int]) -> None:
    found, numbers = encode(y)
    assert found.tolist() == classes
    assert [type(value) for value in found.tolist()] == [type(value) for value in classes]
    assert numbers.dtype == np.int64
    assert numbers.tolist() == codes
    assert codes_of(y, found).tolist() == codes


@pytest.mark.parametrize(
    ("y", "word"),
    [
        ([None, NAN, -1], "no known label"),
        ([], "no known label"),
        (["a", 1], "mixes labels of type number and str"),
        ([True, 2, None], "mixes labels of type bool and number"),
        ([0.5, 1.0], r"y\[0\] = 0.5 is no class"),
        (np.array([NAN, math.inf]), r"y\[1\] = inf"),
        (np.zeros((3, 2)), r"shape \[3, 2\]"),
        ([b"a", b"b"], "not |S1"),
    ],
)
def test_refuses(y: Any, word: str) -> None:
    with pytest.raises(InputError, match=word):
        encode(y)


def test_another_mark_of_unknown() -> None:
    classes, codes = encode(["a", "?", "b", None], unknown="?")
    assert (classes.tolist(), codes.tolist()) == (["a", "b"], [0, -1, 1, -1])
    assert codes_of(["?", "b"], classes, unknown="?").tolist() == [-1, 1]
    classes, codes = encode(np.array([-1, 9, 1]), unknown=9)
    assert (classes.tolist(), codes.tolist()) == ([-1, 1], [0, -1, 1])
    assert codes_of([-1, 9, None], classes, unknown=9).tolist() == [0, -1, -1]


def test_codes_of_refuses_what_is_no_class() -> None:
    classes = np.array(["a", "c"])
    assert codes_of([None, None], classes).tolist() == [-1, -1]
    with pytest.raises(InputError, match=r"y\[2\] = .*'b'.* is none of the 2 classes"):
        codes_of(["a", None, "b"], classes)
    with pytest.raises(InputError, match="y holds 1, and the classes are of another type, such as 'a'"):
        codes_of([1], classes)


def test_numbers_are_found_among_classes_that_were_saved_as_text() -> None:
    assert codes_of([-3, 4], np.array(["-3", "4"])).tolist() == [0, 1]
    assert codes_of([10, 9], np.array(["9", "10"])).tolist() == [1, 0]
    assert codes_of(["4", None, "-3"], np.array([-3, 4])).tolist() == [1, -1, 0]
    assert codes_of(["a", "b"], np.array(["b", "a"])).tolist() == [1, 0]
    classes = np.array(["0", "1", "12"])
    assert codes_of([12, 0, None], classes).tolist() == [2, 0, -1]
    assert codes_of(np.array([1, 0]), classes).tolist() == [1, 0]
    with pytest.raises(InputError, match=r"y\[1\] = .*'7'.* is none of the 3 classes"):
        codes_of([1, 7], classes)
