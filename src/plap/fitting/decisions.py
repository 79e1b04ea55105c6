"""What a fit decides by itself: metric, weights of relations, temperature, threshold, prediction sets."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.functional import softplus

from plap.data.dataset import GraphData
from plap.data.sampling import generator
from plap.data.splits import Split
from plap.data.tasks import Multiclass, Regression, Task
from plap.fitting.settings import FitSettings
from plap.nn import PGNN
from plap.training.modules import seeded

_LEAST_FOR_CALIBRATION = 20
"""Validation nodes from which on a temperature is learned."""
_MOST_FOR_CALIBRATION = 20_000
"""Validation nodes that a temperature is learned from at most; of more, a sample."""
_LEAST_POSITIVE = 3
"""Positive validation nodes from which on a threshold is chosen."""
_HOTTEST = 5.0
_INTERVAL = 0.9
"""Coverage of the intervals of numbers, unless the settings name another."""
_RANKING = {
    "average_precision": "f1",
    "roc_auc": "balanced",
    "balanced_accuracy": "balanced",
    "macro_f1": "f1",
}
"""Metrics that ask for a rare class: a threshold is chosen, with the best F1 or balanced accuracy, and
classes of imbalanced data are weighted unless the settings say otherwise."""


def choose_task(data: GraphData, split: Split, settings: FitSettings) -> tuple[Task, tuple[str, ...]]:
    """What is predicted, with the metric that decides; and a note where the data chose that metric."""
    labels = data.y[split.train]
    task: Task = data.task
    if isinstance(task, Regression):
        task = replace(task, loss=settings.loss)
    name, why = (settings.metric, "") if settings.metric else task.default_metric(labels)
    remarks: tuple[str, ...] = (why,) if why else ()
    weight = settings.class_weight
    if weight == "auto":
        weight = None
        if isinstance(task, Multiclass) and name in _RANKING and task.is_imbalanced(labels):
            weight = "balanced"
            remarks += ("All classes count the same in the training loss; --class-weight none changes that.",)
    return task.with_metric(name).learned(labels, weight), remarks


def settle(
    task: Task,
    probabilities: Tensor,
    y: Tensor,
    val: Tensor,
    coverage: float | None = None,
    *,
    weighted: bool = True,
    judged_by: Tensor | None = None,
) -> tuple[Task, Tensor]:
    """Learn from validation labels how probabilities [N, L] become predictions.

    Where the labels of the nodes ``val`` were learned from by some of those who predict, ``judged_by`` has
    the probabilities of the others.

    - One class per node: a temperature that makes probabilities as good as possible by log loss; for two
      classes and a metric that is not accuracy or log loss, the threshold that is best for F1 of the rarer
      class (average precision, macro-F1) or balanced accuracy (balanced accuracy, ROC-AUC); with
      ``coverage``, the probability from which on a class belongs to a node's prediction set (split conformal
      prediction).
      Of two classes that were ``weighted`` in training, probabilities are first divided by these weights, so
      that they are shares of nodes again; predictions stay those of the weighted classes.
    - Numbers: by how much intervals reach to both sides, so that 90 % (or ``coverage``) of them hold the
      true number.

    Returns
    -------
    task, probabilities
        The task with what was learned, and the probabilities as it calibrates them.

    Examples
    --------
    >>> y = torch.tensor([0, 1] * 20)
    >>> sure = torch.where(torch.arange(40)[:, None] < 30, torch.eye(2)[y], torch.eye(2)[1 - y]) * 0.98 + 0.01
    >>> task, less_sure = settle(Task.of(y), sure, y, torch.ones(40, dtype=torch.bool))
    >>> round(float(sure.max()), 2), round(float(less_sure.max()), 2)
    (0.99, 0.8)
    """
    honest = probabilities if judged_by is None else judged_by
    labels, said = y[val], honest[val]
    if isinstance(task, Regression):
        wanted = coverage or _INTERVAL
        width = _conformal_quantile((labels - task.decode(said)).abs().double(), wanted)
        return replace(task, coverage=wanted, half_width=width), probabilities
    if not isinstance(task, Multiclass):
        return task, probabilities
    if weighted and task.class_weights is not None and task.positive is not None:
        w = task.class_weights
        task = replace(task, prior_shift=math.log(w[task.positive] / w[1 - task.positive]))
        said = task.calibrated(said)
    task = replace(task, temperature=_temperature(labels, said))
    probabilities = task.calibrated(probabilities)
    said = task.calibrated(honest[val])
    if task.prior_shift and task.positive is not None:
        even = task.calibrated(torch.full((1, 2), 0.5))
        task = replace(task, threshold=float(even[0, task.positive]))
    if task.num_outputs == 2 and task.positive is not None and task.metric.name in _RANKING:
        chosen = best_threshold(
            (labels == task.positive).numpy(), said[:, task.positive].numpy(), _RANKING[task.metric.name]
        )
        task = task if chosen is None else replace(task, threshold=chosen)
    if coverage is not None:
        missed = 1 - said.double().gather(1, labels[:, None]).squeeze(1)
        task = replace(task, coverage=coverage, set_threshold=1 - _conformal_quantile(missed, coverage))
    return task, probabilities


def _temperature(labels: Tensor, probabilities: Tensor) -> float:
    """What the logarithms of probabilities are divided by, from 1/5 to 5.

    The log loss of all nodes together has a term (log T)² beside it, which counts as much as one node being
    wrong: without it, a few nodes that are all right would make every probability 1.
    """
    if labels.shape[0] < _LEAST_FOR_CALIBRATION:
        return 1.0
    if labels.shape[0] > _MOST_FOR_CALIBRATION:
        some = np.sort(generator(0).choice(labels.shape[0], _MOST_FOR_CALIBRATION, replace=False))
        labels, probabilities = labels[some], probabilities[some]
    logits = probabilities.double().clamp(min=1e-12).log()

    def loss(log_temperature: float) -> float:
        scaled = logits / math.exp(log_temperature)
        true = scaled.gather(1, labels[:, None]).squeeze(1)
        return float((scaled.logsumexp(1) - true).sum()) + log_temperature**2

    bound = math.log(_HOTTEST)
    found = minimize_scalar(loss, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-3})
    return math.exp(float(found.x))


def best_threshold(positive: np.ndarray, score: np.ndarray, goal: str) -> float | None:
    """The score from which on a node is called positive; None where too few nodes are.

    It lies half-way between two scores, at the maximum of F1 (``goal="f1"``) or balanced accuracy.

    Examples
    --------
    >>> best_threshold(np.array([0, 0, 0, 1, 1, 1]), np.array([0.0, 0.1, 0.2, 0.4, 0.5, 0.6]), "f1")
    0.30000000000000004
    """
    if positive.sum() < _LEAST_POSITIVE or positive.all() or score.min() == score.max():
        return None
    order = np.argsort(-score, kind="stable")
    ranked, hits = score[order].astype(np.float64), positive[order].astype(np.float64)
    tp, fp = hits.cumsum(), (1 - hits).cumsum()
    last = np.append(ranked[1:] != ranked[:-1], True)
    if goal == "f1":
        merit = 2 * tp / (tp + fp + hits.sum())
    else:
        merit = tp / hits.sum() - fp / (hits.size - hits.sum())
    at = int(np.where(last, merit, -np.inf).argmax())
    below = ranked[at + 1] if at + 1 < ranked.size else 0.0
    return float((ranked[at] + below) / 2)


def _conformal_quantile(misfits: Tensor, coverage: float) -> float:
    """The ⌈(n + 1) coverage⌉-th smallest of n misfits, the largest where n is too small for that."""
    rank = min(math.ceil((misfits.shape[0] + 1) * coverage), misfits.shape[0])
    return float(misfits.kthvalue(max(rank, 1)).values)


_EPOCHS, _PATIENCE = 200, 40
_LR, _FACTOR_LR = 0.02, 0.1
_HIDDEN, _P, _MU, _K = 16, 2.0, 0.1, 2
"""Of the small model that weighs relations."""


def weigh_relations(data: GraphData, split: Split, task: Task, settings: FitSettings) -> GraphData:
    """``data`` with its relations weighted by what they say about the labels; itself if it has one relation.

    A small pGNN (p = 2) is trained together with one positive factor per relation, by training labels, and
    stopped by validation labels. The factors, of mean 1, then belong to the edge weights: every model and
    rival of the fit has them.
    """
    if data.relations is None or data.relations.factors is not None:
        return data
    relations = data.relations
    factors = _learned_factors(data, split, task, settings)
    found = {name: round(float(value), 4) for name, value in zip(relations.names, factors, strict=True)}
    return replace(
        data, graph=relations.graph(data.graph, found), relations=replace(relations, factors=found)
    )


def _learned_factors(data: GraphData, split: Split, task: Task, settings: FitSettings) -> Tensor:
    assert data.relations is not None
    with seeded(settings.seed):
        model = PGNN(data.x.shape[1], _HIDDEN, task.num_outputs, p=_P, mu=_MU, K=_K)
        raw = torch.zeros(len(data.relations.names), requires_grad=True)
        optimiser = torch.optim.Adam(
            [
                {"params": model.parameters(), "lr": _LR, "weight_decay": 5e-4},
                {"params": [raw], "lr": _FACTOR_LR},
            ]
        )
        best, kept, since = float("inf"), torch.ones(raw.shape[0]), 0
        for _ in range(min(_EPOCHS, settings.max_epochs)):
            model.train()
            graph = data.graph.with_weight(data.relations.combined(_factors(raw)))
            loss = task.losses(model(data.x, graph)[split.train], data.y[split.train]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            model.eval()
            with torch.no_grad():
                now = _factors(raw)
                logits = model(data.x, data.graph.with_weight(data.relations.combined(now)))[split.val]
                judged = float(task.losses(logits, data.y[split.val]).mean())
            since += 1
            if judged < best:
                best, kept, since = judged, now, 0
            if since >= _PATIENCE:
                break
    return kept


def _factors(raw: Tensor) -> Tensor:
    """Positive factors of mean 1."""
    positive = softplus(raw) + 1e-3
    return positive / positive.mean()
