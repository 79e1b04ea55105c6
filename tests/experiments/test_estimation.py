"""How long a table takes: from a few epochs to a range that the table itself then stays in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import plap
from plap.experiments import estimate, estimation
from plap.experiments.execution import Event, RunFinished
from plap.experiments.runs import Job
from plap.training import RunConfig
from tiny_experiments import TINY, ThisProcess, write_tiny_table

SECONDS = 0.01


class KnownSpeed(ThisProcess):
    """Every run takes 0.01 s per epoch."""

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        for event in super().run(next_job):
            if isinstance(event, RunFinished):
                slow = replace(event.record, seconds=SECONDS * event.record.epochs)
                yield RunFinished(event.job, slow)
            else:
                yield event


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> KnownSpeed:
    executor = KnownSpeed()
    monkeypatch.setattr(estimation, "LocalProcesses", lambda *arguments, **options: executor)
    return executor


def test_the_range_is_epochs_times_measured_seconds(tmp_path: Path, probe: KnownSpeed) -> None:
    table = write_tiny_table(tmp_path)
    told: list[str] = []
    options: dict[str, Any] = {
        "runs": 3,
        "grid": "small",
        "max_epochs": 40,
        "patience": 10,
        "search_epochs": 20,
    }
    found = estimate(table, only="model=mlp", workers=2, progress=told.append, **options)
    assert told == ["csbm:phi=0.8,n=60,f=8 · mlp", "csbm:phi=-0.8,n=60,f=8 · mlp"]
    searched, final = 4, 3
    for entry in found.datasets:
        assert entry.runs == searched + final
        assert entry.at_least == pytest.approx(SECONDS * 10 * (searched + final))
        assert entry.at_most == pytest.approx(SECONDS * (20 * searched + 40 * final))
    low, high = found.hours
    assert low == pytest.approx(2 * SECONDS * 10 * 7 / 3600 / 2)
    assert high == pytest.approx(2 * SECONDS * (80 + 120) / 3600 / 2)
    assert {config.max_epochs for job in probe.jobs for config in job.configs} == {1, 3}
    plain = found.to_dict()
    assert (plain["runs"], plain["hours_at_most"], plain["problems"]) == (14, high, [])


def test_what_is_stored_is_not_counted(tmp_path: Path, probe: KnownSpeed) -> None:
    table = write_tiny_table(tmp_path)
    plap.reproduce(table, out=tmp_path / "out", quick=True, max_epochs=3, only="model=mlp", workers=1)
    done = estimate(table, out=tmp_path / "out", quick=True, max_epochs=3, only="model=mlp")
    assert (done.runs, done.hours, probe.jobs) == (0, (0.0, 0.0), [])
    more = estimate(table, out=tmp_path / "out", quick=True, max_epochs=3, runs=5, only="model=mlp")
    assert more.runs == 2 * 2
    assert not (tmp_path / "elsewhere").exists()
    estimate(table, out=tmp_path / "elsewhere", quick=True, max_epochs=3, only="model=mlp")
    assert not (tmp_path / "elsewhere").exists()


def test_what_cannot_be_timed_is_named(tmp_path: Path, probe: KnownSpeed) -> None:
    table = write_tiny_table(tmp_path, TINY.replace("phi=0.8", "phi=8"))
    found = estimate(table, quick=True, only="model=mlp")
    assert list(found.problems) == [("csbm:phi=8,n=60,f=8", "mlp")]
    first, second = found.datasets
    assert first.at_most == 0 < second.at_most
    assert found.to_dict()["problems"][0]["model"] == "mlp"


def test_a_real_process(tmp_path: Path) -> None:
    table = write_tiny_table(tmp_path)
    found = estimate(table, quick=True, max_epochs=20, only="model=two_hop", workers=1)
    low, high = found.hours
    assert 0 < low <= high < 0.1


def test_a_run_by_the_published_rule_does_not_end_before_its_last_epoch() -> None:
    early = RunConfig(max_epochs=300, patience=50)
    assert estimation._fewest_epochs(early) == 50
    assert estimation._fewest_epochs(early.with_values(patience=500)) == 300
    assert estimation._fewest_epochs(early.with_values(stopping="published")) == 300
