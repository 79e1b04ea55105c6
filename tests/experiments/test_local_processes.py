from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from plap.experiments.execution import Event, JobFailed, RunFinished
from plap.experiments.local_processes import LocalProcesses
from plap.experiments.plan import Effort, Selection, make_cells
from plap.experiments.runner import run_cells
from plap.experiments.runs import Job
from plap.experiments.store import Store
from plap.experiments.tables import load_table
from tiny_experiments import ThisProcess, equal_records, write_tiny_table

EFFORT = Effort(runs=3, grid="small", search_epochs=6, max_epochs=12, patience=10)


def children() -> list[psutil.Process]:
    """Workers of this process: spawned Pythons, not Python's resource tracker, nor one just killed."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is one, too
            if any("spawn_main" in part for part in child.cmdline()):
                found.append(child)
    return found


class KillsWorkers(LocalProcesses):
    """Kills a worker after each of the first events."""

    def __init__(self, kills: int) -> None:
        super().__init__(2)
        self._kills = kills

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        for count, event in enumerate(super().run(next_job)):
            if isinstance(event, RunFinished) and count < self._kills:
                children()[0].kill()
            yield event


def test_the_same_results_as_in_one_process_even_if_workers_are_killed(tmp_path: Path) -> None:
    cells = make_cells(load_table(str(write_tiny_table(tmp_path))), "sound", EFFORT, Selection())
    with Store(tmp_path / "here.sqlite") as here, Store(tmp_path / "there.sqlite") as there:
        run_cells(cells, here, ThisProcess())
        assert run_cells(cells, there, KillsWorkers(2)) == {}
        assert equal_records(here.all_records(), there.all_records())
    assert children() == []


def test_a_job_that_kills_every_worker_is_given_up(tmp_path: Path) -> None:
    path = write_tiny_table(tmp_path)
    (tmp_path / "two_hop.py").write_text(
        "import os, signal\ndef build(config, i, o):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    cells = make_cells(load_table(str(path)), "sound", EFFORT, Selection.parse(["model=two_hop"]))
    with Store(tmp_path / "runs.sqlite") as store:
        problems = run_cells(cells[:1], store, LocalProcesses(1))
    (failure,) = problems.values()
    assert "the worker was killed 3 times" in failure.reason
    assert failure.out_of_memory


def test_an_error_in_a_model_is_told_with_its_cause(tmp_path: Path) -> None:
    path = write_tiny_table(tmp_path)
    (tmp_path / "two_hop.py").write_text("def build(config, i, o):\n    raise ZeroDivisionError('no good')\n")
    cells = make_cells(load_table(str(path)), "sound", EFFORT, Selection.parse(["model=two_hop"]))
    events = []

    class Listening(LocalProcesses):
        def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
            for event in super().run(next_job):
                events.append(event)
                yield event

    with Store(tmp_path / "runs.sqlite") as store:
        problems = run_cells(cells, store, Listening(1))
    assert all(isinstance(event, JobFailed) for event in events)
    assert len(problems) == 2
    assert all("ZeroDivisionError: no good" in failure.reason for failure in problems.values())
    assert not any(failure.out_of_memory for failure in problems.values())


WORKS = """
import sys
from pathlib import Path
from plap.experiments.local_processes import LocalProcesses
from plap.experiments.plan import Effort, Selection, make_cells
from plap.experiments.runner import run_cells
from plap.experiments.store import Store
from plap.experiments.tables import load_table
if __name__ == "__main__":
    effort = Effort(runs=200, grid="small", search_epochs=500, max_epochs=5000, patience=5000)
    cells = make_cells(load_table(sys.argv[1]), "sound", effort, Selection.parse(["model=mlp"]))
    with Store(Path(sys.argv[2])) as store:
        run_cells(cells, store, LocalProcesses(2), lambda status: status.trained and print("run", flush=True))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_workers_end_with_their_parent(tmp_path: Path, how: signal.Signals) -> None:
    table = write_tiny_table(tmp_path)
    script = tmp_path / "works.py"
    script.write_text(WORKS)
    parent = subprocess.Popen(
        [sys.executable, script, table, tmp_path / "runs.sqlite"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"run\n"
    workers = psutil.Process(parent.pid).children(recursive=True)
    assert len(workers) >= 2
    parent.send_signal(how)
    parent.wait(timeout=600)
    _, alive = psutil.wait_procs(workers, timeout=600)
    assert [process for process in alive if process.is_running()] == []
    with Store(tmp_path / "runs.sqlite") as store:
        assert store.all_records()
