"""From the runs of cells to the result of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plap.errors import InputError
from plap.experiments.cell_runs import CellRuns
from plap.experiments.execution import JobFailed
from plap.experiments.plan import Effort
from plap.experiments.protocol import find_protocol
from plap.experiments.published import PERCENT, PublishedCell
from plap.experiments.runs import CellKey
from plap.experiments.table_report import dataset_name
from plap.experiments.table_result import Cell, TableResult
from plap.experiments.tables import TableDefinition
from plap.reporting.number_text import joined


def assemble(
    table: TableDefinition,
    protocol: str,
    cells: Sequence[CellRuns],
    failures: Mapping[CellKey, JobFailed] | None = None,
) -> TableResult:
    """The result of the given cells; rows and columns without any of them are left out."""
    failures = failures or {}
    found = {(runs.plan.model, runs.plan.dataset): runs for runs in cells}
    shown = {model for model, _ in found} | {row.key for row in table.rows if not row.is_run}
    models = tuple(model for model in table.models if model in shown)
    datasets = tuple(name for name in table.datasets if any(name == other for _, other in found))
    empty = [
        Cell(model, dataset, published=_published(table, model, dataset))
        for model in models
        for dataset in datasets
    ]
    return TableResult(
        name=table.name,
        title=table.title,
        unit=_unit(table, cells),
        measure=table.measure,
        models=models,
        datasets=datasets,
        families=table.families,
        cells=tuple(
            _cell(table, found[key], failures.get(found[key].plan.key)) if key in found else cell
            for cell in empty
            for key in [(cell.model, cell.dataset)]
        ),
        protocol=protocol,
        rules=(
            *find_protocol(protocol).rules_of(table.split),
            *table.rules,
            *_efforts(table, protocol, cells),
            *_versions(cells),
        ),
        notes=table.published.notes if table.published else (),
        curve=table.curve,
        labels=table.labels,
        highlighted=table.highlighted,
        full_score=table.full_score,
    )


def _cell(table: TableDefinition, runs: CellRuns, failure: JobFailed | None) -> Cell:
    plan, full = runs.plan, table.full_score
    records = [record for record in runs.final if record.epochs]
    return Cell(
        model=plan.model,
        dataset=plan.dataset,
        values=tuple(
            1000 * record.seconds / record.epochs if full is None else full * record.test_score
            for record in records
        ),
        totals=tuple(record.seconds for record in records) if full is None else (),
        config=runs.settings,
        tried=max(len(runs.search), 1 if runs.final else 0),
        grid=len(plan.candidates.configs()),
        seconds=sum(record.seconds for record in runs.every),
        not_finite=sum(not record.finite for record in runs.every),
        published=_published(table, plan.model, plan.dataset),
        problem=failure.reason if failure else None,
        out_of_memory=failure.out_of_memory if failure else False,
    )


def _published(table: TableDefinition, model: str, dataset: str) -> PublishedCell | None:
    if table.published is None:
        return None
    try:
        return table.published.cell(model, dataset)
    except InputError:
        return None


def _unit(table: TableDefinition, cells: Sequence[CellRuns]) -> str:
    if table.full_score is None:
        return "ms per epoch"
    names = dict.fromkeys(record.metric for runs in cells for record in runs.final)
    metric = " or ".join(names) or "accuracy"
    return f"{metric} in %" if table.full_score == PERCENT else f"{metric}, from 0 to 1"


def _efforts(table: TableDefinition, protocol: str, cells: Sequence[CellRuns]) -> tuple[str, ...]:
    """What was computed, and for which cells if that was not the same for all."""
    timed = table.measure == "time"
    groups: dict[Effort, dict[str, list[str]]] = {}
    for runs in cells:
        columns = groups.setdefault(runs.effort, {})
        columns.setdefault(runs.plan.dataset, []).append(runs.plan.model)
    if len(groups) == 1:
        return tuple(effort.sentence(timed=timed) for effort in groups)
    rows = {row.key for row in table.rows if row.is_run}
    sentences = []
    for effort, columns in groups.items():
        alike: dict[tuple[str, ...], list[str]] = {}
        for dataset, models in columns.items():
            whole = set(models) == rows
            alike.setdefault(() if whole else tuple(models), []).append(dataset_name(dataset, protocol))
        where = "; ".join(
            (f"{joined([table.labels[model] for model in models])} on " if models else "") + joined(datasets)
            for models, datasets in alike.items()
        )
        sentences.append(f"{where}: {effort.sentence(timed=timed)}")
    return tuple(sentences)


def _versions(cells: Sequence[CellRuns]) -> tuple[str, ...]:
    """Which software the runs were trained with, and whether it was not the same for all."""
    seen = sorted({record.versions for runs in cells for record in runs.every})
    if not seen:
        return ()
    said = ["; ".join(f"{name} {version}" for name, version in versions) for versions in seen]
    if len(said) == 1:
        return (f"Trained with {said[0]}.",)
    return (f"Trained with {len(said)} different sets of software: {' | '.join(said)}.",)
