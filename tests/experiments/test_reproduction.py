"""``plap.reproduce``: what the command can do, in one call, without traces in the caller's process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import plap
from plap.experiments import reproduction
from plap.experiments.execution import Event, JobFailed
from plap.experiments.runner import TableProgress
from plap.experiments.runs import Job
from tiny_experiments import TINY, TWO_HOP, ThisProcess, means, write_tiny_table


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> ThisProcess:
    """Training in this process, to keep tests short."""
    executor = ThisProcess()
    monkeypatch.setattr(reproduction, "_executor", lambda *arguments: executor)
    return executor


def test_without_a_folder_nothing_is_written_until_asked(tmp_path: Path, here: ThisProcess) -> None:
    table = write_tiny_table(tmp_path)
    told: list[TableProgress] = []
    outcome = plap.reproduce(table, quick=True, only="model=two_hop", progress=told.append)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.toml", "two_hop.py"]
    assert told[-1].finished == told[-1].runs == len(told) - 1
    assert (outcome.problems, outcome.tracebacks) == ({}, ())
    assert (outcome.interrupted, outcome.all_failed) == (False, False)
    assert [(cell.model, len(cell.values)) for cell in outcome.result.cells] == [("two_hop", 3)] * 2
    with pytest.raises(plap.InputError, match="write needs a folder"):
        outcome.write()
    written = outcome.write(tmp_path / "new" / "report")
    assert [path.name for path in written] == ["tiny.md", "tiny.csv", "tiny.tex", "tiny.html"]
    assert all(path.read_bytes() == outcome.files[path.name] for path in written)
    plain = json.loads(outcome.to_json())
    assert [cell["mean"] for cell in plain["cells"]] == [cell.mean for cell in outcome.result.cells]
    assert plain["table"] == "tiny"


def test_a_folder_keeps_the_runs(tmp_path: Path, here: ThisProcess) -> None:
    table = write_tiny_table(tmp_path)
    first = plap.reproduce(str(table), out=tmp_path / "out", quick=True, only=["model=mlp"])
    trained = len(here.jobs)
    again = plap.reproduce(str(table), out=tmp_path / "out", quick=True, only=["model=mlp"])
    shown = plap.reproduce(table, out=tmp_path / "out", quick=True, only="model=mlp", report_only=True)
    assert len(here.jobs) == trained > 0
    assert means(first.result) == means(again.result) == means(shown.result)
    assert [path.parent for path in shown.write()] == [tmp_path / "out"] * 4


def test_problems_and_tracebacks(tmp_path: Path, here: ThisProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write_tiny_table(tmp_path, TINY.replace("phi=0.8", "phi=8"))

    def fails(next_job: Callable[[], Job | None]) -> Iterator[Event]:
        while (job := next_job()) is not None:
            yield JobFailed(job, f"{job.model} failed", "Traceback of an error", out_of_memory=True)

    part = plap.reproduce(table, quick=True, only="model=mlp")
    assert list(part.problems) == [("csbm:phi=8,n=60,f=8", "mlp")]
    assert "phi" in part.problems["csbm:phi=8,n=60,f=8", "mlp"]
    assert not part.all_failed
    monkeypatch.setattr(here, "run", fails)
    nothing = plap.reproduce(table, quick=True, only="model=mlp")
    assert nothing.all_failed
    assert nothing.tracebacks == ("Traceback of an error",)
    assert nothing.files["tiny-errors.log"] == b"Traceback of an error\n\n"
    assert [cell.out_of_memory for cell in nothing.report.cells] == [True, True]
    assert json.loads(nothing.to_json())["cells"][0]["problem"] == "mlp failed"


def test_ctrl_c_leaves_what_has_ended(
    tmp_path: Path, here: ThisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, whole = write_tiny_table(tmp_path), here.run

    def stopped(next_job: Callable[[], Job | None]) -> Iterator[Event]:
        for count, event in enumerate(whole(next_job)):
            if count == 9:
                raise KeyboardInterrupt
            yield event

    monkeypatch.setattr(here, "run", stopped)
    outcome = plap.reproduce(table, out=tmp_path / "out", quick=True)
    assert outcome.interrupted
    assert any(cell.mean is not None for cell in outcome.result.cells)
    assert any(cell.mean is None for cell in outcome.result.cells)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runs": 0}, "runs must be an integer of 1 or more, not 0"),
        ({"patience": 1.5}, "patience must be an integer of 1 or more, not 1.5"),
        ({"grid": "huge"}, "grid must be one of full, small, not 'huge'"),
        ({"workers": 0}, "workers must be an integer of 1 or more, not 0"),
        ({"executor": "slurm"}, "executor must be one of local, ray, not 'slurm'"),
        ({"address": "auto"}, "address is for the executor ray only"),
        ({"protocol": "fair"}, "protocol must be one of paper, sound"),
        ({"only": "dataset=cora"}, "has no dataset 'cora'"),
        ({"report_only": True}, "report_only needs out"),
        ({"report_only": True, "out": "nowhere"}, "there is no store nowhere/runs.sqlite"),
    ],
)
def test_mistakes(options: dict[str, object], words: str) -> None:
    with pytest.raises(plap.InputError) as caught:
        plap.reproduce("heterophilic", **options)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_a_picture_is_no_table() -> None:
    with pytest.raises(plap.InputError, match=r"entropy is a figure: .*write_figure"):
        plap.reproduce("entropy")
    with pytest.raises(plap.InputError, match=r"reproduce_all runs every table"):
        plap.reproduce("all")


def test_root_reaches_the_workers_and_not_the_caller(tmp_path: Path) -> None:
    """A model that asks where the data are; the caller's environment says something else, and keeps it."""
    table = write_tiny_table(tmp_path)
    (tmp_path / "two_hop.py").write_text(
        TWO_HOP.replace("def build(", "def build_(").lstrip()
        + f"""
def build(config, in_channels, out_channels):
    import os
    assert os.environ["PLAP_DATA"] == {str(tmp_path / "data")!r}
    return build_(config, in_channels, out_channels)
"""
    )
    before = dict(os.environ)
    outcome = plap.reproduce(
        table, quick=True, runs=1, only="dataset=csbm:phi=0.8,n=60,f=8,model=two_hop",
        root=tmp_path / "data", workers=1,
    )  # fmt: skip
    assert outcome.problems == {}
    assert dict(os.environ) == before


UNGUARDED = """
import sys
import plap
print("script")
outcome = plap.reproduce(sys.argv[1], quick=True, runs=1, only="model=mlp", workers=1)
print(len(outcome.problems), all(cell.mean is not None for cell in outcome.result.cells))
"""


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """Workers do not run the caller's script again."""
    (tmp_path / "script.py").write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", write_tiny_table(tmp_path)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["script", "0 True"], done.stderr
