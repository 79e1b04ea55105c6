"""Training in pieces against training on the whole graph, and against itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import tiny_training
from plap.data import csbm, split
from plap.errors import InputError
from plap.models import ModelKind, Parameters, register_model
from plap.training import Progress, RunConfig, train_runs
from plap.training.pieces import EvaluateOn, Pieces, train_in_pieces

DATA = tiny_training.data(nodes=80)
EVALUATIONS: tuple[EvaluateOn, EvaluateOn] = ("halos", "whole")
SPLIT = tiny_training.masks(DATA.y)
VALUES: dict[str, Any] = {"p": 1.5, "mu": 0.1, "K": 2, "hidden": 8, "max_epochs": 6, "dropout": 0.0}
CONFIG = RunConfig(**VALUES)


def in_parts(parts: int = 6, **options: int) -> Pieces:
    return Pieces.of_parts(DATA.graph, DATA.x, DATA.y, SPLIT, parts, cache=False, **options)


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("model", ["pgnn", "gcn"])
def test_one_piece_is_the_whole_graph(model: str, multilabel: bool) -> None:
    y = tiny_training.multilabel(DATA) if multilabel else DATA.y
    config = tiny_training.config(model, **VALUES)
    (whole,) = train_runs(DATA.graph, DATA.x, y, [config], SPLIT)
    pieces = Pieces(DATA.graph, DATA.x, y, SPLIT, torch.zeros(80, dtype=torch.int64))
    result = train_in_pieces(pieces, config)
    for name in ("train_loss", "val_loss", "val_score"):
        ours, theirs = getattr(result.history, name), getattr(whole.history, name)
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert result.best_epoch == whole.best_epoch
    torch.testing.assert_close(result.logits, whole.logits, rtol=1e-3, atol=1e-4)


def test_the_gradient_of_a_step_is_that_of_the_mean_loss_of_all_its_pieces() -> None:
    one, many = in_parts(parts_per_batch=6), in_parts(pieces_per_step=6)
    assert [len(step) for step in many.steps(0)] == [6]
    assert sum(share.labelled for share in next(many.steps(0))) == int(SPLIT.train.sum())
    mlp = tiny_training.config("mlp", **VALUES)  # sees no edges, so that cutting them changes nothing
    a, b = train_in_pieces(one, mlp), train_in_pieces(many, mlp)
    torch.testing.assert_close(a.history.train_loss, b.history.train_loss, rtol=1e-5, atol=1e-6)
    for name, value in a.state.items():
        torch.testing.assert_close(b.state[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", ["mlp", "pgnn", "gcn", "sage", "sgc", "appnp", "gprgnn"])
def test_halos_and_the_whole_graph_give_the_same_predictions(model: str) -> None:
    config = tiny_training.config(model, **VALUES | {"max_epochs": 2})
    a, b = (train_in_pieces(in_parts(), config, evaluation=on) for on in EVALUATIONS)
    torch.testing.assert_close(a.logits, b.logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(a.history.val_loss, b.history.val_loss, rtol=1e-4, atol=1e-5)


def test_dropout_follows_from_seed_epoch_and_piece() -> None:
    config = CONFIG.with_values(dropout=0.5)
    first = train_in_pieces(in_parts(), config)
    torch.rand(3)  # another state of PyTorch's generator
    again = train_in_pieces(in_parts(), config)
    assert torch.equal(first.history.train_loss, again.history.train_loss)
    other = train_in_pieces(in_parts(), replace(config, seed=1))
    assert not torch.equal(first.history.train_loss, other.history.train_loss)


def test_statistics_of_batch_norm_do_not_depend_on_how_a_step_is_cut() -> None:
    """Equal pieces: the mean of their changes is the change of one."""

    class Normed(torch.nn.Module):
        hops = 0

        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.norm, self.lin = torch.nn.BatchNorm1d(inputs), torch.nn.Linear(inputs, outputs)

        def forward(self, x: torch.Tensor, graph: object) -> torch.Tensor:
            out: torch.Tensor = self.lin(self.norm(x))
            return out

    register_model(ModelKind("normed", Parameters, lambda c, i, o: Normed(i, o)), replace=True)
    config = RunConfig("normed", max_epochs=1)
    x = DATA.x.to_dense()[:1].expand(80, -1) + torch.arange(80).remainder(2).unsqueeze(1)
    part = torch.arange(80) // 2 % 4
    states = [
        train_in_pieces(
            Pieces(DATA.graph, x, DATA.y, SPLIT, part, pieces_per_step=4, parts_per_batch=k), config
        )
        for k in (1, 4)
    ]
    for name in ("norm.running_mean", "norm.num_batches_tracked"):
        torch.testing.assert_close(states[0].state[name], states[1].state[name])
    assert int(states[0].state["norm.num_batches_tracked"]) == 1


def test_parts_learn_as_well_as_the_whole_graph() -> None:
    data = csbm(phi=0.7, n=400, f=30, d=8.0, seed=2)
    masks = split(data, seed=1)
    config = RunConfig(p=2.0, K=2, max_epochs=60)
    (whole,) = train_runs(data.graph, data.x, data.y, [config], masks)
    pieces = Pieces.of_parts(data.graph, data.x, data.y, masks, 12, parts_per_batch=3, cache=False)
    parts = train_in_pieces(pieces, config)
    right = [float((r.logits.argmax(1) == data.y)[masks.test].double().mean()) for r in (whole, parts)]
    assert right[0] > 0.8
    assert right[1] > right[0] - 0.05


def test_early_stopping_and_progress() -> None:
    seen: list[Progress] = []
    config = replace(CONFIG, max_epochs=200, patience=3)
    result = train_in_pieces(in_parts(), config, progress=seen.append)
    assert result.epochs == len(seen) == result.best_epoch + 3 < 200
    assert seen[-1].done == 1.0
    assert result.val_score == float(result.history.val_score.max())
    assert seen[-1].best_score == result.val_score


def test_pieces_of_graphs_leave_out_those_without_training_nodes() -> None:
    graph_of_node = torch.arange(80) // 20
    first_two = torch.arange(80) < 40
    masks = tiny_training.Masks(SPLIT.train & first_two, SPLIT.val & ~first_two)
    pieces = Pieces.of_graphs(DATA.graph, DATA.x, DATA.y, masks, graph_of_node, parts_per_batch=1)
    steps = list(pieces.steps(0))
    assert sorted(int(share.nodes[0]) // 20 for step in steps for share in step) == [0, 1]
    assert torch.cat(list(pieces.groups())).sort().values.tolist() == list(range(80))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"device": "tpu"}, "device must be auto, cpu, cuda, cuda:N or mps"),
        ({"device": "cuda:99"}, "there is no device cuda:99"),
        ({"evaluation": "halo"}, "evaluation must be one of auto, halos, whole"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        train_in_pieces(in_parts(), CONFIG, **options)  # type: ignore[arg-type]


def test_a_model_that_does_not_say_how_far_it_sees_is_evaluated_on_the_whole_graph() -> None:
    config = tiny_training.config("gat", **VALUES | {"max_epochs": 1})
    assert train_in_pieces(in_parts(), config).epochs == 1
    with pytest.raises(InputError, match="not known how far model 'gat' sees"):
        train_in_pieces(in_parts(), config, evaluation="halos")


def test_one_part_is_the_whole_graph() -> None:
    data = csbm(phi=0.5, n=100, f=8, seed=1)
    pieces = Pieces.of_parts(data.graph, data.x, data.y, split(data), 1, cache=False)
    ((share,),) = pieces.steps(0)
    assert pieces.training_piece(share).graph.digest == data.graph.digest
