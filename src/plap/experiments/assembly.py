"""From the store to a table's result: each cell by its own runs, whatever other runs are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plap.errors import InputError
from plap.experiments.outcome import Cell, TableResult
from plap.experiments.plan import CellPlan, Effort
from plap.experiments.protocol import find_protocol
from plap.experiments.published import PublishedCell
from plap.experiments.runs import Record
from plap.experiments.store import Store
from plap.experiments.tables import Table
from plap.training import RunConfig


def assemble(
    table: Table,
    protocol: str,
    effort: Effort,
    cells: Sequence[CellPlan],
    store: Store,
    problems: Mapping[tuple[str, str], str] | None = None,
) -> TableResult:
    """What the store has of a table's wanted cells; rows and columns without one are left out."""
    problems = problems or {}
    planned = {(plan.model, plan.dataset): plan for plan in cells}
    shown = {model for model, _ in planned} | {row.key for row in table.rows if not row.is_run}
    models = tuple(model for model in table.models if model in shown)
    datasets = tuple(name for name in table.datasets if any(name == other for _, other in planned))
    found = {
        key: _Found(plan, store, problems.get((plan.setting.dataset, plan.model)))
        for key, plan in planned.items()
    }
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
            *find_protocol(protocol).rules,
            effort.sentence(timed=table.measure == "time"),
            *_versions(found.values()),
        ),
        notes=table.published.notes if table.published else (),
        curve=table.curve,
        labels=table.labels,
    )


class _Found:
    """The records of one cell."""

    def __init__(self, plan: CellPlan, store: Store, problem: str | None) -> None:
        self.plan, self.problem = plan, problem
        planned = plan.search()
        self.search = store.records(planned)
        through = len(self.search) == len(planned)
        self.final = store.records(plan.final(self.search)) if through else []
        self.chosen = plan.chosen(self.search) if through else None

    def cell(self, table: Table) -> Cell:
        plan, timed = self.plan, table.measure == "time"
        records = [record for record in self.final if record.epochs]
        every = [*self.search, *self.final]
        return Cell(
            model=plan.model,
            dataset=plan.dataset,
            values=tuple(
                1000 * record.seconds / record.epochs if timed else _whole(table) * record.test_score
                for record in records
            ),
            totals=tuple(record.seconds for record in records) if timed else (),
            config=_settings(plan, self.chosen) if self.final and self.chosen else None,
            tried=max(len(self.search), 1 if self.final else 0),
            grid=len(plan.candidates.configs()),
            seconds=sum(record.seconds for record in {id(record): record for record in every}.values()),
            not_finite=sum(not record.finite for record in every),
            published=_published(table, plan.model, plan.dataset),
            problem=self.problem,
        )


def _published(table: Table, model: str, dataset: str) -> PublishedCell | None:
    if table.published is None:
        return None
    try:
        return table.published.cell(model, dataset)
    except InputError:
        return None


def _settings(plan: CellPlan, config: RunConfig) -> dict[str, object]:
    """The fields that the search could choose."""
    return {name: config.value(name) for name in plan.candidates.grid}


def _unit(table: Table, records: Sequence[Record]) -> str:
    if table.measure == "time":
        return "ms per epoch"
    metric = records[0].metric if records else "accuracy"
    return f"{metric} in %" if _whole(table) == 100 else f"{metric}, from 0 to 1"


def _whole(table: Table) -> float:
    """What a score of all test nodes right is written as: as in the published table."""
    return 1.0 if table.published is not None and "from 0 to 1" in table.published.unit else 100.0


def _versions(found: Iterable[_Found]) -> tuple[str, ...]:
    """Which software the runs were trained with; more than one is worth a reader's attention."""
    seen = sorted({record.versions for entry in found for record in [*entry.search, *entry.final]})
    if not seen:
        return ()
    said = ["; ".join(f"{name} {version}" for name, version in versions) for versions in seen]
    if len(said) == 1:
        return (f"Trained with {said[0]}.",)
    return (f"Trained with {len(said)} different sets of software: {' | '.join(said)}.",)
