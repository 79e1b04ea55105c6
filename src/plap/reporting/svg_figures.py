"""Positions of everything in the figures of the pages; the template draws them as inline SVG.

Figures of a fit are 360 units wide, the width of a phone, so that their text stays readable there. A training
run is a line with a mark at its best epoch; a model of a table is a line through its means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plap.reporting.fit_content import ConfusionMatrix, Score, TrainingRun, TrialRow
from plap.reporting.number_text import shortened, shown, with_minus
from plap.reporting.palette import TRAINING, VALIDATION, LineStyle
from plap.reporting.table_content import Panel, Point, Series

_MOST_TICKS = 6


@dataclass(frozen=True)
class Tick:
    """A position on an axis and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Scale:
    """A linear map from [low, high] to [start, end], with round numbers along it.

    Examples
    --------
    >>> scale = Scale.around([0.12, 0.83], 0, 100)
    >>> scale.low, scale.high, scale.values
    (0.0, 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    >>> scale(0.5)
    50.0
    """

    low: float
    high: float
    start: float
    end: float
    values: tuple[float, ...]
    """Round numbers from ``low`` to ``high``."""

    @classmethod
    def around(
        cls, values: Iterable[float], start: float, end: float, count: int = 5, *, tight: bool = False
    ) -> Scale:
        """A scale that contains all finite values; it begins and ends at round numbers unless ``tight``."""
        finite = [value for value in values if math.isfinite(value)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        if high - low < 1e-9 * max(abs(high), 1e-300):
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        step = _round_step((high - low) / count)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        digits = max(0, -math.floor(math.log10(step)) + 1)
        rounds = tuple(round(k * step, digits) + 0.0 for k in range(first, last + 1))
        if tight:
            return cls(low, high, start, end, tuple(value for value in rounds if low <= value <= high))
        return cls(rounds[0], rounds[-1], start, end, rounds)

    def __call__(self, value: float) -> float:
        """The position of a value to a hundredth, clipped to the ends of the scale."""
        share = (value - self.low) / (self.high - self.low)
        share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 1.0
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self, *, percent: bool = False, most: int = _MOST_TICKS) -> tuple[Tick, ...]:
        """The round numbers as ticks; every second one if there are more than ``most``."""
        factor, unit = (100, " %") if percent else (1, "")
        shown = self.values if len(self.values) <= most else self.values[::2]
        return tuple(Tick(self(value), with_minus(f"{factor * value:g}{unit}")) for value in shown)


def _round_step(width: float) -> float:
    """The smallest of …, 0.1, 0.2, 0.5, 1, 2, 5, … that is not below ``width``."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= width * (1 - 1e-9))


WIDTH = 360
_MOST_NUMBERS = 12
"""Classes up to which the cells of a confusion matrix have room for numbers."""


@dataclass(frozen=True)
class ScoreBar:
    """A score with its interval."""

    score: Score
    top: float
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class ScoreFigure:
    """Scores below each other on one axis."""

    bars: tuple[ScoreBar, ...]
    ticks: tuple[Tick, ...]
    height: float
    share: bool = True


def score_figure(scores: Sequence[Score], *, share: bool = True) -> ScoreFigure:
    """Dots with 95 % confidence intervals."""
    ends = [end for s in scores for end in (s.value, s.low, s.high) if end is not None]
    scale = Scale.around(ends, 12, WIDTH - 16)
    bars = tuple(
        ScoreBar(
            score,
            46 * k,
            scale(score.value),
            scale(score.value if score.low is None else score.low),
            scale(score.value if score.high is None else score.high),
        )
        for k, score in enumerate(scores)
    )
    return ScoreFigure(bars, scale.ticks(percent=share), 46 * len(scores) + 20, share)


@dataclass(frozen=True)
class MatrixSquare:
    """One number of a confusion matrix; ``share`` is relative to its row."""

    x: float
    y: float
    count: int
    share: float
    title: str


@dataclass(frozen=True)
class MatrixFigure:
    """The squares, and the class names along both sides."""

    squares: tuple[MatrixSquare, ...]
    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    left: float
    top: float
    size: float
    height: float
    numbers: bool
    """Whether the squares have room for their counts."""


def matrix_figure(confusion: ConfusionMatrix) -> MatrixFigure:
    """A square grid whose rows are the true classes."""
    count = len(confusion.classes)
    names = [shortened(name, 12 if count <= _MOST_NUMBERS else 8) for name in confusion.classes]
    longest = max((len(name) for name in names), default=0)
    left, top = 26 + 6.2 * longest, 26 + 4.6 * longest
    size = round(min((WIDTH - left - 4.2 * longest) / max(count, 1), 60), 2)
    squares = tuple(
        MatrixSquare(
            round(left + j * size, 2),
            round(top + i * size, 2),
            number,
            round(number / max(sum(row), 1), 3),
            f"{number} of class {confusion.classes[i]} predicted as {confusion.classes[j]}",
        )
        for i, row in enumerate(confusion.counts)
        for j, number in enumerate(row)
    )
    stride = max(1, math.ceil(count / 24))
    ticks = [Tick(round((k + 0.5) * size, 2), name) for k, name in enumerate(names) if k % stride == 0]
    return MatrixFigure(
        squares,
        tuple(Tick(round(top + tick.at, 2), tick.text) for tick in ticks),
        tuple(Tick(round(left + tick.at, 2), tick.text) for tick in ticks),
        left,
        top,
        size,
        round(top + count * size + 6, 2),
        count <= _MOST_NUMBERS,
    )


@dataclass(frozen=True)
class TrialDot:
    """One configuration of the search."""

    x: float
    y: float
    title: str
    chosen: bool


@dataclass(frozen=True)
class SearchFigure:
    """Validation scores by the value of one hyperparameter."""

    dots: tuple[TrialDot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    parameter: str
    left: float = 44
    right: float = WIDTH - 10
    bottom: float = 196
    width: float = WIDTH
    height: float = 224


def search_figure(
    trials: Sequence[TrialRow], parameter: str = "p", *, share: bool = True
) -> SearchFigure | None:
    """The validation score of every trial by one hyperparameter; None where no two trials differ in it."""
    having = [trial for trial in trials if parameter in trial.config and math.isfinite(trial.score)]
    values = sorted({trial.config[parameter] for trial in having}, key=lambda v: (isinstance(v, str), v))
    if len(values) < 2:
        return None
    empty = SearchFigure((), (), (), parameter)
    width = (empty.right - empty.left) / len(values)
    y = Scale.around((trial.score for trial in having), empty.bottom, 10)
    seen = dict.fromkeys(values, 0)
    dots = []
    for trial in having:
        value = trial.config[parameter]
        # Golden-ratio steps to the side, so that equal scores do not hide each other.
        aside = (seen[value] * 0.618034) % 1 - 0.5
        seen[value] += 1
        x = empty.left + (values.index(value) + 0.5 + 0.6 * aside) * width
        dots.append(TrialDot(round(x, 2), y(trial.score), _describe(trial, share), trial.chosen))
    dots.sort(key=lambda dot: dot.chosen)
    ticks = tuple(Tick(round(empty.left + (k + 0.5) * width, 2), f"{v}") for k, v in enumerate(values))
    return SearchFigure(tuple(dots), ticks, y.ticks(percent=share), parameter)


def _describe(trial: TrialRow, share: bool) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in trial.config.items())
    return f"{shown(trial.score, share)} with {settings}"


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
