"""Time limits: what is cut off keeps its best epoch, and nothing depends on how fast the machine is."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
import torch

import plap
from plap.data import csbm, split
from plap.errors import InputError
from plap.fitting import FitSettings, PieceSettings
from plap.training import RunConfig, RunResult, SearchSpace, train_ensemble, train_runs, tune
from plap.training.batch import Batch
from plap.training.halving import Rung, lasting, ranked
from plap.training.stopping import Deadline, parse_duration
from plap.training.tuning import _Stages

DATA = csbm(phi=-0.75, n=200, f=10, d=6.0, seed=1)
SPLIT = split(DATA, seed=1)
GIVEN: tuple[Any, Any, Any] = (DATA.graph, DATA.x, DATA.y)


class Clock:
    """A clock that moves by one second per epoch of a batch, and not otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        step = Batch.train_epoch

        def timed(batch: Batch) -> list[int]:
            self.now += 1.0
            return step(batch)

        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(Batch, "train_epoch", timed)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize("wrong", ["soon", "10 weeks", "-3s", "", 0, -1.0, float("nan"), True, float("inf")])
def test_what_is_no_duration_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="time_limit must"):
        parse_duration(wrong)


def test_parts_of_a_deadline(clock: Clock) -> None:
    deadline = Deadline.of("2m")
    clock.now = 20.0
    assert (deadline.left, deadline.part(0.5).left, deadline.passed) == (100.0, 50.0, False)
    clock.now = 120.0
    assert (deadline.left, deadline.passed) == (0.0, True)
    assert Deadline.of(deadline) is deadline
    assert not Deadline.of(None).part(0.5).is_set


def test_runs_end_with_their_best_epoch(clock: Clock) -> None:
    configs = [RunConfig(K=K, max_epochs=50) for K in (1, 2)]  # two shapes, so two batches
    whole = train_runs(*GIVEN, [configs[0].with_values(max_epochs=7)], SPLIT)
    first, second = train_runs(*GIVEN, configs, SPLIT, time_limit=7)
    assert (first.epochs, first.out_of_time, first.interrupted) == (7, True, False)
    assert first.val_score == whole[0].val_score
    assert first.best_epoch == whole[0].best_epoch
    assert (second.epochs, second.best_epoch, second.out_of_time) == (0, 0, True)
    assert second.logits.shape == first.logits.shape
    assert {*second.state} == {*first.state}


def test_there_is_a_first_model_whatever_it_takes() -> None:
    first, second = train_runs(*GIVEN, [RunConfig(K=K) for K in (1, 2)], SPLIT, time_limit=1e-9)
    assert (first.epochs, first.best_epoch, second.epochs) == (1, 1, 0)
    result = plap.fit(DATA, SPLIT, time_limit=1e-9)
    assert len(result.methods) == 5
    assert not result.interrupted


def test_an_ensemble_takes_over_known_runs_and_leaves_out_what_was_cut_off(clock: Clock) -> None:
    config = RunConfig(max_epochs=5)
    known = train_runs(*GIVEN, [config.with_values(seed=0)], SPLIT)
    both = train_ensemble(*GIVEN, SPLIT, config, 2, known=known)
    assert both.runs[0] is known[0]
    assert both.runs[1].val_score == train_ensemble(*GIVEN, SPLIT, config, [1]).runs[0].val_score
    cut = train_ensemble(*GIVEN, SPLIT, config, 2, known=known, time_limit=2)
    assert cut.runs == (known[0],)
    alone = train_ensemble(*GIVEN, SPLIT, config, 2, time_limit=2)
    assert [run.epochs for run in alone.runs] == [2, 2]


def test_a_search_hands_its_winner_on() -> None:
    space = SearchSpace(RunConfig(max_epochs=8), p=(2.0,), mu=(0.1,), K=(2,), penalty=("power",))
    found = tune(*GIVEN, SPLIT, space=space, budget=100)
    assert [run.config for run in found.finalists[:2]] == [found.best.with_values(seed=k) for k in range(2)]
    again = train_runs(*GIVEN, [found.finalists[1].config], SPLIT)
    assert again[0].val_score == found.finalists[1].val_score


@pytest.mark.parametrize(
    ("limit", "whole", "epochs"), [(60, 100, [40, 10, 1, 40, 0, 0]), (250, 300, 6 * [40])]
)
def test_where_time_is_short_every_finalist_has_one_seed_before_any_has_two(
    clock: Clock, limit: float, whole: float, epochs: list[int]
) -> None:
    configs = [RunConfig(K=K, max_epochs=40) for K in (1, 2)]  # two shapes, so two batches

    def train(runs: list[RunConfig], limit: Deadline, report: Any = None) -> list[RunResult]:
        return train_runs(*GIVEN, runs, SPLIT, time_limit=limit)

    stages = _Stages(
        train, Deadline.of(limit), 2, whole=Deadline.of(whole), nodes=DATA.graph.num_nodes, progress=None,
        best_run=None, may_climb=False, may_widen=False,
    )  # fmt: skip
    stages.run(configs, Rung(2, 5, 1), 0)
    assert clock.now == 10
    found = stages.run(configs, Rung(2, 0, 3), 1)
    assert [run.epochs for run in found] == epochs
    assert [(run.config.value("K"), run.config.seed) for run in found] == [
        (K, k) for K in (1, 2) for k in range(3)
    ]
    assert clock.now <= 101
    assert len(lasting(found[:3])) == (1 if 0 in epochs else 3)


def test_a_member_that_had_hardly_begun_is_none(clock: Clock) -> None:
    """A run that is cut off after its first epoch would spoil the mean of those that had time."""
    whole, half, begun = (
        train_runs(*GIVEN, [RunConfig(max_epochs=20, seed=seed)], SPLIT, time_limit=limit)[0]
        for seed, limit in enumerate((12, 6, 1))
    )
    assert lasting([whole, half, begun]) == [whole, half]
    assert lasting([begun]) == [begun]
    assert lasting([]) == []
    ensemble = train_ensemble(*GIVEN, SPLIT, whole.config, 3, known=[whole, half, begun])
    assert ensemble.runs == (whole, half)
    other = RunConfig(max_epochs=20, mu=1.0)
    worse = [
        replace(whole, config=other.with_values(seed=k), val_score=whole.val_score / 2) for k in range(3)
    ]
    runs = [begun, replace(whole, val_score=0.9), begun, *worse]
    assert ranked([whole.config, other], runs, 3, 40)[0] == whole.config


def test_a_search_in_a_hurry_ends_in_time_with_a_model(clock: Clock) -> None:
    found = tune(*GIVEN, SPLIT, budget=100_000, time_limit=150)
    assert clock.now <= 151
    assert found.finalists
    assert found.finalists[0].out_of_time
    assert not found.interrupted
    assert min(trial.config.lr for trial in found.trials) >= 0.01


def test_a_search_in_a_hurry_keeps_to_the_first_space(clock: Clock) -> None:
    spaces = [SearchSpace(RunConfig()), SearchSpace(RunConfig("deep-pgnn"))]
    for limit in (1e-9, 40, 150):
        found = tune(*GIVEN, SPLIT, space=spaces, time_limit=limit)
        assert {trial.config.model for trial in found.trials} == {"pgnn"}
        assert found.best.model == "pgnn"


def test_a_fit_says_that_the_clock_ended_it(clock: Clock) -> None:
    result = plap.fit(DATA, SPLIT, time_limit=200, models=("pgnn",), rivals=("mlp",))
    assert clock.now <= 202
    assert any("time limit (200)" in note for note in result.notes)
    assert [method.name for method in result.methods] == ["pGNN", "MLP"]


def test_the_usual_limit_changes_no_search_that_ends_before(clock: Clock) -> None:
    settings = FitSettings()
    assert settings.start_clock().left == 480
    assert not FitSettings(time_limit=None).start_clock().is_set
    assert not FitSettings(pieces=PieceSettings(parts=2)).start_clock().is_set
    with pytest.raises(InputError, match="does not go with training in pieces"):
        FitSettings(time_limit="1m", pieces=PieceSettings(parts=2))
    options: Any = {"budget": 200, "max_epochs": 5, "seeds": 2, "rivals": ()}
    usual, endless = (plap.fit(DATA, SPLIT, time_limit=limit, **options) for limit in ("auto", None))
    assert usual.methods[0].fitted is not None
    assert endless.methods[0].fitted is not None
    assert usual.methods[0].fitted.config == endless.methods[0].fitted.config
    assert torch.equal(usual.methods[0].probabilities, endless.methods[0].probabilities)
    assert not usual.methods[0].fitted.out_of_time
