"""Run a table: search every cell, then its seeds; keep what ends; give nothing twice to train."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from plap.data.benchmarks.registry import BENCHMARKS
from plap.errors import InputError
from plap.experiments.executors import Completed, Executor, Failed, Finished
from plap.experiments.plan import CellPlan
from plap.experiments.protocol import find_protocol
from plap.experiments.runs import Job, Run
from plap.experiments.store import Store

_SMALL_GRAPH = 3000
"""Nodes up to which many runs at once pay most."""

_RUNS_OF_A_JOB = 8
_RUNS_ON_A_SMALL_GRAPH = 32


@dataclass(frozen=True)
class Status:
    """How far a table is."""

    runs: int
    """Runs of the table, as far as they are known."""
    finished: int
    """Runs that have a result, those of earlier calls among them."""
    trained: int
    """Runs that this call has trained."""
    done: float
    """Share of the work, from 0 to 1, by the size of graphs and the number of epochs."""
    seconds: float
    """Since the call began."""
    message: str
    """What ended last."""


Announce = Callable[[Status], None]


def run_cells(
    cells: Sequence[CellPlan], store: Store, executor: Executor, announce: Announce | None = None,
    log: Callable[[str], None] | None = None,
) -> dict[tuple[str, str], str]:  # fmt: skip
    """Train what is missing of ``cells``; the problem of each cell that could not be trained, by its names.

    Parameters
    ----------
    cells : sequence of CellPlan
    store : Store
        Results go here as they come; runs that are here are not trained again.
    executor : Executor
    announce : function of a Status, optional
        Called after every run.
    log : function of a text, optional
        Called with the traceback of an error in training.
    """
    table = _Table(cells, store)
    meter = _Meter(table, store, announce)
    for event in executor.run(table.next_job):
        if isinstance(event, Finished):
            store.add(event.record)
            meter.ended(event.record.run)
        elif isinstance(event, Completed):
            table.completed(event.job)
        elif isinstance(event, Failed):
            table.failed(event.job, event.reason)
            if log is not None and event.details:
                log(event.details)
    return table.problems


class _Table:
    """The jobs of a table: those of a cell's search first, and when all are done, those of its seeds."""

    def __init__(self, cells: Sequence[CellPlan], store: Store) -> None:
        self._store = store
        self.problems: dict[tuple[str, str], str] = {}
        self.runs: dict[tuple[str, str], list[Run]] = {}
        """Every run that is known to belong to a cell."""
        self._cells = {(cell.setting.dataset, cell.model): cell for cell in cells}
        self._open: dict[tuple[str, str], int] = dict.fromkeys(self._cells, 0)
        """Jobs of the present stage that are not done."""
        self._searching: set[tuple[str, str]] = set()
        self._jobs: deque[Job] = deque()
        for name in self._cells:
            self._begin(name)

    def next_job(self) -> Job | None:
        """The next one that is still to be done, without runs that another process has stored meanwhile."""
        while self._jobs:
            job = self._jobs.popleft()
            if (job.setting.dataset, job.model) in self.problems:
                continue
            missing = self._store.missing([job.run(config) for config in job.configs])
            if missing:
                return replace(job, configs=tuple(run.config for run in missing))
            self.completed(job)
        return None

    def completed(self, job: Job) -> None:
        """Go on to the cell's seeds when its search is through."""
        name = (job.setting.dataset, job.model)
        self._open[name] -= 1
        if not self._open[name] and name in self._searching and name not in self.problems:
            self._searching.remove(name)
            self._finish(name, in_front=True)

    def failed(self, job: Job, reason: str) -> None:
        """Give up the cell, and go on with the others."""
        self.problems[job.setting.dataset, job.model] = reason

    def _begin(self, name: tuple[str, str]) -> None:
        cell = self._cells[name]
        search = cell.search()
        self.runs[name] = list(search)
        missing = self._store.missing(search)
        if missing:
            self._searching.add(name)
            self._queue(name, missing)
        else:
            self._finish(name)

    def _finish(self, name: tuple[str, str], *, in_front: bool = False) -> None:
        cell = self._cells[name]
        final = cell.final(self._store.records(cell.search()))
        self.runs[name] = list(dict.fromkeys([*self.runs[name], *final]))
        self._queue(name, self._store.missing(final), in_front=in_front)

    def _queue(self, name: tuple[str, str], runs: Sequence[Run], *, in_front: bool = False) -> None:
        cell = self._cells[name]
        size = _RUNS_ON_A_SMALL_GRAPH if graph_size(cell.setting.dataset) <= _SMALL_GRAPH else _RUNS_OF_A_JOB
        jobs = [
            Job(
                cell.setting,
                cell.model,
                cell.model_file,
                tuple(run.config for run in runs[k : k + size]),
            )
            for k in range(0, len(runs), size)
        ]
        self._open[name] = len(jobs)
        if in_front:  # the data are loaded already
            self._jobs.extendleft(reversed(jobs))
        else:
            self._jobs.extend(jobs)

    def work(self) -> tuple[float, int]:
        """Estimated work and number of all runs; a search's seeds count before they are known."""
        total, count = 0.0, 0
        for name, runs in self.runs.items():
            cell = self._cells[name]
            known = list(runs)
            if name in self._searching:
                known += cell.final([])
            total += sum(run_work(run) for run in known)
            count += len(known)
        return total, count


def run_work(run: Run) -> float:
    """How long a run takes, about, in units of no meaning."""
    return run.config.max_epochs * (10_000 + graph_size(run.setting.dataset))


def graph_size(dataset: str) -> int:
    """Nodes of a dataset, about; a middling number where it is not known."""
    base = find_protocol("sound").source(dataset)
    row = BENCHMARKS.get(base)
    return row.statistics.nodes if row is not None and row.statistics is not None else 5000


class _Meter:
    """Tells ``announce`` how far the table is."""

    def __init__(self, table: _Table, store: Store, announce: Announce | None) -> None:
        self._table, self._announce = table, announce
        self._start = time.perf_counter()
        self._trained = 0
        missing = {run.key for name, runs in table.runs.items() for run in store.missing(runs)}
        stored = [run for runs in table.runs.values() for run in runs if run.key not in missing]
        self._work = sum(run_work(run) for run in stored)
        self._finished = len(stored)

    def ended(self, run: Run) -> None:
        self._trained += 1
        self._finished += 1
        self._work += run_work(run)
        if self._announce is None:
            return
        work, runs = self._table.work()
        self._announce(
            Status(
                runs=max(runs, self._finished),
                finished=self._finished,
                trained=self._trained,
                done=min(self._work / work, 1.0) if work else 1.0,
                seconds=time.perf_counter() - self._start,
                message=f"{run.setting.dataset} · {run.model}",
            )
        )


def check_all_failed(problems: dict[tuple[str, str], str], cells: Sequence[CellPlan]) -> None:
    """Refuse a table of which nothing could be trained, with the reason."""
    if cells and len(problems) == len(cells):
        raise InputError(next(iter(problems.values())))
