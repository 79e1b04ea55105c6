"""A fit whose search may choose between models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import plap
import plap.training.tuning
from plap.fitting.artifacts import load_model
from plap.fitting.prediction import member_configs, predict_nodes
from plap.fitting.search import _spaces
from plap.fitting.settings import FitSettings
from plap.insight.learned import what_was_learned
from plap.insight.members import load_members
from plap.models import find_model
from plap.models.kind import linked_nodes_differ
from plap.training import build_module

DATA = plap.data.csbm(phi=-0.75, n=120, f=12, d=8.0, seed=1)
SMALL: dict[str, Any] = {"budget": 200, "max_epochs": 12, "seeds": 2, "rivals": ("mlp",)}


def test_a_search_over_two_models_tries_both() -> None:
    result = plap.fit(DATA, models=("pgnn", "deep-pgnn"), fixed={"K": 4}, **SMALL)
    trials = result.fitted.trials
    assert {trial.config.model for trial in trials} == {"pgnn", "deep-pgnn"}
    assert {trial.config.value("K") for trial in trials if trial.config.model == "pgnn"} == {4}
    alone = plap.fit(DATA, models=("pgnn",), **SMALL)
    assert {trial.config.model for trial in alone.fitted.trials} == {"pgnn"}


@pytest.mark.parametrize(
    ("phi", "options", "models"),
    [
        (-0.75, {}, {"pgnn", "mlp", "deep-pgnn"}),
        (0.9, {}, {"pgnn"}),
        (-0.75, {"fixed": {"p": 1.5}}, {"pgnn"}),
    ],
    ids=["linked nodes differ", "linked nodes agree", "a parameter of pgnn is fixed"],
)
def test_which_models_a_fit_tries_by_itself(phi: float, options: Any, models: set[str]) -> None:
    data = plap.data.csbm(phi=phi, n=200, f=12, d=8.0, seed=1)
    result = plap.fit(data, **{**SMALL, "rivals": (), **options})
    assert {trial.config.model for trial in result.fitted.trials} == models


def test_a_rival_is_searched_in_all_of_its_forms_and_needs_no_hidden_units() -> None:
    options = {**SMALL, "budget": 100, "rivals": ("deep-pgnn", "sgc")}
    result = plap.fit(DATA, models=("pgnn",), **options)
    assert [method.name for method in result.methods] == ["pGNN", "deep pGNN", "SGC"]
    spaces = _spaces(
        FitSettings().config("deep-pgnn"), FitSettings(), DATA.graph, DATA.y, plap.data.split(DATA)
    )
    assert [space.grids[0].get("residual") for space in spaces] == [None, None, (True,)]


def test_labels_that_a_search_must_not_see_do_not_choose_its_models() -> None:
    graph, y = DATA.graph, DATA.y
    train = plap.data.split(DATA).train
    hidden = torch.where(train, y, 0)
    assert linked_nodes_differ(graph, y, train)
    assert linked_nodes_differ(graph, hidden, train)
    assert not linked_nodes_differ(graph, y, torch.zeros_like(train))
    assert not linked_nodes_differ(graph, y.double(), train)


def test_what_a_fit_cannot_choose() -> None:
    with pytest.raises(plap.InputError, match=r"models may be .*deep-pgnn.*, not gcn"):
        plap.fit(DATA, models=("pgnn", "gcn"))
    with pytest.raises(plap.InputError, match="model must be one of"):
        plap.fit(DATA, models=("pgnn", "deep"))


def test_a_deep_network_is_saved_shown_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = plap.training.halving.ranked
    monkeypatch.setattr(
        plap.training.halving,
        "ranked",
        lambda *given: sorted(ranked(*given), key=lambda config: config.model != "deep-pgnn"),
    )
    result = plap.fit(DATA, models=("pgnn", "deep-pgnn"), **SMALL)
    assert result.methods[0].name == "deep pGNN"
    folder = result.save(tmp_path / "out")
    page = (folder / "report.html").read_text()
    assert "deep pGNN" in page
    assert "plap attack" in page
    again = predict_nodes(load_model(folder), DATA)
    torch.testing.assert_close(torch.from_numpy(again.probabilities), result.methods[0].probabilities)


def test_an_mlp_is_chosen_where_no_model_with_edges_is_better(tmp_path: Path) -> None:
    """Features tell all, edges nothing. The fit says so, and what is said of other models is said of it."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(200) % 2
    x = torch.nn.functional.one_hot(y, 2).float() + 0.3 * torch.rand(200, 2, generator=generator)
    graph = plap.Graph.from_edge_index(torch.randint(200, (2, 900), generator=generator), num_nodes=200)
    data = replace(DATA, graph=graph, x=x, y=y, name="edges that mean nothing", node_ids=range(200))
    result = plap.fit(data, **{**SMALL, "budget": 1000, "max_epochs": 40})
    assert [method.name for method in result.methods] == ["MLP"]  # which is not its own rival
    assert any("than MLP, which ignores them" in note for note in result.notes)
    folder = result.save(tmp_path / "out")
    page = (folder / "report.html").read_text()
    assert "which ignores them" in page
    assert "plap attack" not in page
    model = load_model(folder)
    again = predict_nodes(model, data)
    torch.testing.assert_close(torch.from_numpy(again.probabilities), result.methods[0].probabilities)
    members = load_members(member_configs(model), model.states, 2, 2)
    learned = what_was_learned(members, data, ("0", "1"), known=y)
    assert learned.summary()["entropy"]["mean"] is None  # there are no weights
    assert not learned.use.any()
    assert learned.trust is not None
    assert learned.neighbours.gain.abs().max() < 1e-6


@pytest.mark.parametrize(
    "values",
    [
        {"layers": 3, "mlp_layers": 1, "norm": "layer", "prenorm": True, "concat": True, "output": "linear"},
        {"layers": 1, "mlp_layers": 1, "norm": "none"},
        {"layers": 2, "output": "cat"},
    ],
)
def test_what_a_deep_network_says_of_edges_and_nodes(values: dict[str, Any]) -> None:
    kind = find_model("deep-pgnn")
    module: Any = build_module(plap.training.RunConfig("deep-pgnn", **values), 12, 2).eval()
    assert kind.edge_weights is not None
    assert kind.embeddings is not None
    assert kind.pair_states is not None
    with torch.no_grad():
        weights = kind.edge_weights(module, DATA.x, DATA.graph)
        embeddings = kind.embeddings(module, DATA.x, DATA.graph)
        found = kind.pair_states(module, DATA.x, DATA.graph)
        last = module.lin if module.lin is not None else module.convs[-1].lin
        torch.testing.assert_close(last(embeddings), module(DATA.x, DATA.graph))
    assert weights.shape == (DATA.graph.num_entries,)
    assert bool((weights >= 0).all())
    assert torch.equal(found.states[-1], embeddings)
    torch.testing.assert_close(found.probabilities, last(embeddings).softmax(1))
