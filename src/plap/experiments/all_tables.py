"""Every table of the paper whose files are there, the cheapest first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from plap.data.benchmarks.files import holding_folder
from plap.data.benchmarks.registry import find
from plap.data.dataset import DatasetName
from plap.errors import InputError
from plap.experiments.evidence import evidence_tables
from plap.experiments.plan import TablePlan
from plap.experiments.protocol import find_protocol
from plap.experiments.reproduction import STORE, Outcome, reproduce
from plap.experiments.runner import ReportProgress, TableProgress, missing_work
from plap.experiments.store import Store
from plap.experiments.tables import TableDefinition, load_table, table_names

_EFFORT = (
    "runs", "grid", "max_epochs", "patience", "search_epochs", "finalists", "finalist_seeds", "stopping",
    "quick",
)  # fmt: skip


def reproduce_all(
    *,
    out: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    evidence: str | os.PathLike[str] | None = None,
    progress: ReportProgress | None = None,
    **options: Any,
) -> tuple[Outcome, ...]:
    """Run every table of the paper whose files are there, the cheapest first.

    A table of which some datasets have files is run on those; the others are among its problems. All tables
    share the store of ``out``: a run that is part of two tables is trained once, and the same call continues
    after an interruption. Ctrl-C ends the call after the present table; what was trained is kept.

    Parameters
    ----------
    out, root, evidence
        See :func:`plap.reproduce`; with ``evidence``, the tables that were published there.
    progress : function of a TableProgress, optional
        Called after every run; ``done`` is the share of the work of all tables.
    **options
        What else :func:`plap.reproduce` takes, for every table.

    Returns
    -------
    tuple of Outcome
        In the order in which the tables were run.

    Examples
    --------
    >>> from plap.experiments import reproduce_all
    >>> outcomes = reproduce_all(out="reproduction", quick=True)  # doctest: +SKIP
    >>> [outcome.result.name for outcome in outcomes]  # doctest: +SKIP
    """
    if options.get("only"):
        raise InputError("only names cells of one table, so all tables together do not take it")
    if evidence is not None:
        names = evidence_tables(evidence)
        return tuple(reproduce(name, out=out, evidence=evidence, **options) for name in names)
    order = tables_by_cost(out=out, root=root, **{key: options.get(key) for key in ("protocol", *_EFFORT)})
    meter = _WholeProgress(order, progress)
    outcomes = []
    for name in order:
        report = None if progress is None else meter.table(name)
        outcomes.append(reproduce(name, out=out, root=root, progress=report, **options))
        if outcomes[-1].interrupted:
            break
    return tuple(outcomes)


def tables_by_cost(
    *,
    out: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    **options: Any,
) -> dict[str, float]:
    """Tables of which files are there, with the work that is left of each; the cheapest first.

    The unit of work is of no meaning: epochs times the size of the graph.
    """
    given = {name: value for name, value in options.items() if value is not None}
    path = None if out is None else Path(out) / STORE
    found: dict[str, float] = {}
    with Store(path if path is not None and path.exists() else None) as store:
        for name in table_names():
            table = load_table(name)
            here = [dataset for dataset in table.datasets if _is_here(table, dataset, root)]
            if here:
                plan = TablePlan.of(name, only=[f"dataset={dataset}" for dataset in here], **given)
                found[name] = missing_work(plan.cells, store)
    if not found:
        raise InputError("no table has its files here: plap data list shows which benchmarks are")
    return dict(sorted(found.items(), key=lambda entry: entry[1]))


def _is_here(table: TableDefinition, dataset: str, root: str | os.PathLike[str] | None) -> bool:
    name = DatasetName.parse(dataset)
    if name.is_csbm:
        return True
    source = find_protocol(table.protocol).source(dataset)
    with suppress(InputError):
        return holding_folder(find(str(name.without("r").with_base(source))), root) is not None
    return False


class _WholeProgress:
    """How far all tables are, from how far each is."""

    def __init__(self, work: dict[str, float], report: ReportProgress | None) -> None:
        self._work, self._report = work, report
        self._last: dict[str, TableProgress] = {}
        self._stored: dict[str, float] = {}
        """Share of a table that was stored before it began."""

    def table(self, name: str) -> ReportProgress:
        """What one table reports to."""

        def report(status: TableProgress) -> None:
            self._last[name] = status
            self._stored.setdefault(name, status.done)
            if self._report is not None:
                self._report(self._whole(name, status))

        return report

    def _whole(self, name: str, status: TableProgress) -> TableProgress:
        total = sum(self._work.values())
        done = sum(self._work[table] * self._share(table) for table in self._last)
        known: Sequence[TableProgress] = list(self._last.values())
        return replace(
            status,
            runs=sum(each.runs for each in known),
            finished=sum(each.finished for each in known),
            trained=sum(each.trained for each in known),
            seconds=sum(each.seconds for each in known),
            done=min(done / total, 1.0) if total else 1.0,
            message=f"{name}: {status.message}",
        )

    def _share(self, table: str) -> float:
        """Of the work that was left when the table began."""
        before = self._stored[table]
        return 1.0 if before >= 1 else (self._last[table].done - before) / (1 - before)
