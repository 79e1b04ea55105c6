from __future__ import annotations

import json
from typing import Any

import pytest

from plap import InputError
from plap.training import RunConfig


def test_a_configuration_survives_json() -> None:
    config = RunConfig(model="gprgnn", p=1.5, K=10, seed=7, stop_by="loss")
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "gatt"), ("hidden", 0), ("p", 0.99), ("p", float("nan")), ("mu", 0.0), ("K", 0), ("K", 2.5),
        ("lr", 0.0), ("weight_decay", -1e-4), ("dropout", 1.0), ("alpha", 1.1), ("dprate", -0.1),
        ("seed", -1), ("seed", True), ("max_epochs", 0), ("patience", 0), ("stop_by", "f1"),
        ("mu", float("inf")),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field} must be"):
        RunConfig(**{field: value})


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InputError, match="no field 'width'"):
        RunConfig.from_dict({"width": 2})
