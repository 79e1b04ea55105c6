"""How good predictions are, and how far that number may be off. A metric is one function and one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from plap.errors import InputError


class Interval(NamedTuple):
    """Both ends of a confidence interval."""

    low: float
    high: float


def accuracy(labels: Tensor, predictions: Tensor) -> float:
    """Share of equal entries.

    Examples
    --------
    >>> accuracy(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 0]))
    0.75
    """
    _check(labels, predictions)
    return float((labels == predictions).double().mean())


def accuracy_interval(correct: int, total: int) -> Interval:
    """95 % confidence interval for an accuracy of ``correct`` out of ``total``, by Wilson's formula (1927).

    Unlike the textbook p ± 1.96 √(p(1−p)/n) it stays within [0, 1] and keeps its coverage for few nodes.

    Examples
    --------
    >>> low, high = accuracy_interval(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    if not 0 <= correct <= total or total < 1:
        raise InputError(f"correct must lie between 0 and total, not {correct} of {total}")
    from scipy.stats import binomtest  # noqa: PLC0415  (slow to import)

    found = binomtest(correct, total).proportion_ci(confidence_level=0.95, method="wilson")
    return Interval(float(found.low), float(found.high))


def macro_f1(labels: Tensor, predictions: Tensor) -> float:
    """Mean of the classes' F1 scores, each class counting the same; [N], or [N, L] of 0 and 1."""
    return _f1(labels, predictions, "macro")


def micro_f1(labels: Tensor, predictions: Tensor) -> float:
    """F1 of all decisions together: 2 TP / (2 TP + FP + FN); with one class per node this is the accuracy.

    Examples
    --------
    >>> micro_f1(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    0.8
    """
    return _f1(labels, predictions, "micro")


def roc_auc(labels: Tensor, scores: Tensor) -> float:
    """Area under the ROC curve for two classes.

    Parameters
    ----------
    labels : Tensor, shape [N]
        0 and 1.
    scores : Tensor, shape [N] or [N, 2]
        The score of class 1, or the probabilities of both classes.

    Examples
    --------
    >>> roc_auc(torch.tensor([0, 0, 1, 1]), torch.tensor([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    if scores.ndim == 2 and scores.shape[1] == 2:
        scores = scores[:, 1]
    _check(labels, scores)
    if labels.ndim != 1 or labels.unique().tolist() != [0, 1]:
        raise InputError("ROC-AUC needs labels of exactly two classes, 0 and 1")
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415  (slow to import)

    return float(roc_auc_score(labels.numpy(), scores.numpy()))


def _two_classes(labels: Tensor, probabilities: Tensor) -> bool:
    return probabilities.shape[1] == 2 and labels.unique().shape[0] == 2


def _f1(labels: Tensor, predictions: Tensor, average: str) -> float:
    _check(labels, predictions)
    from sklearn.metrics import f1_score  # noqa: PLC0415  (slow to import)

    return float(f1_score(labels.int().numpy(), predictions.int().numpy(), average=average, zero_division=0))


def _check(labels: Tensor, other: Tensor) -> None:
    if labels.shape != other.shape or labels.numel() == 0:
        raise InputError(f"labels {list(labels.shape)} and predictions {list(other.shape)} must match")
    if bool(torch.isnan(other.double()).any()):
        raise InputError("predictions hold NaN")


@dataclass(frozen=True)
class Metric:
    """A row of the registry: a number between 0 and 1 that says how good predictions are."""

    name: str
    """Its key in files and options."""
    label: str
    """What tables and pages call it."""
    function: Callable[[Tensor, Tensor], float]
    """Of the true labels and the predictions (or probabilities) of the same nodes."""
    tasks: tuple[str, ...]
    """Names of the tasks whose predictions it scores."""
    takes: Literal["predictions", "probabilities"] = "predictions"
    defined: Callable[[Tensor, Tensor], bool] = lambda labels, probabilities: True
    """Whether it has a value for these labels and probabilities."""


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", accuracy, ("multiclass",)),
        Metric("macro_f1", "macro-F1", macro_f1, ("multiclass",)),
        Metric("micro_f1", "micro-F1", micro_f1, ("multilabel",)),
        Metric("roc_auc", "ROC-AUC", roc_auc, ("multiclass",), "probabilities", _two_classes),
    )
}
"""All metrics by name; those of a task are reported in this order, its headline first."""
