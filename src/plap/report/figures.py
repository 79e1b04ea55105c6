"""Where everything in the page's figures goes; the template draws it.

All figures are 360 units wide, which is a phone's width, so that their text is readable there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plap.report.content import Confusion, Curve, Score, Trial
from plap.report.scale import Scale

WIDTH = 360
_MOST_POINTS = 180
_MOST_NUMBERS = 12
"""Classes up to which the cells of a confusion matrix have room for numbers."""


@dataclass(frozen=True)
class Tick:
    """A place on an axis and what is written there."""

    at: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A score with its interval."""

    score: Score
    top: float
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class ScoreFigure:
    """Scores below each other on one axis."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    height: float


def score_figure(scores: Sequence[Score]) -> ScoreFigure:
    """Dots with 95 % intervals."""
    ends = [end for s in scores for end in (s.value, s.low, s.high) if end is not None]
    scale = Scale.around(ends, 12, WIDTH - 16)
    bars = tuple(
        Bar(
            score,
            46 * k,
            scale(score.value),
            scale(score.value if score.low is None else score.low),
            scale(score.value if score.high is None else score.high),
        )
        for k, score in enumerate(scores)
    )
    return ScoreFigure(bars, _ticks(scale, percent=True), 46 * len(scores) + 20)


@dataclass(frozen=True)
class Cell:
    """One number of a confusion matrix; ``share`` is of its row."""

    x: float
    y: float
    count: int
    share: float
    title: str


@dataclass(frozen=True)
class ConfusionFigure:
    """Cells, and the names along both sides."""

    cells: tuple[Cell, ...]
    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    left: float
    top: float
    size: float
    height: float
    numbers: bool


def confusion_figure(confusion: Confusion) -> ConfusionFigure:
    """A square whose rows are the true classes."""
    count = len(confusion.classes)
    names = [_shortened(name, 12 if count <= _MOST_NUMBERS else 8) for name in confusion.classes]
    longest = max((len(name) for name in names), default=0)
    left, top = 26 + 6.2 * longest, 26 + 4.6 * longest
    size = round(min((WIDTH - left - 4.2 * longest) / max(count, 1), 60), 2)
    cells = tuple(
        Cell(
            round(left + j * size, 2),
            round(top + i * size, 2),
            number,
            round(number / max(sum(row), 1), 3),
            f"{number} of class {confusion.classes[i]} predicted as {confusion.classes[j]}",
        )
        for i, row in enumerate(confusion.counts)
        for j, number in enumerate(row)
    )
    sparse = max(1, math.ceil(count / 24))
    ticks = [Tick(round((k + 0.5) * size, 2), name) for k, name in enumerate(names) if k % sparse == 0]
    return ConfusionFigure(
        cells,
        tuple(Tick(round(top + tick.at, 2), tick.text) for tick in ticks),
        tuple(Tick(round(left + tick.at, 2), tick.text) for tick in ticks),
        left,
        top,
        size,
        round(top + count * size + 6, 2),
        count <= _MOST_NUMBERS,
    )


@dataclass(frozen=True)
class Line:
    """One run's curve: a path, and where its best epoch lies."""

    path: str
    kind: str
    name: str
    best: tuple[float, float] | None


@dataclass(frozen=True)
class CurveFigure:
    """Curves over epochs."""

    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    left: float = 44
    right: float = WIDTH - 10
    top: float = 10
    bottom: float = 196
    height: float = 232


def loss_figure(curves: Sequence[Curve]) -> CurveFigure:
    """Training and validation loss of every run."""
    series = [("train", curve, curve.train_loss) for curve in curves]
    series += [("val", curve, curve.val_loss) for curve in curves]
    return _curve_figure(series, percent=False)


def validation_figure(curves: Sequence[Curve]) -> CurveFigure:
    """Validation score of every run."""
    return _curve_figure([("val", curve, curve.val_score) for curve in curves], percent=True)


def _curve_figure(series: Sequence[tuple[str, Curve, Sequence[float]]], *, percent: bool) -> CurveFigure:
    empty = CurveFigure((), (), ())
    epochs = max((len(values) for _, _, values in series), default=1)
    x = Scale.around([0, max(epochs, 2)], empty.left, empty.right, tight=True)
    y = Scale.around((v for _, _, values in series for v in values), empty.bottom, empty.top)
    lines = tuple(
        Line(_path(values, curve.best_epoch, x, y), kind, curve.name, _best(kind, curve, values, x, y))
        for kind, curve, values in series
    )
    return CurveFigure(lines, _ticks(x), _ticks(y, percent=percent))


def _path(values: Sequence[float], best_epoch: int, x: Scale, y: Scale) -> str:
    """A line through some of the values, the last and the best among them."""
    stride = max(1, math.ceil(len(values) / _MOST_POINTS))
    chosen = {*range(0, len(values), stride), len(values) - 1, best_epoch - 1} & set(range(len(values)))
    points = [(x(k + 1), y(values[k])) for k in sorted(chosen) if math.isfinite(values[k])]
    return " ".join(f"{'L' if k else 'M'}{a:g} {b:g}" for k, (a, b) in enumerate(points))


def _best(kind: str, curve: Curve, values: Sequence[float], x: Scale, y: Scale) -> tuple[float, float] | None:
    if kind != "val" or not 1 <= curve.best_epoch <= len(values):
        return None
    return x(curve.best_epoch), y(values[curve.best_epoch - 1])


@dataclass(frozen=True)
class Dot:
    """One trial of the search."""

    x: float
    y: float
    title: str
    chosen: bool


@dataclass(frozen=True)
class SearchFigure:
    """Trials by the value of one parameter."""

    dots: tuple[Dot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    parameter: str
    left: float = 44
    right: float = WIDTH - 10
    bottom: float = 196
    height: float = 232


def search_figure(trials: Sequence[Trial], parameter: str = "p") -> SearchFigure | None:
    """Validation score of every trial by one parameter; None where no two trials differ in it."""
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
        # side by side in golden steps, so that equal scores do not hide each other
        aside = (seen[value] * 0.618034) % 1 - 0.5
        seen[value] += 1
        x = empty.left + (values.index(value) + 0.5 + 0.6 * aside) * width
        dots.append(Dot(round(x, 2), y(trial.score), _describe(trial), trial.chosen))
    dots.sort(key=lambda dot: dot.chosen)
    ticks = tuple(Tick(round(empty.left + (k + 0.5) * width, 2), f"{v}") for k, v in enumerate(values))
    return SearchFigure(tuple(dots), ticks, _ticks(y, percent=True), parameter)


def _describe(trial: Trial) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in trial.config.items())
    return f"{100 * trial.score:.1f} % with {settings}"


def _ticks(scale: Scale, *, percent: bool = False) -> tuple[Tick, ...]:
    factor, unit = (100, " %") if percent else (1, "")
    return tuple(Tick(scale(value), f"{factor * value:g}{unit}") for value in _thinned(scale.ticks))


def _thinned(ticks: Sequence[float]) -> Iterable[float]:
    return ticks if len(ticks) <= 6 else ticks[::2]


def _shortened(name: str, length: int) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"
