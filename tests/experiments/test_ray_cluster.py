from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from plap.errors import InputError
from plap.experiments.execution import Event, RunFinished
from plap.experiments.plan import Effort, Selection, make_cells
from plap.experiments.ray_cluster import RayCluster
from plap.experiments.runner import run_cells
from plap.experiments.runs import Job
from plap.experiments.store import Store
from plap.experiments.tables import load_table
from tiny_experiments import TINY, ThisProcess, equal_records, write_tiny_table

pytest.importorskip("ray")
EFFORT = Effort(runs=3, grid="small", search_epochs=6, max_epochs=12, patience=10)


class LosesAWorker(RayCluster):
    """Kills the processes that train, after the first run that is reported."""

    lost = 0

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        for event in super().run(next_job):
            if isinstance(event, RunFinished) and not self.lost:
                for process in psutil.Process().children(recursive=True):
                    if "ray::_stream" in " ".join(process.cmdline()):
                        process.kill()
                        self.lost += 1
            yield event


@pytest.mark.parametrize("kind", [RayCluster, pytest.param(LosesAWorker, marks=pytest.mark.long)])
def test_the_same_results_as_in_one_process(tmp_path: Path, kind: type[RayCluster]) -> None:
    text = TINY.replace("runs = 3", "runs = 6")
    effort = Effort(runs=6, grid="small", search_epochs=100, max_epochs=100, patience=100)
    cells = make_cells(load_table(str(write_tiny_table(tmp_path, text))), "sound", effort, Selection())
    executor = kind(workers=2)
    with Store(tmp_path / "here.sqlite") as here, Store(tmp_path / "there.sqlite") as there:
        run_cells(cells, here, ThisProcess())
        assert run_cells(cells, there, executor) == {}
        assert equal_records(here.all_records(), there.all_records())
    if isinstance(executor, LosesAWorker):
        assert executor.lost


def test_a_users_mistake_is_one_sentence(tmp_path: Path) -> None:
    text = TINY.replace("phi=0.8", "phi=8")
    cells = make_cells(load_table(str(write_tiny_table(tmp_path, text))), "sound", EFFORT, Selection())
    with Store(tmp_path / "runs.sqlite") as store:
        problems = run_cells(cells, store, RayCluster(workers=1))
    assert {dataset for dataset, _ in problems} == {"csbm:phi=8,n=60,f=8"}
    assert all("\n" not in failure.reason for failure in problems.values())


def test_no_cluster_at_the_address(tmp_path: Path) -> None:
    cells = make_cells(load_table(str(write_tiny_table(tmp_path))), "sound", EFFORT, Selection())
    with (
        Store(tmp_path / "runs.sqlite") as store,
        pytest.raises(InputError, match="address: there is no Ray"),
    ):
        run_cells(cells, store, RayCluster("127.0.0.1:1"))
