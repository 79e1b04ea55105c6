"""pGNN with penalties as a model that can be trained by name: stacked runs, units, what a search measures."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import plap
import tiny_training as tiny
from plap.edge_lengths import typical_edge_norm
from plap.models import find_model
from plap.models.pgnn import PENALTIES, PGNNParameters
from plap.training import RunConfig, SearchSpace, build_module, train_runs, tune

DATA = tiny.data()
SPLIT = tiny.masks(DATA.y)


def conv_of(config: RunConfig) -> plap.nn.PLaplacianConv:
    module = build_module(config, 4, 2)
    assert isinstance(module, plap.nn.PGNN)
    return module.conv


@pytest.mark.parametrize("penalty", PENALTIES)
def test_stacked_runs_are_those_of_the_module(penalty: str) -> None:
    """Each run has a gamma, a unit and a mu of its own; runs of other penalties are trained beside it."""
    config = RunConfig(penalty=penalty, gamma=0.4, unit=1.5, mu=0.3, p=1.4, max_epochs=6, seed=1)
    others = [config.with_values(gamma=2.0, unit=0.5, mu=1.0), RunConfig(penalty="mcp", max_epochs=3)]
    results = train_runs(DATA.graph, DATA.x, DATA.y, [*others, config], SPLIT, dtype=torch.float64)
    alone = train_runs(DATA.graph, DATA.x, DATA.y, [config], SPLIT, dtype=torch.float64)[0]
    torch.testing.assert_close(results[-1].logits, alone.logits)
    module = build_module(config, DATA.x.shape[1], 2).double().eval()
    module.load_state_dict(alone.state)
    torch.testing.assert_close(module(DATA.x.double(), DATA.graph), alone.logits)


def test_detached_weights_train_another_model() -> None:
    config = RunConfig(penalty="mcp", gamma=1.0, max_epochs=5)
    runs = [config, config.with_values(detach_weights=True)]
    free, detached = train_runs(DATA.graph, DATA.x, DATA.y, runs, SPLIT)
    assert not torch.allclose(free.logits, detached.logits)
    assert conv_of(runs[1]).detach_weights


def test_a_unit_is_the_scale_of_the_features() -> None:
    """Features in another unit, and γ and μ in it, give the same states in that unit."""
    x = torch.randn(DATA.graph.num_nodes, 4, dtype=torch.float64)
    for name in PENALTIES:
        plain = conv_of(RunConfig(penalty=name, gamma=0.8, mu=0.3, p=1.4))
        scaled = conv_of(RunConfig(penalty=name, gamma=0.8, mu=0.3, p=1.4, unit=5.0))
        penalty, mu = scaled.at_scale_of(x, DATA.graph)
        expected = plap.propagate(x, DATA.graph, penalty=plain.penalty, mu=plain.mu, K=3)
        found = plap.propagate(5 * x, DATA.graph, penalty=penalty, mu=mu, K=3)
        torch.testing.assert_close(found, 5 * expected)


def test_a_search_measures_the_unit_on_the_features() -> None:
    space = SearchSpace(RunConfig(hidden=8, max_epochs=3), penalty=("mcp",), K=(2,), lr=(0.01,))
    found = tune(DATA.graph, DATA.x, DATA.y, SPLIT, space=space, budget=30)
    exact = float(typical_edge_norm(DATA.x, DATA.graph))
    assert found.best.parameters.penalty == "mcp"
    assert found.best.parameters.unit == pytest.approx(exact, rel=0.25)
    measured = find_model("pgnn").measured
    assert measured is not None
    power, mcp, given = measured(
        [PGNNParameters(), PGNNParameters(penalty="mcp"), PGNNParameters(penalty="mcp", unit=2.0)],
        DATA.graph,
        DATA.x.to_sparse_csr(),
    )
    assert (power.unit, given.unit) == (1.0, 2.0)
    assert mcp.unit == pytest.approx(found.best.parameters.unit, rel=1e-5)


def test_p_and_penalty_are_not_given_together() -> None:
    with pytest.raises(plap.InputError, match="p and penalty cannot both be given"):
        plap.nn.PLaplacianConv(3, 2, p=1.5, penalty=plap.penalties.MCP(1.0))
    with pytest.raises(plap.InputError, match="p and penalty cannot both be given"):
        plap.nn.PGNN(3, 4, 2, p=1.5, penalty=plap.penalties.MCP(1.0))


@pytest.mark.parametrize("values", [{"gamma": 0.0}, {"unit": -1.0}, {"penalty": "l1"}])
def test_bad_values_are_named(values: dict[str, Any]) -> None:
    with pytest.raises(plap.InputError, match=f"{next(iter(values))} must be"):
        RunConfig(**values)
