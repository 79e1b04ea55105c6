"""``plap.reproduce``: run a table of the paper, or a custom table, beside the published numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from plap.checks import check_choice, check_integer
from plap.errors import InputError
from plap.experiments.assembly import assemble
from plap.experiments.cell_runs import CellRuns, stored_runs
from plap.experiments.evidence import read_evidence, write_evidence
from plap.experiments.execution import Executor, JobFailed
from plap.experiments.local_processes import LocalProcesses
from plap.experiments.plan import Selection, TablePlan
from plap.experiments.published import PublishedCell
from plap.experiments.ray_cluster import RayCluster
from plap.experiments.runner import ReportProgress, run_cells
from plap.experiments.runs import CellKey
from plap.experiments.store import Store
from plap.experiments.table_report import table_report
from plap.experiments.table_result import Cell, TableResult
from plap.experiments.tables import TableDefinition, load_table
from plap.reporting.figures import FIGURES
from plap.reporting.picture import check_folder, write_files
from plap.reporting.table_content import TableReport
from plap.reporting.table_files import table_files
from plap.training.devices import choose_device

ExecutorName = Literal["local", "ray"]
STORE = "runs.sqlite"
"""Name of the store in the folder of results."""


@dataclass(frozen=True)
class Outcome:
    """What :func:`plap.reproduce` returns."""

    result: TableResult
    """Every cell with its scores, mean and interval, beside the published value."""
    table: TableDefinition
    """What was to be run."""
    cells: tuple[CellRuns, ...] = ()
    """The runs of every cell."""
    problems: Mapping[CellKey, str] = field(default_factory=dict)
    """Why cells could not be trained: one sentence per (dataset, model)."""
    tracebacks: tuple[str, ...] = ()
    """Tracebacks of errors in training, each once."""
    all_failed: bool = False
    """Whether none of the wanted cells could be trained."""
    interrupted: bool = False
    """Whether Ctrl-C ended the call before all runs were trained."""
    out: Path | None = None
    """The folder of the store, if it was kept."""

    def __repr__(self) -> str:
        """The table and how much of it has runs; ``report`` and ``files`` show the rest."""
        done = sum(bool(cell.final) for cell in self.cells)
        failed = f", {len(self.problems)} failed" if self.problems else ""
        return f"Outcome({self.table.name!r}, {done} of {len(self.cells)} cells with runs{failed})"

    @property
    def report(self) -> TableReport:
        """The result as all formats show it."""
        return table_report(self.result)

    @property
    def files(self) -> dict[str, bytes]:
        """All files of the report by their names: Markdown, CSV, LaTeX, HTML, pictures and tracebacks."""
        log = {self.error_log: "\n\n".join([*self.tracebacks, ""]).encode()} if self.tracebacks else {}
        return table_files(self.report) | log

    @property
    def error_log(self) -> str:
        """Name of the file that tracebacks are written to."""
        return f"{self.result.name}-errors.log"

    def write(self, folder: str | os.PathLike[str] | None = None) -> list[Path]:
        """Write all files of the report, and return their paths.

        Parameters
        ----------
        folder : path, optional
            Created if it does not exist; by default the folder of the store.
        """
        if folder is None and self.out is None:
            raise InputError("write needs a folder, because the results were not kept in one")
        place = Path(folder or self.out or ".")
        check_folder(place)
        return write_files(place, self.files)

    def publish(self, folder: str | os.PathLike[str]) -> Path:
        """Write every run of the finished cells to ``NAME.parquet``, and return its path.

        Cells that the file already has are replaced; its others stay. ``reproduce(table, evidence=folder)``
        shows the table from it without training.

        Parameters
        ----------
        folder : path
            Created if it does not exist.
        """
        return write_evidence(folder, self.table, self.cells)

    def to_dict(self) -> dict[str, Any]:
        """The rules, and for every cell its scores, settings and published value, as plain values."""
        result = self.result
        return {
            "table": result.name,
            "protocol": result.protocol,
            "unit": result.unit,
            "rules": result.rules,
            "cells": [_plain_cell(result, cell) for cell in result.cells],
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)


def reproduce(
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
    executor: str = "local",
    address: str | None = None,
    device: str = "cpu",
    root: str | os.PathLike[str] | None = None,
    report_only: bool = False,
    evidence: str | os.PathLike[str] | None = None,
    progress: ReportProgress | None = None,
) -> Outcome:
    """Run a table of the paper and compare it with the published numbers.

    Every cell (a model on a dataset) is searched over the model's grid; the configuration with the best
    validation score is then trained with several seeds. Runs are stored as they end: the same call
    continues after an interruption and trains nothing twice.

    Parameters
    ----------
    table : str or path
        A name that ``plap reproduce --list`` shows, or a TOML file that defines a table.
    out : path, optional
        Folder in which all runs are stored (``runs.sqlite``), created if it does not exist; by default
        they are kept in memory. The report is written by ``Outcome.write``.
    only : str or sequence of str
        ``"dataset=NAME,model=NAME"``: only these columns and rows.
    runs : int, optional
        Runs per cell; by default the table's own number.
    grid : "full" or "small", optional
        The paper's grid (default), or a part of it.
    max_epochs : int, optional
        Maximum number of epochs per run (default: 1000).
    patience : int, optional
        Number of epochs without improvement after which a run ends (default: 200).
    search_epochs : int, optional
        Maximum number of epochs per run of the search (default: 1000; 200 in a small grid).
    finalists : int, optional
        Train so many configurations, the best of the search, with several seeds each before one is chosen by
        the mean of their validation scores (default: 1, the best of the search is chosen).
    finalist_seeds : int, optional
        Number of seeds that each of several finalists is trained with (default: 3).
    stopping : "best", "progress" or "published", optional
        When the runs after the search end: ``patience`` epochs after the best one; as many after the best
        epoch or the last fall of the validation loss; or, as in the paper's code, after ``max_epochs``, where
        of equally good epochs the first counts. By default "published" in tables of the paper's protocol
        unless ``patience`` is given, otherwise "best".
    quick : bool
        A first look: three runs, a small grid, fewer epochs.
    protocol : "paper", "sound" or "masks", optional
        The rules for splits and data; by default the table's own.
    workers : int, optional
        Number of processes; by default one per core. Running times are always measured by one process.
    executor : "local" or "ray"
        Train in processes of this machine, or on a Ray cluster.
    address : str, optional
        Of the Ray cluster; by default one is started on this machine.
    device : str
        Where every process trains: auto, cpu, cuda, cuda:N or mps. On a GPU, give ``workers`` too: one
        process per core would share its memory.
    root : path, optional
        Folder of the benchmark data, instead of ``$PLAP_DATA``.
    report_only : bool
        Train nothing: the result of what ``out`` has stored.
    evidence : path, optional
        Train nothing: the result of the published runs in this folder, see ``Outcome.publish``. The effort
        is that of the published runs, so ``only`` is the only other option that counts.
    progress : function of a TableProgress, optional
        Called at the start and after every run.

    Returns
    -------
    Outcome
        Also after Ctrl-C, with ``interrupted`` set.

    Examples
    --------
    >>> import plap
    >>> outcome = plap.reproduce("heterophilic", only="dataset=texas", quick=True)  # doctest: +SKIP
    >>> outcome.result.cell("pgnn-1.5", "texas").mean  # doctest: +SKIP
    >>> outcome.write("reproduction")  # doctest: +SKIP
    """
    if table in FIGURES:
        raise InputError(f"{table} is a figure: plap.reporting.figures.write_figure draws it")
    if table == "all":
        raise InputError("all is no table: plap.experiments.reproduce_all runs every table")
    folder = None if out is None else Path(out)
    if evidence is not None:
        return _from_evidence(evidence, load_table(os.fspath(table)), only, folder)
    plan = TablePlan.of(
        table, only=only, protocol=protocol, runs=runs, grid=grid, max_epochs=max_epochs, patience=patience,
        search_epochs=search_epochs, finalists=finalists, finalist_seeds=finalist_seeds, stopping=stopping,
        quick=quick,
    )  # fmt: skip
    timed = plan.table.measure == "time"
    choose_device(device)  # refuses what is not there before anything is trained
    trainer = None if report_only else _executor(executor, address, workers, root, timed)
    if report_only:
        _check_stored(folder)
    failures: dict[CellKey, JobFailed] = {}
    interrupted = False
    with Store(None if folder is None else folder / STORE) as store:
        if trainer is not None:
            try:
                failures = run_cells(plan.cells, store, trainer, progress, device)
            except KeyboardInterrupt:
                interrupted = True
        found = tuple(stored_runs(plan.cells, store))
    return Outcome(
        assemble(plan.table, plan.protocol, found, failures),
        plan.table,
        found,
        {cell: failure.reason for cell, failure in failures.items()},
        tuple(dict.fromkeys(failure.details for failure in failures.values() if failure.details)),
        all_failed=len(failures) == len(plan.cells),
        interrupted=interrupted,
        out=folder,
    )


def _from_evidence(
    evidence: str | os.PathLike[str], table: TableDefinition, only: str | Sequence[str], out: Path | None
) -> Outcome:
    selection = Selection.parse([only] if isinstance(only, str) else only)
    found = tuple(read_evidence(evidence, table, selection))
    if not found:
        raise InputError(f"only leaves no cell of table {table.name} that was published in {evidence}")
    return Outcome(assemble(table, found[0].plan.setting.protocol, found), table, found, out=out)


def _check_stored(folder: Path | None) -> None:
    if folder is None:
        raise InputError("report_only needs out, the folder in which an earlier call stored its runs")
    if not (folder / STORE).is_file():
        raise InputError(f"report_only: there is no store {folder / STORE}")


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _executor(
    name: str,
    address: str | None,
    workers: int | None,
    root: str | os.PathLike[str] | None,
    timed: bool,
) -> Executor:
    check_choice("executor", name, ExecutorName)
    count = cores() if workers is None else check_integer("workers", workers, 1)
    place = None if root is None else Path(root)
    if name == "local":
        if address is not None:
            raise InputError("address is for the executor ray only")
        return LocalProcesses(1, cores(), root=place) if timed else LocalProcesses(count, root=place)
    if timed:
        raise InputError("running times are measured by one process on this machine, not by Ray")
    return RayCluster(address, count, root=place)


def _plain_cell(result: TableResult, cell: Cell) -> dict[str, Any]:
    reason = result.difference(cell)
    return {
        "model": cell.model, "dataset": cell.dataset, "runs": len(cell.values), "mean": cell.mean,
        "std": cell.deviation, "interval": cell.interval, "mark": result.mark(cell),
        "published": _plain_published(cell.published), "difference": cell.difference,
        "agreement": result.agreement(cell), "cause": reason.cause if reason else None,
        "config": cell.config, "tried": cell.tried, "grid": cell.grid,
        "not_finite": cell.not_finite, "problem": cell.problem, "out_of_memory": cell.out_of_memory,
    }  # fmt: skip


def _plain_published(cell: PublishedCell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    return {
        "mean": None if cell.mean is None else float(cell.mean),
        "plus_minus": None if cell.plus_minus is None else float(cell.plus_minus),
        "out_of_memory": cell.out_of_memory,
    }
