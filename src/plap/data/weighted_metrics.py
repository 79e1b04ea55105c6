"""Metrics of many runs, or of many bootstrap samples, at once; and the intervals that follow from these.

Each function takes labels [R', T], outputs [R', T] or [R', T, L] and weights [R, T], and returns float64 [R].
R' is R (each run has outputs of its own) or 1 (one set of outputs, weighted in R ways). A node of weight 0 is
not there; one of weight 2 is there twice. Where a metric has no value, it is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from plap.data.labels import rarer_class

WeightedMetric = Callable[[Tensor, Tensor, Tensor], Tensor]

MOST_RESAMPLED = 10_000
"""Nodes beyond which a bootstrap looks at a sample of them; its spread is scaled to all."""
_REPLICATES = 400
_AT_A_TIME = 4_000_000
"""Weights that are drawn at a time."""


def balanced_accuracy(labels: Tensor, predictions: Tensor, weights: Tensor) -> Tensor:
    """Mean recall of the classes that occur.

    Examples
    --------
    >>> labels, said = torch.tensor([[0, 0, 0, 1]]), torch.tensor([[0, 0, 1, 1]])
    >>> round(float(balanced_accuracy(labels, said, torch.ones(1, 4))), 4)
    0.8333
    """
    right, true, _ = _class_counts(labels, predictions, weights)
    return _mean_where(right / true.clamp(min=1e-300), true > 0)


def macro_f1(labels: Tensor, predictions: Tensor, weights: Tensor) -> Tensor:
    """Mean F1 of the classes that occur or are predicted, or of all labels where a node may have several."""
    if labels.ndim == 3:
        right, true, said = _label_counts(labels, predictions, weights)
        return torch.where(true + said > 0, 2 * right / (true + said).clamp(min=1e-300), 0).mean(-1)
    right, true, said = _class_counts(labels, predictions, weights)
    return _mean_where(2 * right / (true + said).clamp(min=1e-300), true + said > 0)


def micro_f1(labels: Tensor, predictions: Tensor, weights: Tensor) -> Tensor:
    """2 TP / (2 TP + FP + FN) over all labels together."""
    right, true, said = (part.sum(-1) for part in _label_counts(labels, predictions, weights))
    return torch.where(true + said > 0, 2 * right / (true + said).clamp(min=1e-300), 1.0)


def accuracy(labels: Tensor, predictions: Tensor, weights: Tensor) -> Tensor:
    """Weighted share of equal entries."""
    return _mean((labels == predictions).double(), weights)


def roc_auc(labels: Tensor, scores: Tensor, weights: Tensor) -> Tensor:
    """Area under the ROC curve; of several classes the mean, each against the rest."""
    return _of_each_class(_area, labels, scores, weights)


def average_precision(labels: Tensor, scores: Tensor, weights: Tensor) -> Tensor:
    """Average precision; of two classes the rarer one's, of several the mean, each against the rest."""
    if labels.ndim == 2 and scores.ndim == 3 and scores.shape[-1] == 2:
        rare = rarer_class(labels[0])
        return _precision((labels == rare).double(), scores[..., rare], weights.double())
    return _of_each_class(_precision, labels, scores, weights)


def log_loss(labels: Tensor, probabilities: Tensor, weights: Tensor) -> Tensor:
    """Mean negative logarithm of the probability of the true class."""
    true = probabilities.double().gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return _mean(-true.clamp(min=torch.finfo(torch.float64).eps).log(), weights)


def r2(labels: Tensor, predictions: Tensor, weights: Tensor) -> Tensor:
    """1 − squared errors over squared deviations from the mean; NaN where all values are equal."""
    labels = labels.double()
    mean = _mean(labels, weights).unsqueeze(1)
    spread = _mean((labels - mean).square(), weights)
    left = _mean((labels - predictions.double()).square(), weights)
    return torch.where(spread > 0, 1 - left / torch.where(spread > 0, spread, 1), torch.nan)


def mae(labels: Tensor, predictions: Tensor, weights: Tensor) -> Tensor:
    """Mean absolute error."""
    return _mean((labels.double() - predictions.double()).abs(), weights)


def rmse(labels: Tensor, predictions: Tensor, weights: Tensor) -> Tensor:
    """Root of the mean squared error."""
    return _mean((labels.double() - predictions.double()).square(), weights).sqrt()


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    weights = weights.double()
    return (values * weights).sum(1) / weights.sum(1)


def _mean_where(values: Tensor, counted: Tensor) -> Tensor:
    return torch.where(counted, values, 0).sum(-1) / counted.sum(-1)


def _class_counts(labels: Tensor, predictions: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weight of the nodes that are right, true and predicted, for each class [R, C]."""
    classes = int(max(labels.max(), predictions.max())) + 1
    weights = weights.double()
    runs = weights.shape[0]

    def summed(classes_of: Tensor, values: Tensor) -> Tensor:
        empty = torch.zeros(runs, classes, dtype=torch.float64, device=weights.device)
        return empty.scatter_add_(1, classes_of.expand(runs, -1), values)

    right = summed(labels, weights * (labels == predictions))
    return right, summed(labels, weights), summed(predictions, weights)


def _label_counts(labels: Tensor, predictions: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same [R, L] where a node may have several labels."""
    weights = weights.double().unsqueeze(1)
    true, said = labels.double(), predictions.double()
    return tuple((weights @ part).squeeze(1) for part in (true * said, true, said))  # type: ignore[return-value]


def _of_each_class(one: WeightedMetric, labels: Tensor, scores: Tensor, weights: Tensor) -> Tensor:
    """``one`` of scores [R', T], or its mean over the columns of scores [R', T, L] that have a value."""
    weights = weights.double()
    if scores.ndim == 2:
        return one((labels == 1).double(), scores, weights)
    columns = range(1, 2) if labels.ndim == 2 and scores.shape[-1] == 2 else range(scores.shape[-1])
    each = [
        one((labels == k if labels.ndim == 2 else labels[..., k] == 1).double(), scores[..., k], weights)
        for k in columns
    ]
    return torch.stack(each).nanmean(0)


def _precision(positive: Tensor, scores: Tensor, weights: Tensor) -> Tensor:
    """Sum over thresholds of the precision times the gain in recall; nodes of equal score are one step."""
    found, tp, fp, _ = _ranked(positive, scores, weights)
    share = torch.where(found > 0, tp / (tp + fp).clamp(min=1e-300), 0)
    total = found.sum(1)
    return torch.where(total > 0, (found * share).sum(1) / total.clamp(min=1e-300), torch.nan)


def _area(positive: Tensor, scores: Tensor, weights: Tensor) -> Tensor:
    """Share of pairs of a positive and a negative node in the right order; equal scores count half."""
    found, _, fp, before = _ranked(positive, scores, weights)
    total = found.sum(1)
    others = weights.sum(1) - total
    pairs = (found * (others.unsqueeze(1) - (fp + before) / 2)).sum(1)
    possible = total * others
    return torch.where(possible > 0, pairs / possible.clamp(min=1e-300), torch.nan)


def _ranked(positive: Tensor, scores: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Highest score first, [R, T] each.

    The weight of a positive node; the weight of positive, and of negative, nodes that score at least as much;
    the weight of negative ones that score more.
    """
    runs = weights.shape[0]
    order = scores.argsort(-1, descending=True)
    ordered = scores.gather(-1, order)
    step = ordered[:, 1:] != ordered[:, :-1]
    edge = torch.ones_like(step[:, :1]) if step.shape[1] else step.new_ones(step.shape[0], 1)
    first, last = torch.cat([edge, step], 1), torch.cat([step, edge], 1)
    here = weights.gather(1, order.expand(runs, -1))
    found = here * positive.gather(-1, order)
    missed = here - found
    fp = missed.cumsum(1)
    before = torch.where(first, fp - missed, -torch.inf).cummax(1).values
    return found, _until_tie_ends(found.cumsum(1), last), _until_tie_ends(fp, last), before


def _until_tie_ends(rising: Tensor, last: Tensor) -> Tensor:
    """The value of rising sums at the last of the nodes with an equal score."""
    return torch.where(last, rising, torch.inf).flip(1).cummin(1).values.flip(1)


def bootstrap(
    metric: WeightedMetric,
    labels: Tensor,
    outputs: Sequence[Tensor],
    *,
    replicates: int = _REPLICATES,
    seed: int = 0,
) -> Tensor:
    """The deviations of a metric under resampling of the nodes, float64 [len(outputs), replicates].

    All outputs see the same samples, so that differences between rows are paired. Of more than 10,000 nodes a
    random sample of 10,000 is resampled, and deviations shrink by the root of the ratio, as the standard
    error of a mean over nodes does.

    Parameters
    ----------
    metric : function of this module
    labels : Tensor, shape [T] or [T, L]
    outputs : sequence of Tensor, shape [T] or [T, L]
        What ``metric`` takes beside the labels, one for each method.
    replicates, seed : int

    Examples
    --------
    >>> labels, said = torch.arange(100) % 2, torch.arange(100) % 3 % 2
    >>> bootstrap(accuracy, labels, [said, labels]).std(1).numpy().round(2)
    array([0.05, 0.  ])
    """
    generator = torch.Generator().manual_seed(seed)
    total = labels.shape[0]
    size = min(total, MOST_RESAMPLED)
    if size < total:
        chosen = torch.randperm(total, generator=generator)[:size]
        labels, outputs = labels[chosen], [each[chosen] for each in outputs]
    rows = max(1, _AT_A_TIME // size)
    found = []
    for begin in range(0, replicates, rows):
        count = min(rows, replicates - begin)
        drawn = torch.randint(size, (count, size), generator=generator)
        weights = torch.zeros(count, size, dtype=torch.float64)
        weights.scatter_add_(1, drawn, torch.ones(1, 1, dtype=torch.float64).expand(count, size))
        found.append(torch.stack([metric(labels[None], each[None], weights) for each in outputs]))
    once = torch.ones(1, size, dtype=torch.float64)
    centre = torch.stack([metric(labels[None], each[None], once) for each in outputs])
    shrink: float = (size / total) ** 0.5
    return (torch.cat(found, 1) - centre) * shrink
