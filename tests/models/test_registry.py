"""A definition that makes no sense is refused, in a sentence that names the model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest
import torch
from torch.nn import Linear

import tiny_training as tiny
from plap import InputError
from plap.models import (
    Architecture,
    ModelKind,
    Parameters,
    find_model,
    model_of,
    number,
    register_model,
    registry,
)
from plap.models.kind import TRAINING_FIELDS
from plap.nn import PGNN
from plap.training import RunConfig


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))


@dataclass(frozen=True)
class WithoutDefault(Parameters):
    width: int


@dataclass(frozen=True)
class Clashing(Parameters):
    seed: int = 0


@dataclass(frozen=True)
class BreaksItsRule(Parameters):
    slope: float = number(-1.0, at_least=0)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ({"name": ""}, "name must be"),
        ({"name": "gcn"}, "a model 'gcn' already"),
        ({"parameters": dict}, "a dataclass derived from plap.models.Parameters"),
        ({"parameters": WithoutDefault}, "model 'new': the parameter 'width' has no default"),
        ({"parameters": Clashing}, "cannot be called 'seed', which is a setting of training"),
        ({"parameters": BreaksItsRule}, "slope must be a number of at least 0, not -1.0"),
        ({"grid": {"hiden": (1,)}}, r"grid names 'hiden', .* \(did you mean 'hidden'\?\)"),
        ({"search": {"hidden": ()}}, "search must have a tuple of values for 'hidden'"),
        ({"small": {"hidden": "16"}}, "small must have a tuple of values for 'hidden'"),
        ({"architectures": (Architecture({"hiden": (1,)}),)}, "architectures names 'hiden'"),
        (
            {"architectures": (Architecture({"hidden": (8,)}, start={"hidden": 9}),)},
            "starts at hidden = 9, which",
        ),
        ({"dropout_fields": ("rate",)}, "has no parameter 'rate'"),
        ({"dropout_fields": "dropout"}, "must be a tuple of names"),
        ({"even_over": "p"}, "has no parameter 'p'"),
        ({"takes": "adjacency"}, "takes must be"),
    ],
)
def test_a_kind_that_makes_no_sense_is_refused(kind: dict[str, Any], message: str) -> None:
    definition: dict[str, Any] = {
        "name": "new",
        "parameters": tiny.HiddenAndDropout,
        "build": lambda c, i, o: Linear(i, o),
    }
    with pytest.raises(InputError, match=message):
        register_model(ModelKind(**definition | kind))


def test_a_name_can_be_given_away_and_a_wrong_one_gets_a_hint() -> None:
    kind = ModelKind("gcn", Parameters, lambda c, i, o: Linear(i, o))
    register_model(kind, replace=True)
    assert find_model("gcn") is kind
    with pytest.raises(InputError, match=r"one of pgnn, mlp, .*, not 'gprgn' \(did you mean 'gprgnn'\?\)"):
        RunConfig(model="gprgn")
    with pytest.raises(InputError, match="a ModelKind, not as Linear"):
        register_model(Linear(1, 1))  # type: ignore[arg-type]


def test_the_model_of_a_module() -> None:
    found = model_of(PGNN(3, 4, 2))
    assert found is not None
    assert found.name == "pgnn"
    assert model_of(torch.nn.Identity()) is None


def test_no_parameter_can_be_called_like_a_field_of_a_run() -> None:
    assert {field.name for field in fields(RunConfig)} == set(TRAINING_FIELDS)
