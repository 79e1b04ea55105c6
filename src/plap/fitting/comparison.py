"""The model and its rivals on one graph and one split."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.metrics import Interval, accuracy
from plap.data.splits import Split
from plap.errors import InputError
from plap.fitting.models import Fitted, NothingTrainedError, fit_model
from plap.fitting.settings import FitSettings, Rival
from plap.label_propagation import PLaplacianLabelPropagation
from plap.models import find_model
from plap.training.loop import ProgressCallback

Announce = Callable[[str], ProgressCallback | None]
"""Told the name of a phase that begins; gives what to tell its progress to."""

Train = Callable[[str, ProgressCallback | None], Fitted]
"""Trains the model of this name."""

_LABEL_PROPAGATION = ("label propagation", "edges alone")
"""Name, and what it uses; a model of :mod:`plap.models` says both itself."""


@dataclass(frozen=True, eq=False)
class Method:
    """One way to predict, and how well it did on the held-out nodes."""

    key: str
    name: str
    uses: str
    probabilities: Tensor
    """[N, L], of every node."""
    scores: dict[str, float]
    """By the name of the metric; the task's headline comes first."""
    interval: Interval | None
    seconds: float
    fitted: Fitted | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """The model first, then its rivals."""

    data: GraphData
    split: Split
    settings: FitSettings
    methods: tuple[Method, ...]
    interrupted: bool = False

    def differs(self, rival: Method) -> bool | None:
        """Whether a rival's share of right answers differs from the model's, by McNemar's exact test at 5 %.

        Both answered for the same nodes, so what counts is how often just one of them was right. None for
        several labels per node, where there is no such test.
        """
        task, test = self.data.task, self.split.test
        truth = self.data.y[test]
        ours, theirs = (task.correct(truth, m.probabilities[test]) for m in (self.model, rival))
        if ours is None or theirs is None:
            return None
        only_ours, only_theirs = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
        return only_ours + only_theirs > 0 and _two_sided(only_ours, only_theirs) < 0.05

    @property
    def model(self) -> Method:
        """What the fit was for."""
        return self.methods[0]


def compare(
    data: GraphData,
    split: Split,
    settings: FitSettings,
    announce: Announce | None = None,
    train: Train | None = None,
) -> Comparison:
    """Tune and train the model and its rivals; the test labels are looked at when each is finished.

    Label propagation is left out where a node may have several labels, and where whole graphs are held out,
    which no label can reach. After Ctrl-C the best model so far is kept; a rival that was not finished, and
    all after it, are left out.
    """
    announce = announce or (lambda _: None)
    train = train or partial(_fit, data, split, settings)
    methods = [_trained("pgnn", data, split, train, announce)]
    interrupted = _was_interrupted(methods[0])
    for rival in settings.rivals:
        if interrupted:
            break
        if rival == "labels" and not (data.task.one_class_per_node and data.graph_of_node is None):
            continue
        try:
            method = (
                _propagated(data, split, announce)
                if rival == "labels"
                else _trained(rival, data, split, train, announce)
            )
        except (KeyboardInterrupt, NothingTrainedError):
            interrupted = True
        else:
            interrupted = _was_interrupted(method)
            methods += [] if interrupted else [method]
    return Comparison(data, split, settings, tuple(methods), interrupted)


def _was_interrupted(method: Method) -> bool:
    return method.fitted is not None and method.fitted.interrupted


def _fit(
    data: GraphData, split: Split, settings: FitSettings, key: str, progress: ProgressCallback | None
) -> Fitted:
    """Search and train on the whole graph."""
    return fit_model(
        data.graph, data.x, data.y, split, settings.base(key),
        fixed=settings.fixed if key == "pgnn" else {},
        search=settings.search, budget=settings.budget, seeds=settings.seeds,
        num_classes=data.num_classes,
        memory_budget=settings.memory_budget, progress=progress,
    )  # fmt: skip


def _trained(key: Rival | str, data: GraphData, split: Split, train: Train, announce: Announce) -> Method:
    begin = time.perf_counter()
    fitted = train(key, announce(_name_and_uses(key)[0]))
    return _scored(key, data, split, fitted.ensemble.probabilities, time.perf_counter() - begin, fitted)


def _propagated(data: GraphData, split: Split, announce: Announce) -> Method:
    """Label propagation from the training labels, its p and mu chosen by the validation labels."""
    announce(_LABEL_PROPAGATION[0])
    begin = time.perf_counter()
    known = torch.where(split.train, data.y, -1)
    best: tuple[float, Tensor] | None = None
    for p in (1.5, 2.0):
        for mu in (0.1, 1.0):
            model = PLaplacianLabelPropagation(p=p, mu=mu, tol=1e-3, max_iter=200).fit(data.graph, known)
            some = torch.from_numpy(model.probabilities_).float()
            every = torch.zeros(some.shape[0], data.num_classes)
            every[:, torch.as_tensor(model.classes_)] = some
            right = accuracy(data.y[split.val], every[split.val].argmax(1))
            if best is None or right > best[0]:
                best = right, every
    if best is None:
        raise InputError("label propagation had nothing to try")
    return _scored("labels", data, split, best[1], time.perf_counter() - begin)


def _name_and_uses(key: str) -> tuple[str, str]:
    if key == "labels":
        return _LABEL_PROPAGATION
    kind = find_model(key)
    return kind.title_or_name, kind.uses


def _two_sided(a: int, b: int) -> float:
    """Probability of a split at least as uneven as a : b if both sides are equally likely."""
    from scipy.stats import binomtest  # noqa: PLC0415

    return float(binomtest(a, a + b).pvalue)


def _scored(
    key: str,
    data: GraphData,
    split: Split,
    probabilities: Tensor,
    seconds: float,
    fitted: Fitted | None = None,
) -> Method:
    """Where the test labels are looked at, and nowhere else."""
    truth, said = data.y[split.test], probabilities[split.test]
    scores, interval = data.task.scores(truth, said), data.task.interval(truth, said)
    return Method(key, *_name_and_uses(key), probabilities, scores, interval, seconds, fitted)
