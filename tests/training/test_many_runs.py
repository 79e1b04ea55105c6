"""A run's result is its own: not its batch-mates', not its batch's size, not the memory's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import plap
import tiny_training as tiny
from plap.kernels.budget import KEEP_NONE, sparsest
from plap.kernels.fused.backend import Fused
from plap.models import find_model, model_names
from plap.training import Progress, RunConfig, RunResult, train_runs
from plap.training.loop import make_batches, run_bytes

STACKED = [name for name in model_names() if find_model(name).stacked]
LIMITS = {"max_epochs": 25, "patience": 8}


def thirty_two(model: str) -> list[RunConfig]:
    """Runs that differ in everything a batch allows."""
    return [
        tiny.config(
            model, K=3, hidden=8, p=(1.0, 1.5, 2.0, 2.5)[k % 4], mu=(0.01, 0.1, 10.0)[k % 3],
            lr=(0.001, 0.01, 0.05)[k % 3], weight_decay=(0.0, 5e-4)[k % 2], dropout=(0.1, 0.5, 0.8)[k % 3],
            dprate=(0.0, 0.5)[k % 2], alpha=(0.1, 0.5)[k % 2], seed=k, stop_by=("accuracy", "loss")[k % 2],
            max_epochs=LIMITS["max_epochs"], patience=LIMITS["patience"],
        )
        for k in range(32)
    ]  # fmt: skip


def assert_same(one: RunResult, other: RunResult, tolerance: float) -> None:
    assert (one.epochs, one.best_epoch) == (other.epochs, other.best_epoch)
    for name in ("train_loss", "val_loss", "val_score"):
        difference = getattr(one.history, name) - getattr(other.history, name)
        assert float(difference.abs().max()) <= tolerance
    torch.testing.assert_close(one.logits, other.logits, rtol=0, atol=100 * tolerance)


@pytest.mark.parametrize("model", STACKED)
def test_alone_and_in_a_batch_of_32_agree(model: str) -> None:
    data = tiny.data()
    configs = thirty_two(model)
    splits = [tiny.masks(data.y, seed=k % 5) for k in range(32)]
    together = train_runs(data.graph, data.x, data.y, configs, splits, dtype=torch.float64)
    assert len({result.epochs for result in together}) > 1  # some left the batch early
    for k in (0, 1, 7, 20, 31):
        alone = train_runs(data.graph, data.x, data.y, [configs[k]], splits[k], dtype=torch.float64)[0]
        assert_same(alone, together[k], 1e-9)


def test_the_same_again_is_the_same_to_the_last_bit() -> None:
    data = tiny.data()
    configs, split = thirty_two("pgnn"), tiny.masks(data.y)
    first, second = (train_runs(data.graph, data.x, data.y, configs, split) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.history.train_loss, other.history.train_loss)
        assert torch.equal(one.logits, other.logits)


def test_pytorchs_generator_is_neither_used_nor_changed() -> None:
    data = tiny.data()
    config, split = RunConfig(max_epochs=3), tiny.masks(data.y)
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    one = train_runs(data.graph, data.x, data.y, [config], split)[0]
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(2)
    other = train_runs(data.graph, data.x, data.y, [config], split)[0]
    assert torch.equal(one.history.train_loss, other.history.train_loss)


def test_a_small_memory_budget_cuts_the_batch_and_changes_nothing() -> None:
    data = tiny.data()
    configs, split = thirty_two("pgnn"), tiny.masks(data.y)
    seen: list[Progress] = []
    each = run_bytes(configs[0], 60, 12, 2, 8)
    cut = train_runs(
        data.graph,
        data.x,
        data.y,
        configs,
        split,
        dtype=torch.float64,
        memory_budget=5 * each,
        progress=seen.append,
    )
    assert max(state.active for state in seen) <= 5
    whole = train_runs(data.graph, data.x, data.y, configs, split, dtype=torch.float64)
    for one, other in zip(cut, whole, strict=True):
        assert_same(one, other, 1e-9)


def test_runs_of_different_shape_share_a_call_but_not_a_batch() -> None:
    configs = [
        RunConfig(K=4),
        RunConfig(K=6),
        RunConfig(model="mlp"),
        RunConfig(K=4, seed=1),
        RunConfig(hidden=8),
    ]
    batches = make_batches(configs, [1000] * 5, 10**9)
    assert sorted(map(sorted, batches)) == [[0, 3], [1], [2], [4]]
    data = tiny.data()
    short = [RunConfig(**{**config.to_dict(), "max_epochs": 2}) for config in configs]
    results = train_runs(data.graph, data.x, data.y, short, tiny.masks(data.y))
    assert [result.config for result in results] == short


def test_one_run_beyond_the_budget_is_a_batch_of_its_own() -> None:
    assert make_batches([RunConfig(), RunConfig()], [100, 100], 10) == [[0], [1]]


def test_a_budget_below_one_run_recomputes_activations_and_changes_rounding_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = tiny.data()
    config, split = RunConfig(K=10, max_epochs=6, p=1.5), tiny.masks(data.y)
    kept: list[int] = []
    operators = Fused.operators

    def spy(*arguments: Any) -> Any:
        kept.append(arguments[10])
        return operators.eager(*arguments)

    def train(budget: int | str | None) -> tuple[RunResult, set[int]]:
        kept.clear()
        result = train_runs(data.graph, data.x, data.y, [config], split, memory_budget=budget)[0]
        return result, {every for every in kept if every != KEEP_NONE}

    monkeypatch.setattr(Fused, "operators", operators._replace(eager=spy))
    usual, keeps = train("1 GiB")
    assert keeps == set()  # trained by hand, past the operator
    lean, keeps_some = train(run_bytes(config, 60, 12, 2, 4) - 1)
    assert keeps_some == {sparsest(10)}
    torch.testing.assert_close(usual.logits, lean.logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(usual.history.val_loss, lean.history.val_loss, rtol=1e-5, atol=0)
    with pytest.raises(
        plap.InputError, match="16 hidden units and K = 10 on 60 nodes needs at least"
    ) as refusal:
        train(1000)
    least = str(refusal.value).rpartition("at least ")[2]
    assert train(least)[1] == {sparsest(10)}


def test_other_models_are_trained_whatever_they_take() -> None:
    data = tiny.data()
    configs = [RunConfig(model=model, max_epochs=2) for model in ("mlp", "gcn", "jknet")]
    results = train_runs(data.graph, data.x, data.y, configs, tiny.masks(data.y), memory_budget=1)
    assert [result.epochs for result in results] == [2, 2, 2]
