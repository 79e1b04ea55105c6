"""A model beside its rivals: what they are, who was right how often, and whether that is a difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.stats import binomtest
from torch import Tensor

from plap.checks import check_choice
from plap.data.dataset import GraphData
from plap.data.metrics import Interval, differ
from plap.data.sampling import generator
from plap.data.splits import Split
from plap.data.tasks import Task
from plap.fitting.decisions import settle
from plap.fitting.search import Fitted
from plap.fitting.settings import FitSettings
from plap.label_propagation import PLaplacianLabelPropagation, spread
from plap.models import model_names
from plap.split_masks import BaggedSplit, SplitLike, split_for


@dataclass(frozen=True, eq=False)
class Method:
    """One way to predict, and how well it did on the held-out nodes."""

    name: str
    uses: str
    """"features and edges", "features alone" or "edges alone"."""
    probabilities: Tensor
    """[N, L], of every node."""
    scores: dict[str, float]
    """By the name of the metric; the task's headline comes first."""
    interval: Interval | None
    seconds: float
    fitted: Fitted | None = None
    """None for a method that is not trained."""
    task: Task | None = None
    """How its probabilities become predictions; None: as the data's task says."""

    @classmethod
    def judged(
        cls,
        name: str,
        uses: str,
        data: GraphData,
        split: Split,
        task: Task,
        probabilities: Tensor,
        honest: tuple[Tensor, Tensor],
        seconds: float,
        fitted: Fitted | None = None,
        coverage: float | None = None,
        *,
        weighted: bool = True,
    ) -> Method:
        """The method with its scores: where the test labels are looked at, and nowhere else.

        Temperature, threshold and prediction sets are learned before, from the probabilities and the nodes of
        ``honest``, see :func:`plap.training.ensemble.held_out`; ``weighted`` says whether the method knew of
        the task's weights of classes.
        """
        judged_by, val = honest
        task, probabilities = settle(
            task, probabilities, data.y, val, coverage, weighted=weighted, judged_by=judged_by
        )
        if fitted is not None:
            ensemble = replace(fitted.ensemble, task=task, probabilities=probabilities)
            fitted = replace(fitted, ensemble=ensemble)
        truth, said = data.y[split.test], probabilities[split.test]
        scores, interval = task.scores(truth, said), task.interval(truth, said)
        return cls(name, uses, probabilities, scores, interval, seconds, fitted, task)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended its training."""
        return self.fitted is not None and self.fitted.interrupted


@dataclass(frozen=True, eq=False)
class Comparison:
    """The model first, then its rivals, on one graph and one split."""

    data: GraphData
    split: Split
    settings: FitSettings
    methods: tuple[Method, ...]
    interrupted: bool = False
    remarks: tuple[str, ...] = ()
    """What the fit decided or left out, one sentence each."""
    bags: BaggedSplit | None = None
    """How members divide training and validation nodes, if each does so for itself."""

    @cached_property
    def learned_from(self) -> Tensor:
        """Boolean [N]: the nodes whose labels some member of the model was trained on."""
        return taught(self.fitted, self.bags or self.split)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was changed on the way in, and what the fit decided or left out."""
        return (*self.data.notes, *self.remarks)

    @property
    def task(self) -> Task:
        """What is predicted, with the metric, the threshold and the temperature of the model."""
        return self.model.task or self.data.task

    @property
    def model(self) -> Method:
        """What the fit was for."""
        return self.methods[0]

    @property
    def fitted(self) -> Fitted:
        """The model's configuration, trials and ensemble."""
        assert self.model.fitted is not None
        return self.model.fitted

    def differs(self, rival: Method) -> bool | None:
        """Whether a rival's score differs from the model's, at 5 %.

        Both answered for the same nodes. For accuracy, McNemar's exact test counts how often just one of them
        was right; for any other metric, nodes are resampled for both together. None where there is no test.
        """
        task, other, test = self.task, rival.task or self.data.task, self.split.test
        truth = self.data.y[test]
        if task.metric.name != "accuracy":
            labels, said = task.compared(task.metric, truth, self.model.probabilities[test])
            return differ(
                task.metric, labels, said, other.compared(task.metric, truth, rival.probabilities[test])[1]
            )
        ours = task.correct(truth, self.model.probabilities[test])
        theirs = other.correct(truth, rival.probabilities[test])
        assert ours is not None
        assert theirs is not None
        only_ours, only_theirs = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
        disputed = only_ours + only_theirs
        return disputed > 0 and float(binomtest(only_ours, disputed).pvalue) < 0.05


def taught(fitted: Fitted, split: SplitLike) -> Tensor:
    """Boolean [N]: the nodes that some member of a model was trained on."""
    seeds = {run.config.seed for run in fitted.members}
    return torch.stack([split_for(split, seed).train for seed in seeds]).any(0)


_MOST_COLUMNS = 500
"""Features beyond which boosted trees are left out."""
_LARGE = 200_000
"""Nodes beyond which label propagation takes a few linear steps instead of going to the minimiser, and
boosted trees are fewer, learn from a sample, and answer only for nodes that are scored."""
_MOST_ROWS = 50_000
"""Training nodes, and validation nodes, that boosted trees see of a large graph."""
_WORTH_THREADS = 1_000_000
"""Cells of a training table that are worth several threads."""
_TREES, _FEW_TREES = 200, 100
"""Rounds of boosting at most; trees over all classes on a large graph."""
_MUS = (0.1, 1.0)


@dataclass(frozen=True)
class Rival:
    """A way to predict that needs no training of a network."""

    title: str
    numeric_title: str
    """What it is called for numbers."""
    uses: str
    run: Callable[[GraphData, Split, Task, bool], tuple[Tensor, Tensor]]
    """Probabilities [N, L] of all nodes from the training labels, among which validation labels may choose;
    twice. If the last argument is true, the first ones are from the validation labels too, as a bagged
    model learns from both."""
    refuses: Callable[[GraphData, Task], str | None] = lambda data, task: None
    """Why it cannot be run here: None if it can, empty if that goes without saying."""
    weighted: bool = False
    """Whether weights of classes are in what it learns."""

    def name(self, task: Task) -> str:
        """What reports call it."""
        return self.numeric_title if task.numeric else self.title


def commonest(data: GraphData, split: SplitLike, task: Task, refit: bool) -> tuple[Tensor, Tensor]:
    """The shares of the classes among the training labels, or their mean, for every node."""
    shares = _shares(data, split.train, task)
    return _shares(data, split.train | split.val, task) if refit else shares, shares


def _shares(data: GraphData, nodes: Tensor, task: Task) -> Tensor:
    labels = data.y[nodes]
    if task.numeric:
        row = labels.double().mean()[None].float()
    elif labels.ndim == 2:
        row = labels.mean(0)
    else:
        row = torch.bincount(labels, minlength=task.num_outputs).float() / labels.shape[0]
    return row.expand(data.graph.num_nodes, -1)


def boosted(data: GraphData, split: Split, task: Task, refit: bool) -> tuple[Tensor, Tensor]:
    """Histogram gradient boosting of scikit-learn on the features alone.

    At most 200 rounds, fewer where the validation loss does not improve; weights of classes as in the fit. To
    ``refit`` is to boost for as many rounds with the validation nodes too. On more than 200,000 nodes, 100
    trees over all classes learn from 50,000 training nodes (and as many validation nodes) and answer for
    validation and test nodes; the others get the shares of the classes (or the mean).
    """
    from sklearn.ensemble import (  # noqa: PLC0415  (slow to import)
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # noqa: PLC0415

    x = data.x.to_dense().numpy()
    large = data.graph.num_nodes > _LARGE
    train, val = (_nodes(mask, sampled=large) for mask in (split.train, split.val))
    asked = _nodes(split.val | split.test) if large else np.arange(x.shape[0])
    labels = data.y.numpy()
    kind = HistGradientBoostingRegressor if task.numeric else HistGradientBoostingClassifier
    rounds = max(10, _FEW_TREES // task.num_outputs) if large else _TREES
    rate = 0.3 if large else 0.1
    seen = np.isin(labels[val], labels[train]) | task.numeric

    def answers(rows: np.ndarray, rounds: int, **early: Any) -> tuple[Tensor, int]:
        model = kind(
            max_iter=rounds, learning_rate=rate, early_stopping=bool(early), n_iter_no_change=15,
            random_state=0,
        )  # fmt: skip
        weights = task.weights(data.y[rows])
        model.fit(x[rows], labels[rows], sample_weight=None if weights is None else weights.numpy(), **early)
        said = model.predict(x[asked])[:, None] if task.numeric else model.predict_proba(x[asked])
        every = (
            _shares(data, split.train, task).clone()
            if large
            else torch.zeros(x.shape[0], task.num_outputs, dtype=torch.float32)
        )
        classes = np.zeros(1, dtype=np.int64) if task.numeric else model.classes_
        every[asked] = 0
        every[asked[:, None], classes] = torch.from_numpy(said).float()
        return every, model.n_iter_

    # Threads that wait for one another at every node of a tree cost more than they bring where rows are few.
    with threadpool_limits(torch.get_num_threads() if train.size * x.shape[1] > _WORTH_THREADS else 1):
        honest, best = answers(train, rounds, X_val=x[val][seen], y_val=labels[val][seen])
        if not refit:
            return honest, honest
        return answers(np.union1d(train, val), best)[0], honest


def _nodes(mask: Tensor, *, sampled: bool = False) -> np.ndarray:
    """The nodes of a mask, ascending; of many, a sample."""
    nodes: np.ndarray = mask.nonzero().squeeze(1).numpy()
    if not sampled or nodes.size <= _MOST_ROWS:
        return nodes
    return np.sort(generator(0).choice(nodes, _MOST_ROWS, replace=False))


def _boosting_refuses(data: GraphData, task: Task) -> str | None:
    if not (task.one_class_per_node or task.numeric):
        return ""
    columns = data.x.shape[1]
    if columns > _MOST_COLUMNS:
        return f"Gradient boosting was left out: there are {columns} features, more than {_MOST_COLUMNS}."
    return None


def propagated(data: GraphData, split: SplitLike, task: Task, refit: bool) -> tuple[Tensor, Tensor]:
    """Label propagation from the training labels, its p and mu chosen by the validation labels.

    To ``refit`` is to propagate both; p and mu are then chosen by the training labels as well, from those of
    validation. On more than 200,000 nodes, and for numbers, p is 2.
    """
    large = data.graph.num_nodes > _LARGE
    linear = large or task.numeric
    settings = [(p, mu) for p in ((2.0,) if linear else (1.5, 2.0)) for mu in _MUS]

    def spread_from(nodes: Tensor, settings: Sequence[tuple[float, float]]) -> list[Tensor]:
        known = torch.where(nodes, data.y, torch.nan if task.numeric else -1)
        if not linear:
            return [_minimiser(data, known, task, p, mu) for p, mu in settings]
        classes = None if task.numeric else task.num_outputs
        found = spread(data.graph, known, [mu for _, mu in settings], num_classes=classes, few_steps=large)
        return [said.reshape(said.shape[0], -1).float() for said in found]

    def merits(found: Sequence[Tensor], nodes: Tensor) -> np.ndarray:
        return np.array([task.merit(data.y[nodes], said[nodes]) for said in found])

    found = spread_from(split.train, settings)
    merit = merits(found, split.val)
    if not refit:
        return found[merit.argmax()], found[merit.argmax()]
    best = (merit + merits(spread_from(split.val, settings), split.train)).argmax()
    (again,) = spread_from(split.train | split.val, settings[best : best + 1])
    return again, found[best]


def _minimiser(data: GraphData, known: Tensor, task: Task, p: float, mu: float) -> Tensor:
    labels = torch.where(known >= 0, known.double(), torch.nan)  # not -1, which beside 1 alone is a class
    model = PLaplacianLabelPropagation(p=p, mu=mu, tol=1e-3, max_iter=200).fit(data.graph, labels)
    some = torch.from_numpy(model.probabilities_).float()
    every = torch.zeros(some.shape[0], task.num_outputs, dtype=some.dtype)
    every[:, torch.as_tensor(model.classes_)] = some
    return every


def _propagation_refuses(data: GraphData, task: Task) -> str | None:
    reachable = (task.one_class_per_node or task.numeric) and data.graph_of_node is None
    return None if reachable else ""


RIVALS: dict[str, Rival] = {
    "majority": Rival("majority class", "mean", "labels alone", commonest),
    "boosting": Rival(
        "gradient boosting", "gradient boosting", "features alone", boosted, _boosting_refuses, weighted=True
    ),
    "labels": Rival(
        "label propagation", "label propagation", "edges alone", propagated, _propagation_refuses
    ),
}
"""By the names that ``FitSettings.rivals`` has for them; every other rival is a name of a model."""


def check_rivals(names: Sequence[str]) -> None:
    """Refuse a name that is neither of a rival nor of a model."""
    for name in names:
        if name not in RIVALS:
            check_choice("rivals", name, (*RIVALS, *model_names()))
