"""Positions of everything in the line figures of the pages; the template draws them as inline SVG.

A training run is a line with a mark at its best epoch; a model of a table is a line through its means with a
mark and an interval at each, and a dashed line through the published means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plap.reporting.fit_content import TrainingRun
from plap.reporting.number_text import with_minus
from plap.reporting.palette import TRAINING, VALIDATION, LineStyle
from plap.reporting.svg_figures import WIDTH, Scale, Tick
from plap.reporting.table_content import Panel, Point, Series

LARGE = 640
"""Width of a panel that stands alone."""
_MOST_POINTS = 180


@dataclass(frozen=True)
class LineMark:
    """A point of a line with its interval."""

    x: float
    y: float
    low: float
    high: float
    title: str


@dataclass(frozen=True)
class SvgLine:
    """A path, the dashed path that it is compared with, and marks on it."""

    number: int
    """Position of the run or model, so that the legend finds its lines."""
    name: str
    style: LineStyle
    path: str
    dashed: str = ""
    marks: tuple[LineMark, ...] = ()


@dataclass(frozen=True)
class LineFigure:
    """Lines in a frame with two axes."""

    kind: str
    """``runs`` (thin lines) or ``means``."""
    name: str = ""
    width: float = WIDTH
    bottom: float = 196
    lines: tuple[SvgLine, ...] = ()
    x_ticks: tuple[Tick, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    left: float = 44
    top: float = 10

    @property
    def right(self) -> float:
        """Where the frame ends."""
        return self.width - 10

    @property
    def height(self) -> float:
        """Including the numbers below the axis."""
        return self.bottom + 28


def loss_figure(runs: Sequence[TrainingRun]) -> LineFigure:
    """Training and validation loss of every run by epoch."""
    training = [(TRAINING, run, run.train_loss, False) for run in runs]
    validation = [(VALIDATION, run, run.val_loss, True) for run in runs]
    return _run_figure([*training, *validation], percent=False)


def validation_figure(runs: Sequence[TrainingRun], *, share: bool = True) -> LineFigure:
    """Validation score of every run by epoch."""
    return _run_figure([(VALIDATION, run, run.val_score, True) for run in runs], percent=share)


def _run_figure(
    series: Sequence[tuple[LineStyle, TrainingRun, Sequence[float], bool]], *, percent: bool
) -> LineFigure:
    frame = LineFigure("runs")
    epochs = max((len(values) for _, _, values, _ in series), default=1)
    x = Scale.around([0, max(epochs, 2)], frame.left, frame.right, tight=True)
    y = Scale.around((v for _, _, values, _ in series for v in values), frame.bottom, frame.top)
    lines = tuple(
        SvgLine(
            number,
            run.name,
            style,
            line_path((x(k + 1), y(values[k])) for k in _thinned(values, run.best_epoch)),
            marks=tuple(_best_epoch(run, values, x, y)) if marked else (),
        )
        for number, (style, run, values, marked) in enumerate(series)
    )
    return LineFigure("runs", lines=lines, x_ticks=x.ticks(), y_ticks=y.ticks(percent=percent))


def _thinned(values: Sequence[float], best_epoch: int) -> list[int]:
    """Positions of some of the finite values, the last and the best among them."""
    stride = max(1, math.ceil(len(values) / _MOST_POINTS))
    chosen = {*range(0, len(values), stride), len(values) - 1, best_epoch - 1} & set(range(len(values)))
    return [k for k in sorted(chosen) if math.isfinite(values[k])]


def _best_epoch(run: TrainingRun, values: Sequence[float], x: Scale, y: Scale) -> Iterable[LineMark]:
    if 1 <= run.best_epoch <= len(values):
        height = y(values[run.best_epoch - 1])
        title = f"{run.name}, epoch {run.best_epoch}"
        yield LineMark(x(run.best_epoch), height, height, height, title)


def mean_figure(panel: Panel, styles: Sequence[LineStyle], *, large: bool) -> LineFigure:
    """The means of every model along the parameter, with their intervals; ``large`` if it stands alone."""
    frame = LineFigure("means", panel.name, *((LARGE, 360) if large else (WIDTH, 236)))
    points = [point for series in panel.series for point in (*series.ours, *series.published)]
    x = Scale.around(panel.places, frame.left + 12, frame.right - 12, tight=True)
    ends = [end for point in points for end in (point.low, point.high)]
    y = Scale.around(ends, frame.bottom, frame.top, count=8)
    lines = (
        SvgLine(
            number,
            series.name,
            style,
            line_path((x(point.at), y(point.mean)) for point in series.ours),
            line_path((x(point.at), y(point.mean)) for point in series.published),
            tuple(_mean_mark(point, series, x, y) for point in series.ours),
        )
        for number, (series, style) in enumerate(zip(panel.series, styles, strict=True))
    )
    return LineFigure(
        "means",
        panel.name,
        frame.width,
        frame.bottom,
        tuple(line for line in lines if line.path or line.dashed),
        tuple(Tick(x(place), _short(place)) for place in panel.places),
        y.ticks(most=20),
    )


def line_path(points: Iterable[tuple[float, float]]) -> str:
    """An SVG path through points."""
    return " ".join(f"{'L' if k else 'M'}{x:g} {y:g}" for k, (x, y) in enumerate(points))


def _mean_mark(point: Point, series: Series, x: Scale, y: Scale) -> LineMark:
    title = f"{series.name} at {_short(point.at)}: {point.mean:.4g}"
    if point.low < point.high:
        title += f", 95 % confidence interval {point.low:.4g} to {point.high:.4g}"
    for other in series.published:
        if other.at == point.at:
            title += f"; published {other.mean:.4g}"
    return LineMark(x(point.at), y(point.mean), y(point.low), y(point.high), title)


def _short(value: float) -> str:
    return with_minus(f"{value:g}")
