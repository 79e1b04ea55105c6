"""How good predictions are, and how far that number may be off."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from plap.errors import InputError

_Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


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
    """95 % interval for an accuracy of ``correct`` out of ``total``, by Wilson's formula (1927).

    Unlike the textbook p ± 1.96 √(p(1−p)/n) it stays within [0, 1] and holds its promise for few nodes.

    Examples
    --------
    >>> low, high = accuracy_interval(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    if not 0 <= correct <= total or total < 1:
        raise InputError(f"correct must lie between 0 and total, not {correct} of {total}")
    share, z2 = correct / total, _Z95**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = _Z95 / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def macro_f1(labels: Tensor, predictions: Tensor) -> float:
    """Mean over the classes of F1, each class counting the same; [N], or [N, L] of 0 and 1."""
    return _f1(labels, predictions, "macro")


def micro_f1(labels: Tensor, predictions: Tensor) -> float:
    """F1 of all decisions together: 2 TP / (2 TP + FP + FN); for one class a node that is the accuracy.

    Examples
    --------
    >>> micro_f1(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    0.8
    """
    return _f1(labels, predictions, "micro")


def roc_auc(labels: Tensor, scores: Tensor) -> float:
    """Area under the ROC curve for two classes: [N] of 0 and 1, and the score of class 1.

    Examples
    --------
    >>> roc_auc(torch.tensor([0, 0, 1, 1]), torch.tensor([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    _check(labels, scores)
    if labels.ndim != 1 or labels.unique().tolist() != [0, 1]:
        raise InputError("ROC-AUC needs labels of exactly two classes, 0 and 1")
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415  (slow to import)

    return float(roc_auc_score(labels.numpy(), scores.numpy()))


def _f1(labels: Tensor, predictions: Tensor, average: str) -> float:
    _check(labels, predictions)
    from sklearn.metrics import f1_score  # noqa: PLC0415

    return float(f1_score(labels.int().numpy(), predictions.int().numpy(), average=average, zero_division=0))


def _check(labels: Tensor, other: Tensor) -> None:
    if labels.shape != other.shape or labels.numel() == 0:
        raise InputError(f"labels {list(labels.shape)} and predictions {list(other.shape)} must match")
    if bool(torch.isnan(other.double()).any()):
        raise InputError("predictions hold NaN")
