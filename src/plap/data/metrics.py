"""How good predictions are, and how far that number may be off. A metric is one function and one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from plap.checks import near_miss
from plap.data import weighted_metrics as weighted
from plap.data.labels import rarer_class
from plap.data.weighted_metrics import WeightedMetric
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
    """Mean of the classes' F1 scores, each class counting the same; [N], or [N, L] of 0 and 1.

    Examples
    --------
    >>> macro_f1(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 0, 0]))  # the second class has 0
    0.42857142857142855
    """
    return _f1(labels, predictions, "macro")


def micro_f1(labels: Tensor, predictions: Tensor) -> float:
    """F1 of all decisions together: 2 TP / (2 TP + FP + FN); with one class per node this is the accuracy.

    Examples
    --------
    >>> micro_f1(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    0.8
    """
    return _f1(labels, predictions, "micro")


def balanced_accuracy(labels: Tensor, predictions: Tensor) -> float:
    """Mean of the classes' recalls: the accuracy if all classes had the same number of nodes.

    Examples
    --------
    >>> balanced_accuracy(torch.tensor([0, 0, 0, 0, 1, 1]), torch.tensor([0, 0, 0, 0, 0, 1]))
    0.75
    """
    _check(labels, predictions)
    recalls = _scikit().recall_score(
        labels.numpy(), predictions.numpy(), labels=labels.unique().numpy(), average="macro", zero_division=0
    )
    return float(recalls)


def roc_auc(labels: Tensor, scores: Tensor) -> float:
    """Area under the ROC curve; of more than two classes the mean, each against the rest.

    Parameters
    ----------
    labels : Tensor, shape [N], or [N, L] of 0 and 1
    scores : Tensor, shape [N] or [N, classes]
        The score of class 1 (of two), or the probabilities of all classes.

    Examples
    --------
    >>> roc_auc(torch.tensor([0, 0, 1, 1]), torch.tensor([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    if labels.ndim == 1 and scores.ndim == 2 and scores.shape[1] == 2:
        scores = scores[:, 1]
    if scores.ndim == 1 and (labels.ndim != 1 or labels.unique().tolist() != [0, 1]):
        raise InputError("ROC-AUC needs labels of exactly two classes, 0 and 1")
    return _one_against_rest(_scikit().roc_auc_score, labels, scores)


def average_precision(labels: Tensor, scores: Tensor) -> float:
    """Mean precision over the thresholds at which a positive node is found.

    Unlike ROC-AUC it falls to the share of positive nodes for a useless ranking, so it shows what a ranking
    is worth where few nodes are positive.

    Parameters
    ----------
    labels : Tensor, shape [N], or [N, L] of 0 and 1
    scores : Tensor, shape [N] or [N, classes]
        The score of class 1 (of two), or the probabilities of all classes. From two columns the rarer class
        is taken, from more the mean over the classes, each against the rest.

    Examples
    --------
    >>> scores = torch.tensor([0.1, 0.4, 0.3, 0.35, 0.8])
    >>> round(average_precision(torch.tensor([0, 0, 0, 1, 1]), scores), 3)
    0.833
    """
    if labels.ndim == 1 and scores.ndim == 2 and scores.shape[1] == 2:
        rare = rarer_class(labels)
        labels, scores = (labels == rare).long(), scores[:, rare]
    return _one_against_rest(_scikit().average_precision_score, labels, scores)


def log_loss(labels: Tensor, probabilities: Tensor) -> float:
    """Mean negative logarithm of the probability of the true class.

    Examples
    --------
    >>> round(log_loss(torch.tensor([0, 1]), torch.tensor([[0.5, 0.5], [0.25, 0.75]])), 4)
    0.4904
    """
    _check(labels, probabilities[:, 0])
    values = probabilities.double()
    values = values / values.sum(1, keepdim=True)
    return float(_scikit().log_loss(labels.numpy(), values.numpy(), labels=range(values.shape[1])))


def r2(labels: Tensor, predictions: Tensor) -> float:
    """Share of the variance that is explained: 1 is perfect, 0 is as good as the mean.

    Examples
    --------
    >>> r2(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 2.0]))
    0.5
    """
    return _of_numbers(_scikit().r2_score, labels, predictions)


def mae(labels: Tensor, predictions: Tensor) -> float:
    """Mean absolute error, in the unit of the labels."""
    return _of_numbers(_scikit().mean_absolute_error, labels, predictions)


def rmse(labels: Tensor, predictions: Tensor) -> float:
    """Root of the mean squared error, in the unit of the labels."""
    return _of_numbers(_scikit().root_mean_squared_error, labels, predictions)


def _of_numbers(function: Callable[..., float], labels: Tensor, predictions: Tensor) -> float:
    _check(labels, predictions)
    return float(function(labels.double().numpy(), predictions.double().numpy()))


def _one_against_rest(function: Callable[..., float], labels: Tensor, scores: Tensor) -> float:
    """``function`` of one column of scores, or its mean over the columns that have both kinds of nodes."""
    _check(labels, scores if scores.ndim == labels.ndim else scores[:, 0])
    if scores.ndim == 1:
        return float(function(labels.numpy(), scores.double().numpy()))
    values = []
    for k in range(scores.shape[1]):
        positive = labels == k if labels.ndim == 1 else labels[:, k] == 1
        if bool(positive.any()) and not bool(positive.all()):
            values.append(float(function(positive.numpy(), scores[:, k].double().numpy())))
    if not values:
        raise InputError("a ranking is scored where some nodes have a class and others do not")
    return sum(values) / len(values)


def _scikit() -> Any:
    import sklearn.metrics  # noqa: PLC0415  (slow to import)

    return sklearn.metrics


def _has_both(labels: Tensor, outputs: Tensor) -> bool:
    """Whether some class is there and some node is not of it."""
    if labels.ndim == 1:
        return bool(labels.unique().shape[0] > 1)
    return bool((labels.min(0).values != labels.max(0).values).any())


def _varies(labels: Tensor, outputs: Tensor) -> bool:
    return bool(labels.unique().shape[0] > 1)


def _f1(labels: Tensor, predictions: Tensor, average: str) -> float:
    _check(labels, predictions)
    said, true = predictions.int().numpy(), labels.int().numpy()
    return float(_scikit().f1_score(true, said, average=average, zero_division=0))


def _check(labels: Tensor, other: Tensor) -> None:
    if labels.shape != other.shape or labels.numel() == 0:
        raise InputError(f"labels {list(labels.shape)} and predictions {list(other.shape)} must match")
    if bool(torch.isnan(other.double()).any()):
        raise InputError("predictions hold NaN")


@dataclass(frozen=True)
class Metric:
    """A row of the registry: a number that says how good predictions are."""

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
    weighted: WeightedMetric | None = None
    """The same for many runs or samples at once, see ``plap.data.weighted_metrics``. Without it the metric
    has no interval, and training that stops by it calls ``function`` for each run."""
    higher_is_better: bool = True
    share: bool = True
    """Whether it lies between 0 and 1 and is written in per cent."""
    of_positive_class: bool = False
    """Whether, of two classes, it judges the score of one of them alone."""
    by_class: bool = False
    """Whether the nodes of a rare class count as much as those of a frequent one."""

    def too_few(self, labels: Tensor) -> bool:
        """Whether so few nodes are of the rarer of two classes that resampling them says nothing.

        Examples
        --------
        >>> labels = torch.tensor([1] * 3 + [0] * 97)
        >>> METRICS["average_precision"].too_few(labels), METRICS["accuracy"].too_few(labels)
        (True, False)
        """
        if not self.by_class or labels.ndim != 1:
            return False
        sizes = labels.unique(return_counts=True)[1]
        return sizes.shape[0] == 2 and bool(sizes.min() < _FEW)

    @property
    def sign(self) -> int:
        """1 if higher is better, −1 if lower is."""
        return 1 if self.higher_is_better else -1


_FEW = 10
"""Nodes of the rarer of two classes below which a bootstrap does not see how far a score may be off: of two
rankings at random, it calls 85 in 100 significantly different by average precision if there is one such
node, 11 if there are five, and 5, as it should, if there are ten."""

_CLASSES, _NUMBERS = ("multiclass",), ("regression",)
_LABELS = ("multiclass", "multilabel")

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", accuracy, _CLASSES, weighted=weighted.accuracy),
        Metric(
            "balanced_accuracy", "balanced accuracy", balanced_accuracy, _CLASSES,
            weighted=weighted.balanced_accuracy, by_class=True,
        ),
        Metric("macro_f1", "macro-F1", macro_f1, _LABELS, weighted=weighted.macro_f1, by_class=True),
        Metric("micro_f1", "micro-F1", micro_f1, ("multilabel",), weighted=weighted.micro_f1),
        Metric(
            "roc_auc", "ROC-AUC", roc_auc, _LABELS, "probabilities", _has_both, weighted.roc_auc,
            of_positive_class=True, by_class=True,
        ),
        Metric(
            "average_precision", "average precision", average_precision, _LABELS, "probabilities", _has_both,
            weighted.average_precision, of_positive_class=True, by_class=True,
        ),
        Metric(
            "log_loss", "log loss", log_loss, _CLASSES, "probabilities", weighted=weighted.log_loss,
            higher_is_better=False, share=False,
        ),
        Metric("r2", "R²", r2, _NUMBERS, defined=_varies, weighted=weighted.r2, share=False),
        Metric(
            "mae", "mean absolute error", mae, _NUMBERS, weighted=weighted.mae,
            higher_is_better=False, share=False,
        ),
        Metric(
            "rmse", "root mean squared error", rmse, _NUMBERS, weighted=weighted.rmse,
            higher_is_better=False, share=False,
        ),
    )
}  # fmt: skip
"""All metrics by name; those of a task are reported in this order, its headline first."""


def find_metric(name: str, task: str) -> Metric:
    """The metric of this name; refused where there is none, or where it does not fit the task.

    Examples
    --------
    >>> find_metric("r2", "regression").label
    'R²'
    """
    fitting = [metric.name for metric in METRICS.values() if task in metric.tasks]
    if name not in fitting:
        hint = near_miss(name, METRICS) if name not in METRICS else ""
        raise InputError(f"metric {name!r} is not one of those for {task} data{hint}: {', '.join(fitting)}")
    return METRICS[name]


def confidence_interval(metric: Metric, labels: Tensor, outputs: Tensor, *, seed: int = 0) -> Interval | None:
    """95 % confidence interval of a metric: Wilson's for accuracy, a bootstrap over nodes for all others.

    None where the metric has no form that can be resampled, or where too few nodes are of the rarer class.

    Parameters
    ----------
    metric : Metric
    labels, outputs : Tensor
        What ``metric.function`` takes.
    seed : int

    Examples
    --------
    >>> labels = torch.arange(400) % 2
    >>> interval = confidence_interval(METRICS["balanced_accuracy"], labels, torch.arange(400) % 3 % 2)
    >>> interval.low < 0.5 < interval.high
    True
    """
    if metric.name == "accuracy":
        return accuracy_interval(int((labels == outputs).sum()), labels.shape[0])
    if metric.weighted is None or not metric.defined(labels, outputs) or metric.too_few(labels):
        return None
    spread = weighted.bootstrap(metric.weighted, labels, [outputs], seed=seed)[0]
    low, high = (float(spread.nanquantile(share)) for share in (0.025, 0.975))
    value = metric.function(labels, outputs)
    if metric.share:
        return Interval(max(0.0, value + low), min(1.0, value + high))
    return Interval(value + low, value + high)


def differ(metric: Metric, labels: Tensor, first: Tensor, second: Tensor, *, seed: int = 0) -> bool | None:
    """Whether two outputs for the same nodes differ in a metric, by a paired bootstrap at 5 %.

    None where that cannot be told, as for :func:`confidence_interval`.
    """
    if metric.weighted is None or not metric.defined(labels, first) or metric.too_few(labels):
        return None
    ours, theirs = weighted.bootstrap(metric.weighted, labels, [first, second], seed=seed)
    gap = metric.function(labels, first) - metric.function(labels, second)
    low, high = (float((ours - theirs).nanquantile(share)) for share in (0.025, 0.975))
    return not gap + low <= 0 <= gap + high
