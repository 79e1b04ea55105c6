"""From a table's result to its report: labels, marks, ratios, and curves along a parameter."""

from __future__ import annotations

import math
from decimal import Decimal
from statistics import fmean

from plap.data.dataset_name import DatasetName
from plap.experiments.names import dataset_lines, dataset_name, parameter_name
from plap.experiments.outcome import Cell, TableResult
from plap.experiments.published import PublishedCell
from plap.reporting.table_content import (
    DatasetColumn,
    Mark,
    ModelRow,
    Panel,
    Point,
    PublishedValue,
    ResultCell,
    Series,
    TableReport,
)

_REFERENCE = "mlp"
"""The model whose time is the unit in a table of times."""
_PARAMETERS = {
    "phi": "φ, from heterophilic (−1) to homophilic (1)",
    "r": "r, the share of edges that were replaced by random ones",
}
_DEFAULTS = {"r": 0.0}
"""Value of a parameter that a dataset's name does not give."""


def table_report(result: TableResult) -> TableReport:
    """What every format shows of a result."""
    present = (tuple(model for model in family if model in result.models) for family in result.families)
    return TableReport(
        name=result.name,
        title=result.title,
        unit=result.unit,
        timed=result.measure == "time",
        protocol=result.protocol,
        models=tuple(ModelRow(model, result.label(model), "pgnn" in model) for model in result.models),
        datasets=tuple(
            DatasetColumn(dataset, *dataset_lines(dataset, result.protocol)) for dataset in result.datasets
        ),
        families=tuple(family for family in present if family),
        cells=tuple(_cell(result, cell) for cell in result.cells),
        rules=result.rules,
        notes=result.notes,
        panels=_panels(result),
        parameter=parameter_name(result.curve or ""),
        parameter_meaning=_PARAMETERS.get(result.curve or "", parameter_name(result.curve or "")),
    )


def _cell(result: TableResult, cell: Cell) -> ResultCell:
    ratio, published_ratio = _ratios(result, cell)
    return ResultCell(
        model=cell.model,
        dataset=cell.dataset,
        runs=len(cell.values),
        mean=cell.mean,
        deviation=cell.deviation,
        interval=cell.interval,
        mark=result.mark(cell),
        published=_published(cell.published),
        difference=cell.difference,
        agreement=result.agreement(cell),
        ratio=ratio,
        published_ratio=published_ratio,
        run_seconds=fmean(cell.totals) if cell.totals else None,
        config=cell.config,
        tried=cell.tried,
        grid=cell.grid,
        seconds=cell.seconds,
        not_finite=cell.not_finite,
        problem=cell.problem,
        out_of_memory="out of memory" in (cell.problem or "").lower(),
    )


def _published(cell: PublishedCell | None) -> PublishedValue | None:
    if cell is None:
        return None
    mark: Mark = "near" if cell.underline else "best" if cell.bold else ""
    return PublishedValue(cell.mean, cell.plus_minus, mark, cell.out_of_memory, cell.total)


def _ratios(result: TableResult, cell: Cell) -> tuple[float | None, float | None]:
    """Our time and the published one as multiples of the MLP's on the same dataset."""
    if result.measure != "time" or _REFERENCE not in result.models:
        return None, None
    reference = result.cell(_REFERENCE, cell.dataset)
    return (
        _quotient(cell.mean, reference.mean),
        _quotient(
            cell.published.mean if cell.published else None,
            reference.published.mean if reference.published else None,
        ),
    )


def _quotient(value: float | Decimal | None, reference: float | Decimal | None) -> float | None:
    return None if value is None or not reference else float(value) / float(reference)


def _panels(result: TableResult) -> tuple[Panel, ...]:
    """One panel per dataset that has any value, in the order of the table; none without a parameter."""
    if result.curve is None:
        return ()
    columns: dict[str, dict[str, float]] = {}
    for dataset in result.datasets:
        base, value = _place(dataset, result.curve)
        if value is not None:
            columns.setdefault(base, {})[dataset] = value
    found = (_panel(result, base, places) for base, places in columns.items())
    return tuple(panel for panel in found if panel.places)


def _place(dataset: str, parameter: str) -> tuple[str, float | None]:
    """The dataset without its parameter, and the parameter's value."""
    name = DatasetName.parse(dataset)
    value = name.value(parameter)
    try:
        number = _DEFAULTS.get(parameter) if value is None else float(value)
    except ValueError:
        number = None
    return str(name.without(parameter)), number


def _panel(result: TableResult, base: str, places: dict[str, float]) -> Panel:
    highest = _highest(result.unit)
    order = sorted(places, key=lambda dataset: places[dataset])
    series = []
    for model in result.models:
        cells = [(places[dataset], result.cell(model, dataset)) for dataset in order]
        ours = tuple(_point(at, cell, highest) for at, cell in cells if cell.mean is not None)
        series.append(Series(result.label(model), ours, _published_points(cells)))
    return Panel(dataset_name(base, result.protocol), tuple(series))


def _point(at: float, cell: Cell, highest: float) -> Point:
    mean = cell.mean or 0.0
    low, high = cell.interval or (mean, mean)
    return Point(at, mean, max(low, 0.0), min(high, highest))


def _highest(unit: str) -> float:
    """The highest possible score."""
    return 100.0 if "%" in unit else 1.0 if "from 0 to 1" in unit else math.inf


def _published_points(cells: list[tuple[float, Cell]]) -> tuple[Point, ...]:
    means = [(at, cell.published.mean) for at, cell in cells if cell.published]
    return tuple(Point(at, float(mean), float(mean), float(mean)) for at, mean in means if mean is not None)
