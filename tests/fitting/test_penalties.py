"""A fitted model with a penalty: saved, loaded, and older files without the fields of penalties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.base import clone

import plap
from plap.edge_lengths import typical_edge_norm
from plap.errors import InputError
from plap.fitting import FitSettings
from plap.fitting.artifacts import load_model
from plap.fitting.prediction import member_probabilities, predict_nodes
from plap.fitting.search import searched_values
from plap.fitting.settings import PieceSettings
from plap.training import RunConfig

DATA = plap.data.csbm(phi=0.6, n=100, f=10, d=6.0, seed=4)
MCP = {"penalty": "mcp", "gamma": 1.5, "unit": 0.4, "mu": 0.2, "detach_weights": True}


@pytest.mark.parametrize("fixed", [MCP, {"penalty": "huber", "gamma": 0.3}, {"p": 1.5}])
def test_a_saved_model_predicts_as_it_did(fixed: dict[str, object], tmp_path: Path) -> None:
    result = plap.fit(DATA, search=False, seeds=2, max_epochs=10, rivals=(), fixed=fixed)
    result.save(tmp_path / "out")
    model = load_model(tmp_path / "out")
    assert {name: model.config[name] for name in fixed} == fixed
    fitted = result.methods[0].fitted
    assert fitted is not None
    expected = fitted.ensemble.probabilities
    found = predict_nodes(model, DATA).probabilities
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-5, atol=1e-6)


def test_a_search_that_is_told_the_penalty_tries_no_other() -> None:
    result = plap.fit(DATA, budget=60, seeds=1, max_epochs=5, rivals=(), fixed={"penalty": "mcp"})
    fitted = result.methods[0].fitted
    assert fitted is not None
    assert {trial.config.parameters.penalty for trial in fitted.trials} == {"mcp"}
    assert fitted.config.parameters.unit != 1


def test_a_penalty_outside_of_the_search_is_searched_on_request() -> None:
    result = plap.fit(DATA, budget=60, seeds=1, max_epochs=5, rivals=(), fixed={"penalty": "scad"})
    fitted = result.methods[0].fitted
    assert fitted is not None
    tried = {trial.config.parameters for trial in fitted.trials}
    assert {parameters.penalty for parameters in tried} == {"scad"}
    assert {parameters.gamma for parameters in tried} <= {0.3, 0.5, 0.8}
    assert {parameters.p for parameters in tried} == {2.0}


def test_a_fit_without_a_search_measures_the_unit_too() -> None:
    options: dict[str, Any] = {"search": False, "seeds": 1, "max_epochs": 2, "rivals": ()}
    fitted = plap.fit(DATA, fixed={"penalty": "mcp"}, **options).methods[0].fitted
    assert fitted is not None
    assert fitted.config.parameters.unit == pytest.approx(
        float(typical_edge_norm(DATA.x, DATA.graph)), rel=0.25
    )


def test_what_has_no_effect_is_not_reported() -> None:
    power, mcp = searched_values(RunConfig(p=1.5)), searched_values(RunConfig(penalty="mcp", unit=2.0))
    assert (power["p"], power["penalty"]) == (1.5, "power")
    assert not {"gamma", "unit"} & {*power}
    assert (mcp["penalty"], mcp["unit"]) == ("mcp", 2.0)
    assert "p" not in mcp


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"fixed": {"gamma": 0.01}, "search": False}, "gamma has no effect where penalty is 'power'"),
        ({"fixed": {"unit": 2.0}, "search": False}, "unit has no effect where penalty is 'power'"),
        ({"fixed": {"gamma": 0.01, "penalty": "power"}}, "gamma has no effect where penalty is 'power'"),
        ({"fixed": {"p": 1, "penalty": "mcp"}, "search": False}, "p has no effect where penalty is 'mcp'"),
        ({"fixed": {"p": 1, "penalty": "welsch"}}, "p has no effect where penalty is 'welsch'"),
        ({"fixed": {"p": 1, "gamma": 0.5}}, "gamma has no effect where penalty is 'power'"),
        ({"fixed": {"gamma": 0.5, "p": 1}}, "p has no effect where penalty is 'mcp' or 'huber'"),
        (
            {"fixed": {"gamma": 1.0}, "pieces": PieceSettings(2)},
            "gamma has no effect where penalty is 'power'",
        ),
    ],
)
def test_a_value_without_effect_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{sentence}$"):
        plap.fit(DATA, rivals=(), seeds=1, max_epochs=2, **options)


def test_a_value_that_a_search_may_use_is_fine() -> None:
    for fixed in ({"gamma": 0.01}, {"p": 1}, {"p": 1, "penalty": "power"}, {"gamma": 2.0, "penalty": "mcp"}):
        FitSettings(fixed=fixed).config("pgnn")


def test_an_estimator_refuses_a_value_without_effect_when_it_is_fitted(tmp_path: Path) -> None:
    model = plap.PGNNClassifier(gamma=0.01, tune=None, seeds=1, max_epochs=2)
    assert clone(model).get_params()["gamma"] == 0.01
    with pytest.raises(InputError, match="gamma has no effect where penalty is 'power'"):
        model.fit(DATA.graph, DATA.x, DATA.y)
    model.set_params(gamma=None).fit(DATA.graph, DATA.x, DATA.y)
    robust = {"penalty": "mcp", "gamma": 2.0}
    for fixed in ({"p": 1.5}, robust):
        out = plap.fit(DATA, search=False, seeds=1, max_epochs=2, rivals=(), fixed=fixed).save(
            tmp_path / "out"
        )
        loaded = plap.PGNNClassifier.load(out)
        assert (loaded.p is None, loaded.gamma is None) == (fixed is robust, fixed is not robust)
        clone(loaded).set_params(seeds=1, max_epochs=2).fit(DATA.graph, DATA.x, DATA.y)


def test_a_model_from_before_penalties_is_a_power(tmp_path: Path) -> None:
    result = plap.fit(DATA, search=False, seeds=1, max_epochs=5, rivals=(), fixed={"p": 1.5})
    result.save(tmp_path / "out")
    model = load_model(tmp_path / "out")
    later = ("penalty", "gamma", "unit", "detach_weights")
    older = {name: value for name, value in model.config.items() if name not in later}
    config = RunConfig.from_dict(older)
    assert config == RunConfig.from_dict(dict(model.config))
    whole = member_probabilities([config], model.states, DATA.graph, DATA.x, model.task)
    object.__setattr__(model, "configs", ())  # there were none either
    object.__setattr__(model, "config", older)
    torch.testing.assert_close(torch.from_numpy(predict_nodes(model, DATA).probabilities), whole)
    object.__setattr__(model, "config", {name: older[name] for name in older if name != "mu"})
    with pytest.raises(plap.InputError, match="whole configuration"):
        predict_nodes(model, DATA)
    assert "penalty" in json.loads((tmp_path / "out" / "model.json").read_text())["config"]
