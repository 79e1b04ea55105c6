"""How long a table will take on this machine, by timing a few epochs of every cell before it starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plap.checks import check_integer
from plap.experiments.execution import Executor, JobCompleted, JobFailed, RunFinished
from plap.experiments.local_processes import LocalProcesses
from plap.experiments.plan import CellPlan, TablePlan
from plap.experiments.reproduction import STORE, cores
from plap.experiments.runner import job_size, missing_runs
from plap.experiments.runs import CellKey, Job, Run
from plap.experiments.store import Store
from plap.training import RunConfig

_WARM_UP, _TIMED = 1, 3
"""Epochs of the two probes of a cell: the first pays for compiling and reading."""
_LARGE_JOB = 8
"""Jobs of so many runs are those of large graphs, of which two runs tell enough."""


@dataclass(frozen=True)
class DatasetEstimate:
    """What is left to be trained on one dataset of a table."""

    dataset: str
    runs: int = 0
    """Number of runs that have no result yet."""
    at_least: float = 0.0
    """Seconds of one process if every run stops as soon as its patience allows."""
    at_most: float = 0.0
    """Seconds of one process if no run stops before its last epoch."""


@dataclass(frozen=True)
class Estimate:
    """What :func:`estimate` returns; the time to read data and to start processes is not included."""

    table: str
    datasets: tuple[DatasetEstimate, ...]
    workers: int
    """Number of processes that share the work."""
    problems: Mapping[CellKey, str] = field(default_factory=dict)
    """Why cells could not be timed; they are not in the estimate."""

    @property
    def runs(self) -> int:
        """Runs that have no result yet."""
        return sum(entry.runs for entry in self.datasets)

    @property
    def hours(self) -> tuple[float, float]:
        """At least and at most, with all processes at work."""
        return (
            sum(entry.at_least for entry in self.datasets) / 3600 / self.workers,
            sum(entry.at_most for entry in self.datasets) / 3600 / self.workers,
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        low, high = self.hours
        return {
            "table": self.table,
            "workers": self.workers,
            "runs": self.runs,
            "hours_at_least": low,
            "hours_at_most": high,
            "datasets": [vars(entry) for entry in self.datasets],
            "problems": [
                {"dataset": dataset, "model": model, "problem": problem}
                for (dataset, model), problem in self.problems.items()
            ],
        }


def estimate(
    table: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    only: str | Sequence[str] = (),
    runs: int | None = None,
    grid: str | None = None,
    max_epochs: int | None = None,
    patience: int | None = None,
    search_epochs: int | None = None,
    finalists: int | None = None,
    finalist_seeds: int | None = None,
    stopping: str | None = None,
    quick: bool = False,
    protocol: str | None = None,
    workers: int | None = None,
    root: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Estimate:
    """How long :func:`plap.reproduce` will take with the same arguments, as a range of hours.

    Three epochs of every cell are timed in one process, several runs at once as in the real search, and
    multiplied by the epochs that its runs may take: at least as many as their patience, at most
    ``max_epochs``. What ``out`` has stored is not counted. It is a measurement of this machine as it is now,
    not a promise: other programs on its cores make it too high or too low.

    Parameters
    ----------
    table, out, only, protocol, workers, root
        See :func:`plap.reproduce`.
    runs, grid, max_epochs, patience, search_epochs, finalists, finalist_seeds, stopping, quick
        See :func:`plap.reproduce`.
    progress : function of str, optional
        Called with dataset and model before a cell is timed.

    Examples
    --------
    >>> from plap.experiments import estimate
    >>> found = estimate("heterophilic", only="dataset=texas", grid="small")  # doctest: +SKIP
    >>> "{:.1f} to {:.1f} hours".format(*found.hours)  # doctest: +SKIP
    """
    plan = TablePlan.of(
        table, only=only, protocol=protocol, runs=runs, grid=grid, max_epochs=max_epochs, patience=patience,
        search_epochs=search_epochs, finalists=finalists, finalist_seeds=finalist_seeds, stopping=stopping,
        quick=quick,
    )  # fmt: skip
    timed = plan.table.measure == "time"
    count = cores() if workers is None else check_integer("workers", workers, 1)
    place = None if root is None else Path(root)
    path = None if out is None else Path(out) / STORE
    with Store(path if path is not None and path.exists() else None) as store:
        left = {cell.key: missing_runs(cell, store) for cell in plan.cells}
    probe = _Probe([cell for cell in plan.cells if left[cell.key]], left, progress)
    probe.measure(LocalProcesses(1, cores() if timed else 1, root=place))
    return Estimate(
        plan.table.name,
        tuple(_dataset(name, plan, left, probe.seconds) for name in dict.fromkeys(d for d, _ in left)),
        1 if timed else count,
        probe.problems,
    )


def _dataset(
    name: str, plan: TablePlan, left: Mapping[CellKey, Sequence[Run]], seconds: Mapping[CellKey, float]
) -> DatasetEstimate:
    keys = [cell.key for cell in plan.cells if cell.dataset == name and cell.key in seconds]
    configs = [(key, run.config) for key in keys for run in left[key]]
    return DatasetEstimate(
        name,
        sum(len(left[cell.key]) for cell in plan.cells if cell.dataset == name),
        sum(seconds[key] * _fewest_epochs(config) for key, config in configs),
        sum(seconds[key] * config.max_epochs for key, config in configs),
    )


def _fewest_epochs(config: RunConfig) -> int:
    """Epochs after which a run may end; the published rule has no early stopping."""
    return config.max_epochs if config.stopping == "published" else min(config.patience, config.max_epochs)


class _Probe:
    """Trains a few epochs of every cell."""

    def __init__(
        self,
        cells: Sequence[CellPlan],
        left: Mapping[CellKey, Sequence[Run]],
        progress: Callable[[str], None] | None,
    ) -> None:
        self.seconds: dict[CellKey, float] = {}
        """Per epoch of one run, trained beside others as in the real search."""
        self.problems: dict[CellKey, str] = {}
        self._progress = progress
        self._jobs = [
            _job(cell, left[cell.key], epochs) for cell in reversed(cells) for epochs in (_TIMED, _WARM_UP)
        ]

    def measure(self, executor: Executor) -> None:
        """Fill in ``seconds`` and ``problems``."""
        total: dict[CellKey, list[float]] = {}
        for event in executor.run(self._next):
            cell = event.job.cell
            if isinstance(event, JobFailed):
                self.problems.setdefault(cell, event.reason)
            elif isinstance(event, RunFinished) and event.job.configs[0].max_epochs == _TIMED:
                total.setdefault(cell, []).append(event.record.seconds / max(event.record.epochs, 1))
            elif isinstance(event, JobCompleted) and cell in total:
                self.seconds[cell] = sum(total[cell]) / len(total[cell])

    def _next(self) -> Job | None:
        while self._jobs:
            job = self._jobs.pop()
            if job.cell in self.problems:
                continue
            if self._progress is not None and job.configs[0].max_epochs == _WARM_UP:
                self._progress(f"{job.setting.dataset} · {job.model}")
            return job
        return None


def _job(cell: CellPlan, left: Sequence[Run], epochs: int) -> Job:
    """Some of the runs that are left, from all over the grid, for a few epochs."""
    size = job_size(cell.setting.dataset)
    wanted = min(len(left), 2 if size == _LARGE_JOB else size)
    chosen = [left[k * len(left) // wanted].config for k in range(wanted)]
    configs = dict.fromkeys(config.with_values(max_epochs=epochs, patience=epochs) for config in chosen)
    return Job(cell.setting, cell.model, cell.model_file, tuple(configs))
