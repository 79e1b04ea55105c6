"""From a comparison to the parts of its page that depend on the task."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from plap.data.metrics import METRICS
from plap.data.tasks import Multiclass, Regression
from plap.fitting.comparison import Comparison
from plap.reporting.number_text import counted, percent, shown
from plap.reporting.task_sections import (
    CalibrationBin,
    Curve,
    Residuals,
    SuspectRow,
    TaskSections,
    ThresholdRow,
)

_POINTS = 160
"""Points of a curve, about."""
_BINS = 10
_SUSPECTS = 30
_ROUND = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
"""Thresholds that the table shows beside the chosen one."""


def task_sections(comparison: Comparison) -> TaskSections:
    """Curves, thresholds, calibration and suspects for classes; residuals for numbers; all scores."""
    task = comparison.task
    names = list(comparison.model.scores)
    common = {
        "score_names": [METRICS[name].label for name in names],
        "scores": [
            (
                method.name,
                [shown(method.scores.get(n, math.nan), METRICS[n].share).removesuffix(" %") for n in names],
            )
            for method in comparison.methods
        ],
    }
    if isinstance(task, Regression):
        return TaskSections(**common, residuals=_residuals(comparison), sets=_intervals(comparison, task))  # type: ignore[arg-type]
    if not isinstance(task, Multiclass):
        return TaskSections(**common)  # type: ignore[arg-type]
    bins = _calibration(comparison, task)
    total = sum(each.count for each in bins)
    error = sum(each.count * abs(each.said - each.observed) for each in bins) / max(total, 1)
    two = task.num_outputs == 2 and task.positive is not None
    if two:
        common |= _of_positive_class(comparison, task)
    return TaskSections(
        **common,  # type: ignore[arg-type]
        calibration=bins if total else (),
        calibration_error=error,
        temperature=task.temperature,
        sets=_sets(comparison, task),
    )


def _of_positive_class(comparison: Comparison, task: Multiclass) -> dict[str, object]:
    """What a page shows of the rarer of two classes."""
    assert task.positive is not None
    test = comparison.split.test
    positive = (comparison.data.y[test] == task.positive).numpy()
    found: dict[str, object] = {"positive": str(task.class_names[task.positive])}
    if positive.any() and not positive.all():
        shares = {
            method.name: method.probabilities[test][:, task.positive].numpy() for method in comparison.methods
        }
        found["roc"] = [_roc(name, positive, share) for name, share in shares.items()]
        found["precision_recall"] = [_precision_recall(name, positive, s) for name, s in shares.items()]
        found["share_of_positive"] = float(positive.mean())
        ours = shares[comparison.model.name]
        found["thresholds"] = _thresholds(positive, ours, task.threshold)
    found["suspects"] = _suspects(comparison, task)
    return found


def _ranked(positive: NDArray[np.bool_], score: NDArray[np.floating]) -> tuple[NDArray[np.float64], ...]:
    """Counts of positive and negative nodes that score at least as much as each different score."""
    order = np.argsort(-score, kind="stable")
    ranked, hits = score[order], positive[order]
    last = np.append(ranked[1:] != ranked[:-1], True)
    return hits.cumsum()[last].astype(np.float64), (~hits).cumsum()[last].astype(np.float64)


def _roc(name: str, positive: NDArray[np.bool_], score: NDArray[np.floating]) -> Curve:
    tp, fp = _ranked(positive, score)
    x, y = np.append(0, fp / fp[-1]), np.append(0, tp / tp[-1])
    some = _thinned(x, y)
    return Curve(name, x[some].tolist(), y[some].tolist())


def _precision_recall(name: str, positive: NDArray[np.bool_], score: NDArray[np.floating]) -> Curve:
    tp, fp = _ranked(positive, score)
    recall, precision = tp / tp[-1], tp / (tp + fp)
    x, y = np.append(0, recall), np.append(precision[:1], precision)
    some = _thinned(x, y)
    return Curve(name, x[some].tolist(), y[some].tolist())


def _thinned(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions of points that are some way along the curve from one another, both ends among them."""
    way = np.append(0, np.hypot(np.diff(x), np.diff(y)).cumsum())
    wanted = np.linspace(0, way[-1], min(_POINTS, way.size))
    return np.unique(np.append(np.searchsorted(way, wanted).clip(max=way.size - 1), way.size - 1))


def _thresholds(
    positive: NDArray[np.bool_], score: NDArray[np.floating], chosen: float | None
) -> list[ThresholdRow]:
    rows = []
    for cut in sorted({*_ROUND, *([] if chosen is None else [chosen])}):
        said = score >= cut
        right = int((said & positive).sum())
        rows.append(
            ThresholdRow(
                cut, int(said.sum()), right / int(said.sum()) if said.any() else None,
                right / int(positive.sum()), 2 * right / int(said.sum() + positive.sum()), cut == chosen,
            )
        )  # fmt: skip
    return rows


def _calibration(comparison: Comparison, task: Multiclass) -> list[CalibrationBin]:
    """Groups of equal size by the probability of the positive class, or of the likeliest one."""
    test = comparison.split.test
    truth, said = comparison.data.y[test], comparison.model.probabilities[test]
    if task.num_outputs == 2 and task.positive is not None:
        probability, came_true = said[:, task.positive], truth == task.positive
    else:
        probability, likeliest = said.max(1)
        came_true = truth == likeliest
    order = probability.argsort()
    bins = [part for part in order.tensor_split(min(_BINS, max(1, order.shape[0] // 10))) if part.numel()]
    return [
        CalibrationBin(
            float(probability[part].double().mean()), float(came_true[part].double().mean()), part.shape[0]
        )
        for part in bins
    ]


def _suspects(comparison: Comparison, task: Multiclass) -> list[SuspectRow]:
    """Nodes that the model did not learn from, with the highest probability of the positive class first."""
    data, positive = comparison.data, task.positive
    score = comparison.model.probabilities[:, positive].masked_fill(comparison.learned_from, -1.0)
    top = score.topk(min(_SUSPECTS, score.shape[0])).indices
    roles = {"val": comparison.split.val, "test": comparison.split.test}
    words = {"val": "validation", "test": "held out"}
    rows = []
    for node, known in zip(top.tolist(), task.words(data.y[top]), strict=True):
        if float(score[node]) < 0:
            break
        role = next((words[name] for name, mask in roles.items() if bool(mask[node])), "unlabelled")
        rows.append(SuspectRow(str(data.node_ids[node]), float(score[node]), role, known))
    return rows


def _sets(comparison: Comparison, task: Multiclass) -> str:
    test = comparison.split.test
    sets = task.sets(comparison.model.probabilities[test])
    if sets is None or task.coverage is None:
        return ""
    holds = sets.gather(1, comparison.data.y[test][:, None]).double().mean()
    size = sets.sum(1).double().mean()
    return (
        f"Prediction sets were made for a coverage of {percent(task.coverage)}: on "
        f"{counted(int(test.sum()), 'held-out node')} they hold the true class for {percent(float(holds))}, "
        f"with {float(size):.2f} classes on average."
    )


def _numbers(comparison: Comparison) -> tuple[Tensor, Tensor]:
    test = comparison.split.test
    return comparison.data.y[test].double(), comparison.model.probabilities[test][:, 0].double()


def _residuals(comparison: Comparison) -> Residuals:
    truth, said = _numbers(comparison)
    return Residuals(truth.tolist(), said.tolist())


def _intervals(comparison: Comparison, task: Regression) -> str:
    if task.half_width is None or task.coverage is None:
        return ""
    truth, said = _numbers(comparison)
    inside = ((truth - said).abs() <= task.half_width).double().mean()
    return (
        f"Intervals of ±{shown(task.half_width, share=False)} were made for a coverage of "
        f"{percent(task.coverage)}: on {counted(truth.shape[0], 'held-out node')} they hold the true number "
        f"for {percent(float(inside))}."
    )
