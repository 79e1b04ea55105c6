"""Results of the paper's tables as a reproduction might give them: real published cells, made-up values."""

from __future__ import annotations

import numpy as np

from plap.experiments.published import PublishedCell
from plap.experiments.table_report import table_report
from plap.experiments.table_result import Cell, TableResult
from plap.experiments.tables import TableDefinition, load_table, table_names
from plap.reporting.table_content import TableReport
from plap.reporting.table_texts import CellText, cell_text

OF_THE_PAPER = [name for name in table_names() if load_table(name).protocol == "paper"]
"""Tables in which every cell has a published value."""

RULES = (
    "Protocol paper: one split for all runs; runs differ in their initialisation and dropout only.",
    "5 runs per cell; every configuration of the small part of the grid was trained once.",
    "plap 0.1.0, torch 2.13.0.",
)


def sample(name: str, runs: int = 5) -> TableResult:
    """A table of the paper: most cells agree with it, some do not, what ran out of memory did so again."""
    table = load_table(name)
    noise = np.random.default_rng(7)
    cells = tuple(
        _cell(table, model, dataset, noise, runs) for model in table.models for dataset in table.datasets
    )
    return result_of(table, cells)


def report(name: str) -> TableReport:
    """The same as a report."""
    return table_report(sample(name))


def text_of(result: TableResult, cell: Cell) -> CellText:
    """What every format shows of a cell."""
    made = table_report(result)
    return cell_text(made, made.cell(cell.model, cell.dataset))


def result_of(table: TableDefinition, cells: tuple[Cell, ...]) -> TableResult:
    assert table.published is not None
    return TableResult(
        name=table.name,
        title=table.title,
        unit=table.published.unit,
        measure=table.measure,
        models=table.models,
        datasets=table.datasets,
        families=table.families,
        cells=cells,
        protocol=table.protocol,
        rules=RULES,
        notes=table.published.notes,
        curve=table.curve,
        labels=table.labels,
        highlighted=table.highlighted,
        full_score=table.full_score,
    )


def _cell(table: TableDefinition, model: str, dataset: str, noise: np.random.Generator, runs: int) -> Cell:
    assert table.published is not None
    published = table.published.cell(model, dataset)
    if published.mean is None:
        problem = "out of memory: 12.4 GB were asked for"
        return Cell(model, dataset, published=published, problem=problem, out_of_memory=True)
    if (model, dataset) == ("gat", table.datasets[-1]):
        return Cell(model, dataset, published=published)
    mean, spread = float(published.mean), float(published.plus_minus or published.mean / 20)
    shift = spread * noise.choice([0.0, 0.5, -0.5, 4.0, -4.0], p=[0.4, 0.2, 0.2, 0.1, 0.1])
    factor = 0.25 if table.measure == "time" else 1.0
    made_up = factor * (mean + shift + spread * noise.standard_normal(runs))
    most = np.inf if table.full_score is None else table.full_score
    return _made_up(model, dataset, published, made_up.clip(0, most).tolist(), float(noise.uniform(3, 300)))


def _made_up(model: str, dataset: str, published: PublishedCell, values: list[float], seconds: float) -> Cell:
    config = {"lr": 0.01, "dropout": 0.5, "weight_decay": 5e-4}
    if "pgnn" in model:
        config |= {"mu": 0.1, "K": 4}
    return Cell(
        model,
        dataset,
        tuple(values),
        config=config,
        tried=8,
        grid=180,
        seconds=seconds,
        not_finite=int((model, dataset) == ("jknet", "texas")),
        published=published,
    )
