"""A stacked run is what a plain PyTorch loop over the single-run module gives."""

from __future__ import annotations

import pytest
import torch

import problems
import tiny_training as tiny
from plap.models import model_names
from plap.training import RunConfig, build_module, train_runs

MODELS = model_names()


@pytest.mark.parametrize("model", MODELS)
def test_history_is_that_of_a_plain_loop(model: str) -> None:
    data = tiny.data()
    split = tiny.masks(data.y)
    values = {"K": 3, "dropout": 0.0, "max_epochs": 12}
    config = tiny.config(model, p=1.5, alpha=0.2, lr=0.03, seed=5, **values)
    train, val, _ = tiny.plain_loop(config, data, split)
    beside = tiny.config(model, p=2.5, mu=1.0, lr=0.001, seed=6, alpha=0.7, **values)
    result = train_runs(data.graph, data.x, data.y, [beside, config], split, dtype=torch.float64)[1]
    assert result.history.train_loss.tolist() == pytest.approx(train, abs=1e-9)
    assert result.history.val_loss.tolist() == pytest.approx(val, abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_the_state_loads_into_the_module_and_gives_the_logits(model: str) -> None:
    data = tiny.data()
    config = tiny.config(model, K=3, max_epochs=9, dprate=0.3, seed=2)
    result = train_runs(data.graph, data.x, data.y, [config], tiny.masks(data.y), dtype=torch.float64)[0]
    module = build_module(config.with_values(seed=99), data.x.shape[1], 2).double().eval()
    module.load_state_dict(result.state)
    torch.testing.assert_close(module(data.x.double(), data.graph), result.logits)


@pytest.mark.parametrize("model", MODELS)
def test_loops_weights_and_isolated_nodes_count_as_in_the_module(model: str) -> None:
    edges = [(k, k + 1, 1.0 + k) for k in range(10)] + [(3, 3, 2.0), (2, 7, 0.5), (0, 9, 3.0)]
    graph = problems.weighted(edges, 12, keep_loops=True)
    assert graph.num_self_loops == 1
    assert graph.degree[11] == 0
    x, y = torch.randn(12, 4, dtype=torch.float64), torch.arange(12) % 2
    split = tiny.masks(y)
    configs = [tiny.config(model, K=3, p=p, dropout=0.0, max_epochs=3, seed=2) for p in (1.5, 2.0)]
    for config, result in zip(
        configs, train_runs(graph, x, y, configs, split, dtype=torch.float64), strict=True
    ):
        module = build_module(config, 4, 2).double().eval()
        module.load_state_dict(result.state)
        torch.testing.assert_close(module(x, graph), result.logits)


@pytest.mark.parametrize("model", MODELS)
def test_sparse_features_train_as_dense_ones(model: str) -> None:
    data = tiny.data()
    x = data.x.clone()
    x[x.abs() < 0.5] = 0
    rate = 0.0 if model == "gat" else 0.5  # gat drops features, and draws for those that are stored
    config = tiny.config(model, max_epochs=6, dropout=rate)
    split = tiny.masks(data.y)
    dense = train_runs(data.graph, x, data.y, [config], split, dtype=torch.float64)[0]
    sparse = train_runs(data.graph, x.to_sparse_csr(), data.y, [config], split, dtype=torch.float64)[0]
    torch.testing.assert_close(sparse.logits, dense.logits)


@pytest.mark.parametrize(
    ("model", "field"), [(m, "dropout") for m in MODELS if m != "sgc"] + [("gprgnn", "dprate")]
)
def test_dropout_is_applied(model: str, field: str) -> None:
    data = tiny.data()
    off = RunConfig(model=model, dropout=0.0, max_epochs=3, weight_decay=0.0)
    on = off.with_values(**{field: 0.5})
    first, second = train_runs(data.graph, data.x, data.y, [off, on], tiny.masks(data.y))
    assert not torch.allclose(first.history.train_loss, second.history.train_loss)
