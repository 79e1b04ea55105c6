"""A model beside its rivals: who was right how often, and whether that is a difference."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scipy.stats import binomtest
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.metrics import Interval, differ
from plap.data.splits import Split
from plap.data.tasks import Task
from plap.fitting.decisions import settle
from plap.fitting.search import Fitted
from plap.fitting.settings import FitSettings


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
        seconds: float,
        fitted: Fitted | None = None,
        coverage: float | None = None,
        *,
        weighted: bool = True,
    ) -> Method:
        """The method with its scores: where the test labels are looked at, and nowhere else.

        Temperature, threshold and prediction sets are learned from the validation labels before; ``weighted``
        says whether the method knew of the task's weights of classes.
        """
        task, probabilities = settle(task, probabilities, data.y, split.val, coverage, weighted=weighted)
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
