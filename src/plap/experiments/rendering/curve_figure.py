"""Where everything in the page's curves goes; the template draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plap.experiments.rendering.curves import Panel, Point, Series
from plap.experiments.rendering.line_styles import LineStyle
from plap.experiments.rendering.names import with_minus
from plap.report.figures import WIDTH, Tick
from plap.report.scale import Scale

LARGE = 640
"""Width where a panel stands alone."""


@dataclass(frozen=True)
class Dot:
    """A mean with its interval."""

    x: float
    y: float
    low: float
    high: float
    title: str


@dataclass(frozen=True)
class Line:
    """A model: our dots and the path through them, and the path of the published means."""

    number: int
    """Of the model, so that the legend finds its lines."""
    name: str
    style: LineStyle
    path: str
    published: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class CurveFigure:
    """One panel."""

    name: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    width: float
    right: float
    bottom: float
    left: float = 40
    top: float = 8

    @property
    def height(self) -> float:
        """With the numbers below the axis."""
        return self.bottom + 26


def curve_figure(panel: Panel, styles: Sequence[LineStyle], *, large: bool) -> CurveFigure:
    """Lines that keep clear of the picture's sides, over the values that the table has."""
    width, bottom = (LARGE, 360) if large else (WIDTH, 236)
    empty = CurveFigure(panel.name, (), (), (), width, width - 8, bottom)
    points = [point for series in panel.series for point in (*series.ours, *series.published)]
    x = Scale.around(panel.places, empty.left + 12, empty.right - 12, tight=True)
    ends = [end for point in points for end in (point.low, point.high)]
    y = Scale.around(ends, empty.bottom, empty.top, count=8)
    lines = (
        Line(
            number,
            series.name,
            style,
            _path(series.ours, x, y),
            _path(series.published, x, y),
            tuple(_dot(point, series, x, y) for point in series.ours),
        )
        for number, (series, style) in enumerate(zip(panel.series, styles, strict=True))
    )
    return CurveFigure(
        panel.name,
        tuple(line for line in lines if line.path or line.published),
        tuple(Tick(x(place), _short(place)) for place in panel.places),
        tuple(Tick(y(value), _short(value)) for value in y.ticks),
        width,
        empty.right,
        bottom,
    )


def _path(points: Sequence[Point], x: Scale, y: Scale) -> str:
    return " ".join(f"{'L' if k else 'M'}{x(p.at):g} {y(p.mean):g}" for k, p in enumerate(points))


def _dot(point: Point, series: Series, x: Scale, y: Scale) -> Dot:
    title = f"{series.name} at {_short(point.at)}: {point.mean:.4g}"
    if point.low < point.high:
        title += f", 95 % interval {point.low:.4g} to {point.high:.4g}"
    for other in series.published:
        if other.at == point.at:
            title += f"; published {other.mean:.4g}"
    return Dot(x(point.at), y(point.mean), y(point.low), y(point.high), title)


def _short(value: float) -> str:
    return with_minus(f"{value:g}")
