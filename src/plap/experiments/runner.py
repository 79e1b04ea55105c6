"""Run a table: search every cell, then train its seeds; store each result; train nothing twice."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from plap.data.benchmarks.registry import BENCHMARKS
from plap.experiments.execution import Executor, JobCompleted, JobFailed, RunFinished
from plap.experiments.plan import CellPlan, Stage
from plap.experiments.protocol import find_protocol
from plap.experiments.runs import CellKey, Job, Run
from plap.experiments.store import Store

_SMALL_GRAPH = 3000
"""Number of nodes up to which training many runs at once pays most."""

_RUNS_PER_JOB = 8
_RUNS_PER_JOB_ON_A_SMALL_GRAPH = 32


@dataclass(frozen=True)
class TableProgress:
    """How far a table is."""

    runs: int
    """Number of runs of the table, as far as they are known."""
    finished: int
    """Runs that have a result, including those of earlier calls."""
    trained: int
    """Runs that this call has trained."""
    done: float
    """Share of the work from 0 to 1, estimated by the size of graphs and the number of epochs."""
    seconds: float
    """Time since the call began."""
    message: str
    """``starting``, then dataset and model of the run that ended last."""


ReportProgress = Callable[[TableProgress], None]


def run_cells(
    cells: Sequence[CellPlan],
    store: Store,
    executor: Executor,
    progress: ReportProgress | None = None,
    device: str = "cpu",
) -> dict[CellKey, JobFailed]:
    """Train what the store does not have of ``cells``, and return why cells could not be trained.

    Parameters
    ----------
    cells : sequence of CellPlan
    store : Store
        Takes every result as soon as it is there; runs that it has are not trained again.
    executor : Executor
    progress : function of a TableProgress, optional
        Called at the start and after every run.
    device : str
        Where to train, see :func:`plap.training.train_runs`.

    Returns
    -------
    dict of (dataset, model) to JobFailed
        The first failure of each cell that could not be trained.
    """
    schedule = _Schedule(cells, store, device)
    meter = _ProgressMeter(schedule, store, progress)
    meter.report("starting")
    for event in executor.run(schedule.next_job):
        if isinstance(event, RunFinished):
            store.add(event.record)
            meter.ended(event.record.run)
        elif isinstance(event, JobCompleted):
            schedule.completed(event.job)
        elif isinstance(event, JobFailed):
            schedule.failures.setdefault(event.job.cell, event)
    return schedule.failures


class _Schedule:
    """The jobs of a table: those of a cell's search first, then those of its finalists and its seeds."""

    def __init__(self, cells: Sequence[CellPlan], store: Store, device: str) -> None:
        self._store, self._device = store, device
        self.failures: dict[CellKey, JobFailed] = {}
        """Cells that were given up; the others go on."""
        self.runs: dict[CellKey, list[Run]] = {}
        """Every run that is known to belong to a cell."""
        self._cells = {cell.key: cell for cell in cells}
        self._open: dict[CellKey, int] = dict.fromkeys(self._cells, 0)
        """Number of jobs of the present stage that have not ended."""
        self._to_come: dict[CellKey, list[Run]] = {}
        """Stand-ins for the runs of later stages."""
        self._jobs: deque[Job] = deque()
        for name in self._cells:
            self._begin(name)

    def next_job(self) -> Job | None:
        """The next job, without runs that another process has stored in the meantime."""
        while self._jobs:
            job = self._jobs.popleft()
            if job.cell in self.failures:
                continue
            missing = self._store.missing([job.run(config) for config in job.configs])
            if missing:
                return replace(job, configs=tuple(run.config for run in missing))
            self.completed(job)
        return None

    def completed(self, job: Job) -> None:
        """Continue with the next stage of a cell when one is complete."""
        name = job.cell
        self._open[name] -= 1
        if not self._open[name] and self._to_come[name] and name not in self.failures:
            self._begin(name, in_front=True)

    def _begin(self, name: CellKey, *, in_front: bool = False) -> None:
        """Queue the first stage of a cell that is not complete; the last may be complete as well."""
        stages = self._cells[name].stages(self._store.records)
        self.runs[name] = list(dict.fromkeys(run for runs in stages.values() for run in runs))
        stage = list(stages)[-1]
        self._to_come[name] = _to_come(self._cells[name], stages)
        self._queue(name, self._store.missing(stages[stage]), in_front=in_front)

    def _queue(self, name: CellKey, runs: Sequence[Run], *, in_front: bool = False) -> None:
        cell = self._cells[name]
        size = job_size(cell.setting.dataset)
        jobs = [
            Job(
                cell.setting,
                cell.model,
                cell.model_file,
                tuple(run.config for run in runs[k : k + size]),
                self._device,
            )
            for k in range(0, len(runs), size)
        ]
        self._open[name] = len(jobs)
        if in_front:  # the data are loaded already
            self._jobs.extendleft(reversed(jobs))
        else:
            self._jobs.extend(jobs)

    def work(self) -> tuple[float, int]:
        """Estimated work and number of all runs, including the seeds that follow a search."""
        total, count = 0.0, 0
        for name, runs in self.runs.items():
            known = [*runs, *self._to_come[name]]
            total += sum(run_work(run) for run in known)
            count += len(known)
        return total, count


def missing_work(cells: Sequence[CellPlan], store: Store) -> float:
    """Work of the runs of cells that a store does not have, in the unit of :func:`run_work`."""
    return sum(run_work(run) for cell in cells for run in missing_runs(cell, store))


def missing_runs(cell: CellPlan, store: Store) -> list[Run]:
    """The runs of a cell that a store does not have; before its search is complete, as many as will be."""
    stages = cell.stages(store.records)
    known = [run for runs in stages.values() for run in store.missing(runs)]
    return [*dict.fromkeys(known), *_to_come(cell, stages)]


def _to_come(cell: CellPlan, stages: Mapping[Stage, Sequence[Run]]) -> list[Run]:
    """Stand-ins for the runs of stages that are not known yet: as many, and as long."""
    if "final" in stages:
        return []
    effort, final = cell.effort, cell.final([])
    if effort.finalists == 1:
        return final
    compete = 0 if "finalist" in stages else effort.finalists * effort.finalist_seeds
    after = max(effort.runs - effort.finalist_seeds, 0)  # the winner's other seeds are known by then
    return (compete + after) * final[:1]


def job_size(dataset: str) -> int:
    """How many runs are trained at once."""
    return _RUNS_PER_JOB_ON_A_SMALL_GRAPH if graph_size(dataset) <= _SMALL_GRAPH else _RUNS_PER_JOB


def run_work(run: Run) -> float:
    """How long a run takes in relation to others, roughly."""
    return run.config.max_epochs * (10_000 + graph_size(run.setting.dataset))


def graph_size(dataset: str) -> int:
    """Number of nodes of a dataset; a medium number where it is not known."""
    base = find_protocol("sound").source(dataset)
    row = BENCHMARKS.get(base)
    return row.statistics.nodes if row is not None and row.statistics is not None else 5000


class _ProgressMeter:
    """Reports how far the table is."""

    def __init__(self, schedule: _Schedule, store: Store, report: ReportProgress | None) -> None:
        self._schedule, self._listener = schedule, report
        self._start = time.perf_counter()
        self._trained = 0
        missing = {run.key for runs in schedule.runs.values() for run in store.missing(runs)}
        stored = [run for runs in schedule.runs.values() for run in runs if run.key not in missing]
        self._work = sum(run_work(run) for run in stored)
        self._finished = len(stored)

    def ended(self, run: Run) -> None:
        self._trained += 1
        self._finished += 1
        self._work += run_work(run)
        self.report(f"{run.setting.dataset} · {run.model}")

    def report(self, message: str) -> None:
        if self._listener is None:
            return
        work, runs = self._schedule.work()
        self._listener(
            TableProgress(
                runs=max(runs, self._finished),
                finished=self._finished,
                trained=self._trained,
                done=min(self._work / work, 1.0) if work else 1.0,
                seconds=time.perf_counter() - self._start,
                message=message,
            )
        )
