"""Going backward by hand gives what autograd gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_training as tiny
from allocations import Allocations
from plap.data import GraphData
from plap.data.tasks import Task, training_task
from plap.kernels.fused.backend import FUSED
from plap.kernels.row_backend import RepeatedSteps
from plap.kernels.row_passes import POWERS
from plap.models import find_model
from plap.models.stacked import Family
from plap.training import RunConfig, train_runs
from plap.training.adam import StackedAdam
from plap.training.epochs import Active, ByHand, Epochs, Tape, epochs_of, make_targets
from plap.training.inputs import RunSettings, make_inputs
from plap.training.loop import run_bytes
from plap.training.modules import build_module

DTYPE = torch.float64


class Gradients(StackedAdam):
    """Keeps the gradients of the last step."""

    def step(self, gradients: Any) -> None:
        self.last = [gradient.clone() for gradient in gradients]
        super().step(gradients)


def both(
    configs: list[RunConfig],
    data: GraphData,
    x: Any = None,
    task: Task | None = None,
    labels: Tensor | None = None,
) -> list[tuple[Epochs, Gradients]]:
    """The same runs by hand and by autograd."""
    splits = [tiny.masks(data.y, seed=seed) for seed in range(len(configs))]
    x = data.x if x is None else x
    y = data.y if labels is None else labels
    task = training_task(y, splits, data.graph.num_nodes, None if labels is not None else 2, task)
    inputs = make_inputs(data.graph, x, DTYPE, adjacency=False)
    kind = find_model(configs[0].model)
    family = kind.stacked
    assert isinstance(family, Family)
    assert family.two_maps is not None
    found: list[tuple[Epochs, Gradients]] = []
    for by_hand in (True, False):
        modules = [build_module(config, inputs.num_features, task.num_outputs) for config in configs]
        parameters, buffers = family.stack(modules, DTYPE)
        rates, decays = (
            torch.tensor([getattr(c, name) for c in configs], dtype=DTYPE) for name in ("lr", "weight_decay")
        )
        adam = Gradients(list(parameters.values()), rates, decays)
        runs = Active(
            inputs,
            RunSettings(configs, DTYPE),
            adam,
            tuple(parameters),
            buffers,
            make_targets(task, [split.train for split in splits], y, DTYPE, training=True),
            make_targets(task, [split.val for split in splits], y, DTYPE),
            shared=all(kind.may_share(config.parameters) for config in configs),
        )
        epochs = ByHand.of(family.two_maps, runs) if by_hand else Tape(family, runs)
        assert epochs is not None
        found.append((epochs, adam))
    return found


def check(configs: list[RunConfig], **given: Any) -> None:
    """Losses, scores and gradients of three epochs agree to the last digits."""
    data = given.pop("data", None) or tiny.data()
    (hand, mine), (tape, other) = both(configs, data, **given)
    for epoch in range(3):
        torch.testing.assert_close(hand.step(epoch), tape.step(epoch), rtol=1e-10, atol=1e-12)
        for a, b in zip(mine.last, other.last, strict=True):
            assert b.abs().sum() > 0
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-11)
        for a, b in zip(hand.validate(), tape.validate(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("hidden", [3, 16, 40])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 2.5])
def test_powers(p: float, hidden: int, dropout: float) -> None:
    values: dict[str, Any] = {"p": p, "hidden": hidden, "dropout": dropout, "K": 3}
    check([RunConfig(mu=mu, seed=seed, **values) for seed, mu in enumerate((0.1, 1.0))])


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("penalty", ["mcp", "huber", "welsch"])
def test_penalties(penalty: str, detach: bool) -> None:
    values: dict[str, Any] = {"penalty": penalty, "detach_weights": detach, "dropout": 0.3, "unit": 0.5}
    check([RunConfig(gamma=gamma, seed=seed, **values) for seed, gamma in enumerate((0.5, 2.0))])


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_nothing_between_the_maps(dropout: float) -> None:
    check([RunConfig("mlp", dropout=dropout, seed=seed, lr=0.05) for seed in range(3)])


def test_runs_that_drop_different_shares_and_sparse_features() -> None:
    data = tiny.data()
    x = data.x.clone()
    x[x.abs() < 0.5] = 0
    check([RunConfig(dropout=rate, p=1.5, K=1) for rate in (0.2, 0.0, 0.8)], x=x.to_sparse_csr())


def test_few_labels_on_a_graph_with_far_away_nodes() -> None:
    """Rows that no labelled node depends on are left out."""
    data = tiny.data(nodes=400, features=5)
    data.y[40:] = -1
    check([RunConfig(p=1.5, K=2, dropout=0.5), RunConfig(p=1.0, K=2, dropout=0.5)], data=data)


def test_classes_with_weights() -> None:
    data = tiny.data()
    task = Task.of(data.y).learned(data.y, {"0": 3.0})
    check([RunConfig(p=2.0)], data=data, task=task)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("labels", ["several per node", "numbers"])
@pytest.mark.parametrize("model", ["pgnn", "mlp"])
def test_other_tasks(model: str, labels: str, dropout: float) -> None:
    data = tiny.data()
    y = tiny.multilabel(data) if labels == "several per node" else data.x[:, 0].double() ** 2
    configs = [RunConfig(model, dropout=dropout, seed=seed) for seed in range(2)]
    check(configs, data=data, labels=y)


def test_a_run_that_overflows_is_seen_to_do_so_and_ends_alone() -> None:
    data = tiny.data()
    (hand, adam), _ = both([RunConfig(seed=0), RunConfig(seed=0)], data)
    adam.parameters[0][1] = 1e200
    adam.parameters[2][1] = 1e200
    hand.step(0)  # what was evaluated before the change
    losses = hand.step(1)
    assert losses[0].isfinite()
    assert not losses[1].isfinite()
    assert adam.state()[0].steps.tolist()[0] == 2


def test_another_device_or_a_tight_budget_is_left_to_autograd() -> None:
    data = tiny.data()
    (hand, _), _ = both([RunConfig()], data)
    assert isinstance(hand, ByHand)
    runs = hand._runs
    tight = Active(
        runs.inputs, RunSettings([RunConfig()], DTYPE, 10**6), runs.adam, runs.names, runs.buffers,
        runs.train, runs.val, shared=False,
    )  # fmt: skip
    family = find_model("pgnn").stacked
    assert isinstance(family, Family)
    assert isinstance(epochs_of(family, tight), Tape)
    assert isinstance(epochs_of(family, runs), ByHand)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_labels_of_any_integer_type(dtype: torch.dtype) -> None:
    data = tiny.data()
    split, configs = tiny.masks(data.y), [RunConfig(max_epochs=3), RunConfig("mlp", max_epochs=3)]
    usual = train_runs(data.graph, data.x, data.y, configs, split)
    narrow = train_runs(data.graph, data.x, data.y.to(dtype), configs, split)
    for one, other in zip(usual, narrow, strict=True):
        assert torch.equal(one.logits, other.logits)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_memory_is_what_was_estimated_when_runs_end_too(dropout: float) -> None:
    """Buffers are gone before finished runs are evaluated on all nodes, and before the next batch is made."""
    data = tiny.data(nodes=3000, features=4)
    configs = [
        RunConfig(K=6, hidden=64, dropout=dropout, seed=seed, max_epochs=2 + seed) for seed in range(4)
    ]
    each = run_bytes(configs[0], 3000, 4, 2, 4)
    for budget in (each, 4 * each):
        with Allocations() as seen:
            train_runs(data.graph, data.x, data.y, configs, tiny.masks(data.y), memory_budget=budget)
        assert 0.5 * budget < seen.peak < 1.25 * budget


def test_steps_on_all_rows_are_evaluated_on_all_rows() -> None:
    """Where one thread on the rows that matter would be slower than all threads on all of them."""
    data = tiny.data(nodes=400)
    like = torch.empty(1, dtype=DTYPE).expand(1, 400, 4)
    rows = torch.tensor([[0]])
    for rows_of_training in (rows, None):
        steps = RepeatedSteps(
            FUSED.load(), like, (data.graph.indptr, data.graph.indices, data.graph.weight, data.graph.degree),
            torch.tensor([2.0], dtype=DTYPE), torch.tensor([0.1], dtype=DTYPE), 1, POWERS, rows_of_training,
        )  # fmt: skip
        evaluation = steps.without_gradient(rows)
        evaluation.start[:] = 1.0
        steps._steps._saved.result.zero_()
        computed = evaluation.forward()[0, :, 0] != 0
        assert bool(computed.all()) == (rows_of_training is None)
