"""A model beside its rivals: who was right how often, and whether that is a difference."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import binomtest
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.metrics import Interval
from plap.data.splits import Split
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

    @classmethod
    def judged(
        cls,
        name: str,
        uses: str,
        data: GraphData,
        split: Split,
        probabilities: Tensor,
        seconds: float,
        fitted: Fitted | None = None,
    ) -> Method:
        """The method with its scores: where the test labels are looked at, and nowhere else."""
        truth, said = data.y[split.test], probabilities[split.test]
        scores, interval = data.task.scores(truth, said), data.task.interval(truth, said)
        return cls(name, uses, probabilities, scores, interval, seconds, fitted)

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
        differ = only_ours + only_theirs
        return differ > 0 and float(binomtest(only_ours, differ).pvalue) < 0.05
