"""From a table's result to its report: labels, marks, ratios, and curves along a parameter."""

from __future__ import annotations

import math
from decimal import Decimal
from statistics import fmean

from plap.data.benchmarks.registry import BENCHMARKS
from plap.data.dataset import DatasetName
from plap.experiments.differences import CAUSES
from plap.experiments.protocol import PROTOCOLS
from plap.experiments.published import PublishedCell
from plap.experiments.table_result import Cell, TableResult
from plap.reporting.number_text import with_minus
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
_LETTERS = {"phi": "φ", "epsilon": "ε"}
_DEFAULTS = {"r": 0.0}
"""Value of a parameter where a dataset's name does not give one."""


def table_report(result: TableResult) -> TableReport:
    """What every format shows of a result."""
    present = (tuple(model for model in family if model in result.models) for family in result.families)
    return TableReport(
        name=result.name,
        title=result.title,
        unit=result.unit,
        timed=result.measure == "time",
        protocol=result.protocol,
        models=tuple(
            ModelRow(model, result.label(model), model in result.highlighted) for model in result.models
        ),
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
    reason = result.difference(cell)
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
        cause=CAUSES[reason.cause] if reason else "",
        cause_note=reason.note if reason else "",
        ratio=ratio,
        published_ratio=published_ratio,
        run_seconds=fmean(cell.totals) if cell.totals else None,
        config=cell.config,
        tried=cell.tried,
        grid=cell.grid,
        seconds=cell.seconds,
        not_finite=cell.not_finite,
        problem=cell.problem,
        out_of_memory=cell.out_of_memory,
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
    highest = math.inf if result.full_score is None else result.full_score
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


def _published_points(cells: list[tuple[float, Cell]]) -> tuple[Point, ...]:
    means = [(at, cell.published.mean) for at, cell in cells if cell.published]
    return tuple(Point(at, float(mean), float(mean), float(mean)) for at, mean in means if mean is not None)


def dataset_name(dataset: str, protocol: str = "paper") -> str:
    """A column's name on one line.

    Examples
    --------
    >>> print(", ".join(map(dataset_name, ["cornell-2021", "csbm:phi=-0.5", "computers:r=0.25", "my/graph"])))
    Cornell (before July 2022), cSBM φ = −0.5, Computers r = 0.25, my/graph
    """
    return " ".join(filter(None, dataset_lines(dataset, protocol)))


def dataset_lines(dataset: str, protocol: str = "paper") -> tuple[str, str]:
    """A column's name and what is written below it: a parameter, or what sets the dataset apart.

    A user's own dataset is shown as the user named it. Where the protocol opens another dataset than the one
    that the table names, it is the name of the opened one.

    Examples
    --------
    >>> dataset_lines("photo:r=1"), dataset_lines("cornell-2021"), dataset_lines("cornell-2021", "sound")
    (('Photo', 'r = 1'), ('Cornell', '(before July 2022)'), ('Cornell', ''))
    """
    asked = DatasetName.parse(dataset)
    base = PROTOCOLS[protocol].source(dataset) if protocol in PROTOCOLS else asked.base
    details = ", ".join(f"{parameter_name(key)} = {with_minus(value)}" for key, value in asked.parameters)
    if asked.with_base(base).is_csbm:
        return "cSBM", details
    if base not in BENCHMARKS:
        return dataset.removeprefix("./"), ""
    variant = BENCHMARKS[base].variant
    return BENCHMARKS[base].label, " ".join(filter(None, [f"({variant})" if variant else "", details]))


def parameter_name(parameter: str) -> str:
    """The letter of a parameter: ``phi`` is φ."""
    return _LETTERS.get(parameter, parameter)
