"""What a page shows for one kind of task: curves of rankings, thresholds, calibration, suspects, residuals.

First the content as plain values, then the positions of everything in its figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plap.reporting.number_text import counted, percent, shown
from plap.reporting.palette import VALIDATION, LineStyle, model_styles
from plap.reporting.svg_figures import WIDTH, LineFigure, LineMark, Scale, SvgLine, Tick, line_path

_MOST_DOTS = 600


@dataclass(frozen=True)
class Curve:
    """A curve of one method between 0 and 1 along both axes."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class ThresholdRow:
    """What happens if nodes from a probability on are called positive; on held-out nodes."""

    threshold: float
    found: int
    """Nodes that are called positive."""
    precision: float | None
    """None where there are no such nodes."""
    recall: float
    f1: float
    chosen: bool = False


@dataclass(frozen=True)
class CalibrationBin:
    """Held-out nodes of about the same probability."""

    said: float
    """Mean probability."""
    observed: float
    """Share of them for which it came true."""
    count: int


@dataclass(frozen=True)
class SuspectRow:
    """A node with a high probability of the rare class."""

    node: str
    probability: float
    role: str
    known: str | None = None


@dataclass(frozen=True)
class Residuals:
    """Held-out numbers and their predictions."""

    truth: Sequence[float]
    predicted: Sequence[float]


@dataclass(frozen=True)
class TaskSections:
    """The parts of a page that depend on the task; a part that is empty is left out."""

    positive: str = ""
    """Name of the rarer of two classes."""
    roc: Sequence[Curve] = ()
    """False positive rate and recall of each method, the model first."""
    precision_recall: Sequence[Curve] = ()
    """Recall and precision."""
    share_of_positive: float = 0.0
    """Among the held-out nodes: the precision of a useless ranking."""
    thresholds: Sequence[ThresholdRow] = ()
    calibration: Sequence[CalibrationBin] = ()
    calibration_error: float | None = None
    """Mean distance of probability and share over the nodes."""
    temperature: float = 1.0
    suspects: Sequence[SuspectRow] = ()
    residuals: Residuals | None = None
    scores: Sequence[tuple[str, Sequence[str]]] = ()
    """Every method with all its scores as text."""
    score_names: Sequence[str] = ()
    sets: str = ""
    """A sentence on prediction sets or intervals."""


@dataclass(frozen=True)
class TaskFigures:
    """The figures of :class:`TaskSections`; None where there is nothing to draw."""

    roc: LineFigure | None
    precision_recall: LineFigure | None
    calibration: LineFigure | None
    residuals: DotFigure | None
    styles: tuple[tuple[str, LineStyle], ...]
    """Of the methods in the curves."""


def task_figures(sections: TaskSections) -> TaskFigures:
    """Draw what there is."""
    styles = model_styles([k == 0 for k in range(len(sections.roc))])
    level = sections.share_of_positive
    return TaskFigures(
        curve_figure(sections.roc, styles, ((0, 0), (1, 1))) if sections.roc else None,
        curve_figure(sections.precision_recall, styles, ((0, level), (1, level)))
        if sections.precision_recall
        else None,
        calibration_figure(sections.calibration) if sections.calibration else None,
        residual_figure(sections.residuals) if sections.residuals else None,
        tuple((curve.name, style) for curve, style in zip(sections.roc, styles, strict=True)),
    )


def curve_figure(
    curves: Sequence[Curve], styles: Sequence[LineStyle], chance: tuple[tuple[float, float], ...]
) -> LineFigure:
    """Curves in the unit square above a dashed line for chance; the model's lies on top."""
    frame, x, y = _square()
    lines = [
        SvgLine(k, curve.name, style, line_path((x(a), y(b)) for a, b in zip(curve.x, curve.y, strict=True)))
        for k, (curve, style) in enumerate(zip(curves, styles, strict=True))
    ]
    dashed = SvgLine(len(lines), "chance", styles[0], "", line_path((x(a), y(b)) for a, b in chance))
    return LineFigure(
        "means", lines=(dashed, *reversed(lines)), bottom=frame.bottom, x_ticks=x.ticks(percent=True),
        y_ticks=y.ticks(percent=True),
    )  # fmt: skip


def calibration_figure(bins: Sequence[CalibrationBin]) -> LineFigure:
    """Observed shares by predicted probabilities, above the dashed line on which both are equal."""
    frame, x, y = _square()
    marks = tuple(
        LineMark(
            x(each.said), y(each.observed), y(each.observed), y(each.observed),
            f"{counted(each.count, 'node')}: predicted {percent(each.said)}, "
            f"observed {percent(each.observed)}",
        )
        for each in bins
    )  # fmt: skip
    path = line_path((mark.x, mark.y) for mark in marks)
    line = SvgLine(0, "held-out nodes", VALIDATION, path, line_path([(x(0), y(0)), (x(1), y(1))]), marks)
    return LineFigure(
        "means", lines=(line,), bottom=frame.bottom, x_ticks=x.ticks(percent=True),
        y_ticks=y.ticks(percent=True),
    )  # fmt: skip


def _square() -> tuple[LineFigure, Scale, Scale]:
    frame = LineFigure("means", bottom=256)
    scale = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    x = Scale(0.0, 1.0, frame.left, frame.right - 10, scale)
    return frame, x, Scale(0.0, 1.0, frame.bottom, frame.top, scale)


@dataclass(frozen=True)
class Dot:
    """One node of a scatter plot."""

    x: float
    y: float
    title: str


@dataclass(frozen=True)
class DotFigure:
    """Dots in a frame with two axes, and a line across at zero."""

    dots: tuple[Dot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    zero: float
    left: float = 54
    right: float = WIDTH - 10
    bottom: float = 226
    width: float = WIDTH
    height: float = 254


def residual_figure(residuals: Residuals) -> DotFigure:
    """True minus predicted numbers by predicted ones; of many nodes every so many-th."""
    empty = DotFigure((), (), (), 0)
    stride = max(1, len(residuals.truth) // _MOST_DOTS)
    pairs = list(zip(residuals.truth, residuals.predicted, strict=True))[::stride]
    x = Scale.around([said for _, said in pairs], empty.left, empty.right)
    y = Scale.around([0.0, *(true - said for true, said in pairs)], empty.bottom, 10)
    dots = tuple(
        Dot(x(said), y(true - said), f"true {shown(true, share=False)}, predicted {shown(said, share=False)}")
        for true, said in pairs
    )
    return DotFigure(dots, x.ticks(most=5), y.ticks(), y(0.0))
