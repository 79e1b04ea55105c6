"""What ``plap bench solve`` measures, and the figures that it must reach."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

import solve as benchmark
from command import run

ALLOWED = 1.3


def over_the_note(p: float) -> float:
    infos = benchmark.counts(benchmark.families(), "auto", p, benchmark.MU)
    assert all(info.converged for info in infos)
    return statistics.geometric_mean(info.edge_passes for info in infos) / benchmark.NOTE[p]


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_few_walks_over_the_edges(p: float) -> None:
    assert over_the_note(p) <= ALLOWED


@pytest.mark.long
@pytest.mark.parametrize("p", list(benchmark.NOTE))
def test_few_walks_for_every_p(p: float) -> None:
    assert over_the_note(p) <= ALLOWED


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("p", benchmark.COVERED_P)
def test_no_failure_for_any_p_and_mu(p: float, seed: int) -> None:
    infos = benchmark.counts(benchmark.families(seed), "auto", p, benchmark.COVERED_MU)
    assert [info for info in infos if not info.converged] == []


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "bench", "solve", "--json-out", tmp_path / "no" / "out.json") == 2
    said = capsys.readouterr().err
    assert "--json-out" in said
    assert "Traceback" not in said
