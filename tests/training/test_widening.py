"""The best of a search once more, with more hidden units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import tiny_training as tiny
from plap.errors import InputError
from plap.fitting import FitSettings
from plap.fitting.search import fit_model
from plap.training import (
    RunConfig,
    RunResult,
    SearchSpace,
    TuneResult,
    architectures,
    train_runs,
    tune,
    tuning,
    workers,
)

DATA = tiny.data(nodes=80, phi=-0.6)
SPLIT = tiny.masks(DATA.y)
MLP = RunConfig("mlp", hidden=2, max_epochs=120, patience=60)


def search(x: torch.Tensor, y: torch.Tensor, *spaces: SearchSpace, **options: object) -> TuneResult:
    return tune(DATA.graph, x, y, tiny.masks(y), space=spaces, budget=600, **options)  # type: ignore[arg-type]


def units(result: TuneResult) -> dict[int, list[RunConfig]]:
    """What was tried, by its number of hidden units."""
    tried: dict[int, list[RunConfig]] = {}
    for trial in result.trials:
        tried.setdefault(trial.config.value("hidden"), []).append(trial.config)
    return tried


def rings() -> tuple[torch.Tensor, torch.Tensor]:
    """Points in a plane whose class changes from ring to ring: two units cannot tell them apart, 64 can."""
    generator = torch.Generator().manual_seed(0)
    x = 4 * torch.rand(80, 2, generator=generator) - 2
    return x, (x.norm(dim=1) > 1.4).long()


def test_a_winner_that_is_better_with_more_units_has_them() -> None:
    x, y = rings()
    found = search(x, y, SearchSpace(MLP, widen=True))
    assert found.best.value("hidden") == 64
    assert {run.config.value("hidden") for run in found.finalists} <= {2, 64}
    narrow = search(x, y, SearchSpace(MLP))
    assert {*units(narrow)} == {2}
    assert found.best_run.val_score > narrow.best_run.val_score


def test_the_best_is_tried_with_every_seed_of_the_last_rung() -> None:
    result = search(DATA.x, DATA.y, SearchSpace(MLP, widen=True))
    narrow = search(DATA.x, DATA.y, SearchSpace(MLP))
    wide = units(result)[64]
    assert [config.with_values(seed=0) for config in wide] == [narrow.best.with_values(hidden=64)] * 2
    assert [config.seed for config in wide] == [0, 1]
    first = [trial.config for trial in narrow.trials]
    assert [trial.config for trial in result.trials][: len(first)] == first  # in addition to all others


def test_units_that_are_given_stay() -> None:
    def tried(**options: object) -> set[int]:
        usual = {"models": ("pgnn",), "budget": 300, "seeds": 1, "max_epochs": 30, "time_limit": None}
        settings = FitSettings(**{**usual, "fixed": {"p": 2.0, "K": 1}, **options})  # type: ignore[arg-type]
        found = fit_model(DATA.graph, DATA.x, DATA.y, SPLIT, settings, task=DATA.task)
        return {trial.config.value("hidden") for trial in found.trials}

    assert tried(hidden=8) == {8}
    assert tried(fixed={"p": 2.0, "K": 1, "hidden": 8}) == {8}
    assert tried() == {16, 64}


def test_models_that_are_wide_already_are_not_widened() -> None:
    (space,) = architectures(RunConfig("mlp", hidden=64), widen=True)
    assert space.widened(space.base) is None
    assert all(each.widened(each.base) is None for each in architectures(RunConfig("deep-pgnn"), widen=True))


def test_nothing_is_widened_without_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the last rung is expected to take, so that there is time left to train the winner."""
    monkeypatch.setattr("plap.training.tuning._Stages._expected", lambda *_: 1e9)
    limited = search(DATA.x, DATA.y, SearchSpace(MLP, widen=True), time_limit=300)
    assert {*units(limited)} == {2}
    unlimited = search(DATA.x, DATA.y, SearchSpace(MLP, widen=True))
    assert {*units(unlimited)} == {2, 64}


@pytest.mark.parametrize("widen", [False, True])
def test_progress_reaches_the_end_with_the_last_run(widen: bool) -> None:
    told: list[float] = []
    search(DATA.x, DATA.y, SearchSpace(MLP, widen=widen), progress=lambda state: told.append(state.done))
    assert max(told) == told[-1] == pytest.approx(1.0)


def test_a_memory_budget_that_is_enough_for_fewer_units_is_enough() -> None:
    base = RunConfig(hidden=2, p=2.0, K=4, max_epochs=20)
    space = {"p": (2.0,), "penalty": ("power",), "K": (4,)}
    wide = base.with_values(hidden=64)

    def enough(config: RunConfig, budget: int) -> bool:
        try:
            train_runs(DATA.graph, DATA.x, DATA.y, [config.with_values(max_epochs=1)], [SPLIT],
                       memory_budget=budget)  # fmt: skip
        except InputError:
            return False
        return True

    budget = next(2**k for k in range(10, 30) if enough(base, 2**k))
    assert not enough(wide, budget)
    found = search(DATA.x, DATA.y, SearchSpace(base, widen=True, **space), memory_budget=budget)
    assert {*units(found)} == {2}


def test_what_the_clock_cut_off_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The members of an ensemble that are still to be trained would be left out otherwise."""
    train = workers.train_side_by_side

    def cut_off(*arguments: Any, **options: Any) -> list[RunResult]:
        return [
            replace(run, out_of_time=True, val_score=1.0) if run.config.value("hidden") == 64 else run
            for run in train(*arguments, **options)
        ]

    monkeypatch.setattr(tuning, "train_side_by_side", cut_off)
    found = search(DATA.x, DATA.y, SearchSpace(MLP, widen=True))
    assert 64 in units(found)
    assert found.best.value("hidden") == 2
    assert not any(run.out_of_time for run in found.finalists)


def test_units_that_were_searched_are_not_tried_again() -> None:
    found = search(DATA.x, DATA.y, SearchSpace(MLP, widen=True, hidden=(2, 64)))
    assert found.best not in found.runners_up
    tried = [(trial.config, trial.rung) for trial in found.trials]
    assert len(tried) == len({*tried})
