"""From the store to the result of a table: each cell from its own runs, whatever else is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plap.errors import InputError
from plap.experiments.execution import JobFailed
from plap.experiments.plan import CellPlan, Effort
from plap.experiments.protocol import find_protocol
from plap.experiments.published import PERCENT, PublishedCell
from plap.experiments.runs import CellKey, Record
from plap.experiments.store import Store
from plap.experiments.table_result import Cell, TableResult
from plap.experiments.tables import TableDefinition
from plap.training import RunConfig


def assemble(
    table: TableDefinition,
    protocol: str,
    effort: Effort,
    cells: Sequence[CellPlan],
    store: Store,
    failures: Mapping[CellKey, JobFailed] | None = None,
) -> TableResult:
    """What the store holds of the wanted cells; rows and columns without a wanted cell are left out."""
    failures = failures or {}
    planned = {(plan.model, plan.dataset): plan for plan in cells}
    shown = {model for model, _ in planned} | {row.key for row in table.rows if not row.is_run}
    models = tuple(model for model in table.models if model in shown)
    datasets = tuple(name for name in table.datasets if any(name == other for _, other in planned))
    found = {key: _Found(plan, store, failures.get(plan.key)) for key, plan in planned.items()}
    empty = [
        Cell(model, dataset, published=_published(table, model, dataset))
        for model in models
        for dataset in datasets
    ]
    return TableResult(
        name=table.name,
        title=table.title,
        unit=_unit(table, [record for entry in found.values() for record in entry.final]),
        measure=table.measure,
        models=models,
        datasets=datasets,
        families=table.families,
        cells=tuple(
            found[cell.model, cell.dataset].cell(table) if (cell.model, cell.dataset) in found else cell
            for cell in empty
        ),
        protocol=protocol,
        rules=(
            *find_protocol(protocol).rules_of(table.split),
            effort.sentence(timed=table.measure == "time"),
            *_versions(found.values()),
        ),
        notes=table.published.notes if table.published else (),
        curve=table.curve,
        labels=table.labels,
        highlighted=table.highlighted,
        full_score=table.full_score,
    )


class _Found:
    """The records of one cell."""

    def __init__(self, plan: CellPlan, store: Store, failure: JobFailed | None) -> None:
        self.plan, self.failure = plan, failure
        planned = plan.search()
        self.search = store.records(planned)
        through = len(self.search) == len(planned)
        self.final = store.records(plan.final(self.search)) if through else []
        self.chosen = plan.chosen(self.search) if through else None

    def cell(self, table: TableDefinition) -> Cell:
        plan, full = self.plan, table.full_score
        records = [record for record in self.final if record.epochs]
        every = [*self.search, *self.final]
        return Cell(
            model=plan.model,
            dataset=plan.dataset,
            values=tuple(
                1000 * record.seconds / record.epochs if full is None else full * record.test_score
                for record in records
            ),
            totals=tuple(record.seconds for record in records) if full is None else (),
            config=_settings(plan, self.chosen) if self.final and self.chosen else None,
            tried=max(len(self.search), 1 if self.final else 0),
            grid=len(plan.candidates.configs()),
            seconds=sum(record.seconds for record in {id(record): record for record in every}.values()),
            not_finite=sum(not record.finite for record in every),
            published=_published(table, plan.model, plan.dataset),
            problem=self.failure.reason if self.failure else None,
            out_of_memory=self.failure.out_of_memory if self.failure else False,
        )


def _published(table: TableDefinition, model: str, dataset: str) -> PublishedCell | None:
    if table.published is None:
        return None
    try:
        return table.published.cell(model, dataset)
    except InputError:
        return None


def _settings(plan: CellPlan, config: RunConfig) -> dict[str, object]:
    """The fields that were searched, with the values that were chosen."""
    return {name: config.value(name) for name in plan.candidates.grid}


def _unit(table: TableDefinition, records: Sequence[Record]) -> str:
    if table.full_score is None:
        return "ms per epoch"
    metric = " or ".join(dict.fromkeys(record.metric for record in records)) or "accuracy"
    return f"{metric} in %" if table.full_score == PERCENT else f"{metric}, from 0 to 1"


def _versions(found: Iterable[_Found]) -> tuple[str, ...]:
    """Which software the runs were trained with, and whether it was not the same for all."""
    seen = sorted({record.versions for entry in found for record in [*entry.search, *entry.final]})
    if not seen:
        return ()
    said = ["; ".join(f"{name} {version}" for name, version in versions) for versions in seen]
    if len(said) == 1:
        return (f"Trained with {said[0]}.",)
    return (f"Trained with {len(said)} different sets of software: {' | '.join(said)}.",)
