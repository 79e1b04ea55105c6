from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from plap import InputError
from plap.models.mlp import MLPParameters
from plap.models.pgnn import PGNNParameters
from plap.training import RunConfig


def test_a_configuration_survives_json_and_pickle() -> None:
    config = RunConfig(model="gprgnn", dprate=0.2, K=10, seed=7, stop_by="loss")
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "gatt"), ("hidden", 0), ("p", 0.99), ("p", float("nan")), ("mu", 0.0), ("K", 0), ("K", 2.5),
        ("lr", 0.0), ("weight_decay", -1e-4), ("dropout", 1.0), ("seed", -1), ("seed", True),
        ("max_epochs", 0), ("patience", 0), ("stop_by", "f1"), ("stopping", "soon"), ("mu", float("inf")),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field} must be"):
        RunConfig(**{field: value})


def test_a_field_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        RunConfig(model="mlp", p=1.5)
    assert str(caught.value) == (
        "mlp has no field 'p': the model's are hidden, dropout; "
        "training's are lr, weight_decay, seed, max_epochs, patience, stop_by, stopping"
    )
    with pytest.raises(InputError, match=r"no field 'hiden' \(did you mean 'hidden'\?\)"):
        RunConfig.from_dict({"hiden": 2})
    with pytest.raises(InputError, match="no field 'alpha'"):
        RunConfig().with_values(alpha=0.5)
    with pytest.raises(InputError, match="no field 'alpha'"):
        RunConfig().value("alpha")


def test_parameters_are_the_models_own() -> None:
    assert RunConfig("mlp").parameters == MLPParameters()
    own = PGNNParameters(p=1.5, mu=1.0)
    assert RunConfig("pgnn", own).parameters is not None
    assert RunConfig("pgnn", own, mu=3).parameters == PGNNParameters(p=1.5, mu=3.0)
    with pytest.raises(InputError, match="the parameters of mlp are MLPParameters, not PGNNParameters"):
        RunConfig("mlp", own)


def test_other_values_of_some_fields() -> None:
    config = RunConfig(p=1.5, lr=0.05)
    changed = config.with_values(mu=2.0, seed=4)
    assert (changed.parameters.p, changed.parameters.mu, changed.lr, changed.seed) == (1.5, 2.0, 0.05, 4)
    assert replace(config, seed=4) == config.with_values(seed=4)
    assert config == RunConfig(p=1.5, lr=0.05) != changed
    assert len({config, RunConfig(p=1.5, lr=0.05), changed}) == 2
