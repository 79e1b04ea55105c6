"""Scores along a parameter of the datasets: what the pictures of a table show."""

from __future__ import annotations

import math
from dataclasses import dataclass

from plap.data.dataset_name import DatasetName
from plap.experiments.outcome import Cell, TableResult
from plap.experiments.rendering.names import dataset_name

_WITHOUT_IT = {"r": 0.0}
"""What a parameter is where the dataset's name does not have it."""


@dataclass(frozen=True)
class Point:
    """A mean at one value of the parameter, with the ends of its 95 % interval as far as there are scores."""

    at: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """One model."""

    name: str
    ours: tuple[Point, ...]
    published: tuple[Point, ...]
    """Without intervals: the paper prints none."""


@dataclass(frozen=True)
class Panel:
    """One dataset, whatever its parameter is."""

    name: str
    series: tuple[Series, ...]
    """One for each model of the table, in its order."""

    @property
    def places(self) -> tuple[float, ...]:
        """Values of the parameter, in order."""
        points = (point.at for line in self.series for point in (*line.ours, *line.published))
        return tuple(sorted(set(points)))


def panels(result: TableResult) -> tuple[Panel, ...]:
    """A panel for each dataset that has any value, in the order of the table; none without a parameter."""
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
        number = _WITHOUT_IT.get(parameter) if value is None else float(value)
    except ValueError:
        number = None
    return str(name.without(parameter)), number


def _panel(result: TableResult, base: str, places: dict[str, float]) -> Panel:
    most = _most(result.unit)
    order = sorted(places, key=lambda dataset: places[dataset])
    series = []
    for model in result.models:
        cells = [(places[dataset], result.cell(model, dataset)) for dataset in order]
        ours = tuple(_point(at, cell, most) for at, cell in cells if cell.mean is not None)
        series.append(Series(result.label(model), ours, _published(cells)))
    return Panel(dataset_name(base, result.protocol), tuple(series))


def _point(at: float, cell: Cell, most: float) -> Point:
    mean = cell.mean or 0.0
    low, high = cell.interval or (mean, mean)
    return Point(at, mean, max(low, 0.0), min(high, most))


def _most(unit: str) -> float:
    """The highest score that there can be."""
    return 100.0 if "%" in unit else 1.0 if "from 0 to 1" in unit else math.inf


def _published(cells: list[tuple[float, Cell]]) -> tuple[Point, ...]:
    means = [(at, cell.published.mean) for at, cell in cells if cell.published]
    return tuple(Point(at, float(mean), float(mean), float(mean)) for at, mean in means if mean is not None)
