"""Rows of a store of version 1, in which every model's configuration had the fields of all models."""

from __future__ import annotations

import json
from typing import Any

from plap.experiments.runs import Setting, run_key
from plap.models import find_model
from plap.training import RunConfig

_OF_EVERY_RUN = {
    "hidden": 16, "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-4, "seed": 0, "max_epochs": 1000,
    "patience": 200, "stop_by": "accuracy",
}  # fmt: skip
"""Fields that a user's model has, with their defaults."""

_OF_SOME_MODELS = {
    "p": 2.0, "mu": 0.1, "K": 4, "alpha": 0.1, "dprate": 0.0, "heads": 8, "layers": 3, "mlp_layers": 0,
    "residual": False,
}  # fmt: skip
"""Fields that had no effect on a model that did not use them, with their defaults."""


def from_version_1(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the present version stores it, under its new key.

    Fields that the model does not have are left out. Runs that differed in nothing else have the same result;
    the first of them is kept. A user's model may have used any field, so it keeps those that were set.
    """
    old = json.loads(row["config"])
    config, defaults = _of_users_model(old) if row["code_digest"] else _of_plaps_model(old)
    setting = Setting(
        row["protocol"], row["dataset"], row["split"], bool(row["alone"]), row["files_digest"],
        correct_and_smooth=row["model"].endswith("+cs"),
    )  # fmt: skip
    return row | {
        "key": run_key(setting, row["code_digest"], config, defaults),
        "config": json.dumps(config),
        "correct_and_smooth": setting.correct_and_smooth,
    }


_Values = dict[str, Any]


def _of_plaps_model(old: _Values) -> tuple[_Values, _Values]:
    """The configuration with the fields of its model, and that model's defaults."""
    foreign = {"hidden", "dropout", *_OF_SOME_MODELS} - set(find_model(old["model"]).fields)
    every = {**_OF_EVERY_RUN, **_OF_SOME_MODELS, **old}
    config = RunConfig.from_dict({name: value for name, value in every.items() if name not in foreign})
    return config.to_dict(), RunConfig(config.model).to_dict()


def _of_users_model(old: _Values) -> tuple[_Values, _Values]:
    """The configuration with the fields that every run has and those that were set, and the defaults."""
    kept = {name: value for name, value in old.items() if _OF_SOME_MODELS.get(name, ...) != value}
    return _OF_EVERY_RUN | kept, _OF_EVERY_RUN
