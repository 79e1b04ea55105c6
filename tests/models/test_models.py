"""What every model that can be trained by name must keep to."""

from __future__ import annotations

import pickle

import pytest
import torch

import tiny_training as tiny
from plap.models import find_model, model_names
from plap.models.kind import STRONG_DECAY
from plap.models.pgnn import PAPER, POWERS
from plap.training import RunConfig, SearchSpace, build_module, train_runs
from plap.training.space import grid_configs

MODELS = model_names()


@pytest.mark.parametrize("model", MODELS)
def test_all_values_of_all_grids_are_allowed(model: str) -> None:
    kind = find_model(model)
    full = grid_configs(RunConfig(model), kind.grid)
    assert len(set(full)) == len(full) > 1
    assert set(grid_configs(RunConfig(model), {**kind.grid, **kind.small})) <= set(full)
    assert SearchSpace(RunConfig(model)).configs()
    assert set(kind.grid) <= {*kind.fields, "lr", "weight_decay"}


@pytest.mark.parametrize("model", MODELS)
def test_the_module_is_of_the_class_that_is_named(model: str) -> None:
    kind = find_model(model)
    module = build_module(RunConfig(model), 5, 3)
    assert kind.module is type(module)


@pytest.mark.parametrize("model", MODELS)
def test_labels_and_configurations(model: str) -> None:
    kind = find_model(model)
    assert kind.title
    assert kind.label_of(kind.parameters())
    if "p" in kind.fields:
        assert kind.label_of(kind.parameters(p=1.5)) != kind.label_of(kind.parameters(p=2.5))
    config = RunConfig(model, seed=3)
    assert pickle.loads(pickle.dumps(config)) == config == RunConfig.from_dict(config.to_dict())


def test_the_search_of_a_fit_takes_the_papers_grid_a_large_mu_and_a_strong_decay() -> None:
    assert set(PAPER) | {"p", "penalty"} == set(POWERS)
    assert POWERS["penalty"] == ("power",)
    for name, values in PAPER.items():
        extension = {"mu": {100.0}, "weight_decay": {STRONG_DECAY}}.get(name, set())
        left_out = {"mu": {0.2}, "lr": {0.001}}.get(name, set())
        assert set(POWERS[name]) == set(values) - left_out | extension


@pytest.mark.parametrize("model", [name for name in MODELS if find_model(name).stacked])
def test_the_memory_estimate_counts_the_weights(model: str) -> None:
    kind = find_model(model)
    assert kind.stacked is not None
    module = build_module(RunConfig(model), 7, 3)
    counted = kind.stacked.weights(kind.parameters(), 7, 3)
    actual = sum(value.numel() for value in module.parameters())
    assert counted <= actual <= counted + 16  # gprgnn has a coefficient for each step besides


def test_embeddings_and_weights_are_those_of_the_module() -> None:
    data = tiny.data()
    (result,) = train_runs(data.graph, data.x, data.y, [RunConfig(max_epochs=3)], tiny.masks(data.y))
    module = build_module(result.config, data.x.shape[1], 2).eval()
    module.load_state_dict(result.state)
    kind = find_model("pgnn")
    assert kind.embeddings is not None
    assert kind.pair_states is not None
    with torch.no_grad():
        embeddings = kind.embeddings(module, data.x, data.graph)
        found = kind.pair_states(module, data.x, data.graph)
        logits = module(data.x, data.graph)
    assert torch.equal(found.states[-1], embeddings)
    torch.testing.assert_close(found.probabilities, logits.softmax(1))
