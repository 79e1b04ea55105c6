"""Positions of everything in the scores, the confusion matrix and the search of a fit's page.

The template draws them as inline SVG. All are 360 units wide, the width of a phone, so that their text stays
readable there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plap.reporting.fit_content import ConfusionMatrix, Score, TrialRow
from plap.reporting.number_text import shortened, shown, with_minus

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
