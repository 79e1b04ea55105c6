"""The metric that the user chose is the validation score, whole or in pieces; weights of classes."""

from __future__ import annotations

import pytest
import torch

import tiny_training as tiny
from plap.data import METRICS, Task
from plap.data.tasks import Regression
from plap.errors import InputError
from plap.training import RunConfig, build_module, train_ensemble, train_runs, tune
from plap.training.pieces import Pieces, train_in_pieces
from plap.training.space import SearchSpace

DATA = tiny.data(nodes=120)
RARE = torch.where(torch.arange(120) % 5 > 0, 0, DATA.y)
SPLIT = tiny.masks(RARE)
OF_CLASSES = [name for name, metric in METRICS.items() if "multiclass" in metric.tasks]


def numbers() -> torch.Tensor:
    """Numbers that the features tell something about."""
    x = DATA.x.to_dense().double()
    return 500 + 40 * x[:, 0] - 30 * x[:, 1]


@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("model", ["pgnn", "gat"])
def test_the_validation_score_is_the_metric(name: str, model: str) -> None:
    task = Task.of(RARE).with_metric(name)
    configs = [tiny.config(model, max_epochs=6, hidden=4, seed=seed) for seed in range(2)]
    for run in train_runs(DATA.graph, DATA.x, RARE, configs, SPLIT, task=task):
        said = task.probabilities(run.logits.double())
        learned = task.learned(RARE[SPLIT.train])
        expected = learned.merit(RARE[SPLIT.val], said[SPLIT.val])
        assert run.val_score == pytest.approx(expected, abs=1e-5)
        assert run.val_score == run.history.val_score.max()


@pytest.mark.parametrize("name", ["accuracy", "average_precision", "log_loss"])
def test_pieces_have_the_same_score(name: str) -> None:
    task = Task.of(RARE).with_metric(name)
    pieces = Pieces.of_parts(DATA.graph, DATA.x, RARE, SPLIT, 4, cache=False, task=task)
    run = train_in_pieces(pieces, RunConfig(hidden=4, max_epochs=4), device="cpu")
    said = task.probabilities(run.logits.double())
    expected = pieces.task.merit(RARE[SPLIT.val], said[SPLIT.val])
    assert run.val_score == pytest.approx(expected, abs=1e-5)


def test_weights_of_classes_are_in_the_training_loss_alone() -> None:
    config = RunConfig("mlp", hidden=4, max_epochs=1, dropout=0.0)
    plain = Task.of(RARE)
    weighted = plain.learned(RARE[SPLIT.train], "balanced")
    one, other = (
        train_runs(DATA.graph, DATA.x, RARE, [config], SPLIT, task=task)[0] for task in (plain, weighted)
    )
    many = train_runs(DATA.graph, DATA.x, RARE, [config.with_values(max_epochs=40)], SPLIT, task=weighted)[0]
    rare = weighted.probabilities(many.logits)[:, 1]
    fair = train_runs(DATA.graph, DATA.x, RARE, [config.with_values(max_epochs=40)], SPLIT, task=plain)[0]
    assert float(rare.mean()) > float(plain.probabilities(fair.logits)[:, 1].mean())
    weights = weighted.weights(RARE[SPLIT.train])
    assert weights is not None
    module = build_module(config, 12, 2).eval()
    logits = module(DATA.x.to_dense(), DATA.graph)
    losses = torch.nn.functional.cross_entropy(logits, RARE, reduction="none")[SPLIT.train].detach()
    assert float(one.history.train_loss[0]) == pytest.approx(float(losses.mean()), rel=1e-4)
    expected = float((losses * weights).sum() / weights.sum())
    assert float(other.history.train_loss[0]) == pytest.approx(expected, rel=1e-4)


def test_weights_in_one_piece_are_those_of_the_whole_graph() -> None:
    task = Task.of(RARE).learned(RARE[SPLIT.train], "balanced")
    config = RunConfig("mlp", hidden=4, max_epochs=3, dropout=0.0)
    whole = train_runs(DATA.graph, DATA.x, RARE, [config], SPLIT, task=task)[0]
    part = torch.zeros(120, dtype=torch.int64)
    piece = train_in_pieces(Pieces(DATA.graph, DATA.x, RARE, SPLIT, part, task=task), config, device="cpu")
    torch.testing.assert_close(piece.history.train_loss, whole.history.train_loss, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", ["huber", "squared"])
def test_numbers_are_learned_in_their_own_unit(loss: str) -> None:
    y = numbers()
    y[~(SPLIT.train | SPLIT.val)] = torch.nan
    config = RunConfig("mlp", max_epochs=200, lr=0.05, dropout=0.0, weight_decay=0.0)
    task = Regression(loss=loss)  # type: ignore[arg-type]
    found = train_ensemble(DATA.graph, DATA.x, y, SPLIT, config, 2, task=task)
    assert found.predictions.shape == (120,)
    assert isinstance(found.task, Regression)
    assert found.task.centre == pytest.approx(float(y[SPLIT.train].mean()))
    assert found.task.scores(y[SPLIT.val], found.probabilities[SPLIT.val])["r2"] > 0.8


def test_numbers_in_pieces_and_in_a_search() -> None:
    y = numbers().float()
    pieces = Pieces.of_parts(DATA.graph, DATA.x, y, SPLIT, 4, cache=False)
    run = train_in_pieces(pieces, RunConfig("mlp", hidden=4, max_epochs=5), device="cpu")
    assert run.logits.shape == (120, 1)
    expected = pieces.task.merit(y[SPLIT.val], pieces.task.probabilities(run.logits)[SPLIT.val])
    assert run.val_score == pytest.approx(expected, abs=1e-4)
    task = Task.of(y).with_metric("mae")
    space = SearchSpace(RunConfig("mlp", max_epochs=5), lr=(0.01, 0.1))
    found = tune(DATA.graph, DATA.x, y, SPLIT, space=space, budget=20, task=task)
    assert all(trial.val_score < 0 for trial in found.trials)


def test_a_task_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="y holds labels for multiclass data, but the task is regression"):
        train_runs(DATA.graph, DATA.x, RARE, [RunConfig()], SPLIT, task=Regression())
