"""Positions of everything in the scores, the confusion matrix and the search of a fit's page.

The template draws them as inline SVG. All are 360 units wide, the width of a phone, so that their text stays
readable there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plap.reporting.fit_content import ConfusionMatrix, Score, TrialRow
from plap.reporting.number_text import shortened, shown
from plap.reporting.scale import Scale, Tick

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
