"""Several finalists: a few seeds each, then the best mean of their validation scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import plap
from plap.experiments import estimate, estimation, reproduction
from plap.experiments.execution import Event
from plap.experiments.runner import TableProgress
from plap.experiments.runs import Job
from tiny_experiments import ThisProcess, write_tiny_table

EFFORT: dict[str, Any] = {
    "grid": "small", "runs": 5, "search_epochs": 4, "max_epochs": 8, "finalists": 2, "only": "model=mlp",
}  # fmt: skip


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> ThisProcess:
    executor = ThisProcess()
    monkeypatch.setattr(reproduction, "_executor", lambda *arguments: executor)
    monkeypatch.setattr(estimation, "LocalProcesses", lambda *arguments, **options: executor)
    return executor


def test_the_best_mean_of_three_seeds_is_chosen(tmp_path: Path, here: ThisProcess) -> None:
    table, told = write_tiny_table(tmp_path), list[TableProgress]()
    outcome = plap.reproduce(table, progress=told.append, **EFFORT)
    for runs in outcome.cells:
        ranked = sorted(runs.search, key=lambda record: (record.val_score, -record.val_loss), reverse=True)
        configs = [record.run.config.with_values(seed=0, max_epochs=8) for record in ranked[:2]]
        assert [record.run.config.seed for record in runs.finalists] == [0, 1, 2] * 2
        groups = {
            config: [r for r in runs.finalists if r.run.config.with_values(seed=0) == config]
            for config in configs
        }
        scores = {
            config: (fmean(r.val_score for r in group), -fmean(r.val_loss for r in group))
            for config, group in groups.items()
        }
        assert runs.chosen == max(scores, key=lambda config: scores[config])
        assert len(runs.every) == 4 + 2 * 3 + 2  # three of the five final runs are the winner's
    assert (told[-1].finished, told[-1].runs, told[-1].done) == (24, 24, 1.0)
    assert told[0].runs == 2 * (4 + 3 + 5)
    assert any("the 2 with the best validation scores with 3 seeds each" in r for r in outcome.result.rules)


def test_a_stopped_call_continues_where_it_was(
    tmp_path: Path, here: ThisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, whole = write_tiny_table(tmp_path), here.run
    ends = iter([2, 5, 7, 9])

    def stopped(next_job: Callable[[], Job | None]) -> Iterator[Event]:
        last = next(ends)
        for count, event in enumerate(whole(next_job)):
            if count == last:
                raise KeyboardInterrupt
            yield event

    monkeypatch.setattr(here, "run", stopped)
    for _ in range(4):
        assert plap.reproduce(table, out=tmp_path / "out", **EFFORT).interrupted
    monkeypatch.setattr(here, "run", whole)
    again = plap.reproduce(table, out=tmp_path / "out", **EFFORT)
    straight = plap.reproduce(table, **EFFORT)
    assert [cell.values for cell in again.result.cells] == [cell.values for cell in straight.result.cells]
    left = estimate(table, out=tmp_path / "out", **EFFORT)
    assert left.runs == 0
    assert estimate(table, out=tmp_path / "elsewhere", **EFFORT).runs == 2 * (4 + 3 + 5)


def test_evidence_keeps_the_finalists(tmp_path: Path, here: ThisProcess) -> None:
    table = write_tiny_table(tmp_path)
    outcome = plap.reproduce(table, stopping="published", **EFFORT)
    outcome.publish(tmp_path / "results")
    shown = plap.reproduce(table, evidence=tmp_path / "results")
    assert shown.result == outcome.result
    assert any("the first with the best validation score counts" in rule for rule in shown.result.rules)
    assert [len(runs.finalists) for runs in shown.cells] == [6, 6]
    with pytest.raises(plap.InputError, match="finalists must be an integer of 1 or more, not 0"):
        plap.reproduce(table, **{**EFFORT, "finalists": 0})


@pytest.mark.parametrize("seeds", [1, 4, 7])
def test_finalists_have_as_many_seeds_as_asked_for(tmp_path: Path, here: ThisProcess, seeds: int) -> None:
    table, told = write_tiny_table(tmp_path), list[TableProgress]()
    outcome = plap.reproduce(table, progress=told.append, finalist_seeds=seeds, **EFFORT)
    for runs in outcome.cells:
        assert [record.run.config.seed for record in runs.finalists] == [*range(seeds)] * 2
        assert len(runs.final) == 5
        assert len(runs.every) == 4 + 2 * seeds + max(5 - seeds, 0)
    assert {status.runs for status in told} == {2 * (4 + 2 * seeds + max(5 - seeds, 0))}
    words = "1 seed each" if seeds == 1 else f"{seeds} seeds each"
    assert any(words in rule for rule in outcome.result.rules)
    outcome.publish(tmp_path / "results")
    assert plap.reproduce(table, evidence=tmp_path / "results").result == outcome.result
