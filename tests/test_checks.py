"""Every check returns what is right as a plain Python value and refuses what is not in one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch

from plap.checks import (
    check_choice,
    check_finite,
    check_flag,
    check_integer,
    check_nodes,
    check_number,
    did_you_mean,
    import_extra,
)
from plap.errors import InputError

Kind = Literal["fast", "exact"]


def test_what_is_right_comes_back_as_a_plain_value() -> None:
    for value in (3, np.int32(3), np.uint8(3)):
        found = check_integer("K", value, 1, 3)
        assert (found, type(found)) == (3, int)
    for number in (2, 2.0, np.float32(2), torch.tensor(2.0), torch.tensor(2)):
        result = check_number("p", number, least=1, most=2)
        assert (result, type(result)) == (2.0, float)
    assert check_integer("shift", -5) == -5
    assert check_number("any", -5) == -5
    assert check_flag("residual", False) is False
    assert check_choice("kind", "fast", Kind) == "fast"
    assert check_choice("kind", "b", {"a": 1, "b": 2}) == "b"
    assert import_extra("math", "none", "nothing") is math


REFUSALS: list[tuple[Callable[[], Any], str]] = [
    (lambda: check_integer("K", 0, 1), "K must be an integer of 1 or more, not 0"),
    (lambda: check_integer("K", True, 1), "K must be an integer of 1 or more, not True"),
    (
        lambda: check_integer("K", torch.nn.Sequential(torch.nn.ReLU())),
        "K must be an integer, not a Sequential",
    ),
    (lambda: check_finite("x", torch.tensor([0, math.nan], requires_grad=True)), "x[1] = nan is not finite"),
    (lambda: check_integer("K", 2.0), "K must be an integer, not 2.0"),
    (lambda: check_integer("K", "4", 1, 9), "K must be an integer from 1 to 9, not '4'"),
    (lambda: check_integer("K", 10, most=9), "K must be an integer of at most 9, not 10"),
    (lambda: check_number("p", 0.9, least=1), "p must be a finite number of at least 1, not 0.9"),
    (lambda: check_number("p", math.inf, least=1), "p must be a finite number of at least 1, not inf"),
    (lambda: check_number("p", math.nan), "p must be a finite number, not nan"),
    (lambda: check_number("p", 1, above=1), "p must be a finite number above 1, not 1"),
    (lambda: check_number("mu", 0.0, above=0), "mu must be a positive finite number, not 0.0"),
    (lambda: check_number("mu", None, above=0), "mu must be a positive finite number, not None"),
    (lambda: check_number("mu", True, above=0), "mu must be a positive finite number, not True"),
    (lambda: check_nodes([[0, 1]], 3), "nodes must be whole numbers, one per node"),
    (lambda: check_nodes(np.array([2, 3]), 3), "nodes must lie between 0 and 2, not 3"),
    (lambda: check_number("rate", 2, least=0, most=1), "rate must be a number from 0 to 1, not 2"),
    (lambda: check_number("d", 1, least=0, below=1), "d must be a number of at least 0 and below 1, not 1"),
    (lambda: check_number("s", 0, above=0, below=1), "s must be a number above 0 and below 1, not 0"),
    (lambda: check_number("s", 3, most=2), "s must be a number of at most 2, not 3"),
    (
        lambda: check_number("p", torch.tensor(0.9), least=1),
        "p must be a finite number of at least 1, not 0.9",
    ),
    (lambda: check_number("p", torch.ones(2)), "p must be one number, not a tensor of shape [2]"),
    (lambda: check_flag("bias", "yes"), "bias must be True or False, not 'yes'"),
    (lambda: check_choice("kind", "slow", Kind), "kind must be one of fast, exact, not 'slow'"),
    (lambda: check_choice("kind", None, Kind), "kind must be one of fast, exact, not None"),
    (
        lambda: check_choice("kind", "exakt", Kind),
        "kind must be one of fast, exact, not 'exakt' (did you mean 'exact'?)",
    ),
    (
        lambda: import_extra("no_such_package", "scale", "partitioning"),
        "partitioning needs the package no_such_package: pip install 'plap[scale]'",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSALS, ids=[sentence for _, sentence in REFUSALS])
def test_what_is_wrong_is_refused_in_a_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == sentence


def test_the_nearest_names_are_named_or_all_of_them() -> None:
    known = ("cora", "citeseer", "corpus")
    assert did_you_mean("corra", known) == "did you mean cora?"
    assert did_you_mean("corp", known) == "did you mean corpus or cora?"
    assert did_you_mean("xyz", known) == "there are cora, citeseer, corpus"
    assert did_you_mean("xyz", known, "`plap data list` shows all of them").startswith("`plap data")
