"""The deep network: its stacked runs are its modules' runs, and its older configurations are left alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tiny_training as tiny
from plap.models import find_model
from plap.nn import stacked_activation
from plap.training import RunConfig, build_module, train_runs

KIND = find_model("deep-pgnn")
BLOCKS: dict[str, dict[str, Any]] = {
    "minesweeper": {"norm": "layer", "prenorm": True, "concat": True, "residual": True, "output": "linear"},
    "plain": {"norm": "none", "output": "linear", "mu": 0.01, "K": 1},
    "the paper's pgnn": {"norm": "none", "layers": 1},
    "batch norm": {"norm": "batch", "concat": True, "mlp_layers": 2},
    "batch norm first": {"norm": "batch", "prenorm": True, "output": "cat", "residual": True},
    "jumping": {"norm": "layer", "output": "max"},
    "learned": {"norm": "none", "learn_p": True, "learn_mu": True, "concat": True},
}


def config(block: str, **values: Any) -> RunConfig:
    usual = {"mlp_layers": 1, "hidden": 8, "K": 2, "dropout": 0.0, "max_epochs": 12, "lr": 0.02}
    return RunConfig("deep-pgnn", **usual | BLOCKS[block] | values)


@pytest.fixture(params=[True, False], ids=["loops", "PyTorch"])
def _compiled_or_not(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is between two linear maps, by compiled loops as on larger graphs, or by PyTorch."""
    if request.param:
        monkeypatch.setattr(stacked_activation, "_WORTH_A_CALL", 1)


@pytest.mark.usefixtures("_compiled_or_not")
@pytest.mark.parametrize("block", BLOCKS)
def test_a_stacked_run_is_what_a_plain_loop_over_the_module_gives(block: str) -> None:
    data = tiny.data()
    split = tiny.masks(data.y)
    one, beside = config(block, p=1.5, seed=5), config(block, p=2.5, mu=1.0, lr=0.001, seed=6)
    assert KIND.family_of(one.parameters) is not None
    train, val, _ = tiny.plain_loop(one, data, split)
    result = train_runs(data.graph, data.x, data.y, [beside, one], split, dtype=torch.float64)[1]
    assert result.history.train_loss.tolist() == pytest.approx(train, abs=1e-9)
    assert result.history.val_loss.tolist() == pytest.approx(val, abs=1e-9)


@pytest.mark.usefixtures("_compiled_or_not")
@pytest.mark.parametrize("block", BLOCKS)
def test_the_state_loads_into_the_module_and_gives_the_logits(block: str) -> None:
    data = tiny.data()
    one = config(block, dropout=0.4, seed=2)
    (result,) = train_runs(data.graph, data.x, data.y, [one], tiny.masks(data.y), dtype=torch.float64)
    module = build_module(one.with_values(seed=99), data.x.shape[1], 2).double().eval()
    module.load_state_dict(result.state)
    torch.testing.assert_close(module(data.x.double(), data.graph), result.logits)


@pytest.mark.parametrize("block", ["minesweeper", "batch norm", "batch norm first"])
def test_a_run_does_not_depend_on_the_runs_that_leave_the_batch_before_it(block: str) -> None:
    data = tiny.data()
    configs = [
        config(block, p=1.5, dropout=0.5, seed=k, lr=(0.05, 0.01, 0.001)[k % 3], max_epochs=25, patience=4)
        for k in range(9)
    ]
    split = tiny.masks(data.y)
    together = train_runs(data.graph, data.x, data.y, configs, split, dtype=torch.float64)
    assert len({result.epochs for result in together}) > 1
    for one, result in zip(configs, together, strict=True):
        (alone,) = train_runs(data.graph, data.x, data.y, [one], split, dtype=torch.float64)
        assert alone.epochs == result.epochs
        torch.testing.assert_close(result.logits, alone.logits)
        assert result.state.keys() == alone.state.keys()


@pytest.mark.parametrize("block", BLOCKS)
def test_the_memory_estimate_counts_the_weights(block: str) -> None:
    one = config(block)
    family = KIND.family_of(one.parameters)
    assert family is not None
    actual = sum(value.numel() for value in build_module(one, 7, 3).parameters())
    assert family.weights(one.parameters, 7, 3) <= actual <= family.weights(one.parameters, 7, 3) + 6


@pytest.mark.parametrize(
    "values",
    [
        {"p": 3.0, "hidden": 256, "mu": 0.5, "K": 2, "layers": 6, "residual": True},
        {"p": 1.5, "hidden": 256, "mu": 0.01, "K": 1, "mlp_layers": 1},
        {"norm": "none"},
    ],
)
def test_what_the_paper_trains_and_what_propagates_features_is_trained_as_a_module(
    values: dict[str, Any],
) -> None:
    assert KIND.family_of(KIND.parameters(**values)) is None
