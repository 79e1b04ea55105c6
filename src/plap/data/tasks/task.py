"""What is to be predicted of each node, and everything that depends on it: the class that all tasks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from plap.data.metrics import METRICS, Interval, Metric, confidence_interval, find_metric
from plap.errors import InputError
from plap.split_masks import SplitLike

ClassNames = tuple[Any, ...]
ClassWeight = str | Mapping[Any, float] | None
"""None, "balanced", or the weights of some classes by name."""


@dataclass(frozen=True)
class Task(ABC):
    """Everything that depends on the kind of label: loss, scores, output width, decoding, known labels.

    Logits and probabilities have shape [..., T, L] for T nodes, labels [..., T] or [..., T, L]; leading axes
    are runs that are trained together.

    Parameters
    ----------
    class_names : tuple
        One name per class (or label), in the order of a model's outputs.
    metric_name : str
        The metric that decides; by default ``headline``. See :meth:`with_metric`.

    Examples
    --------
    >>> task = Task.of(torch.tensor([0, 2, -1]))
    >>> task.name, task.num_outputs, task.known(torch.tensor([0, 2, -1])).tolist()
    ('multiclass', 3, [True, True, False])
    """

    class_names: ClassNames
    metric_name: str = ""

    name: ClassVar[str]
    """Its key in :data:`TASKS` and in files."""
    headline: ClassVar[str]
    """Name of the metric that is reported first and that decides when training stops, unless another one was
    chosen. It is a ratio of sums over nodes, see :meth:`hits`, or has a form for many runs."""
    one_class_per_node: ClassVar[bool] = False
    """Whether a prediction is right or wrong: what a confusion matrix needs."""
    numeric: ClassVar[bool] = False
    """Whether labels are numbers instead of classes; "probabilities" are then predictions [..., T, 1]."""

    @staticmethod
    def of(y: Tensor, class_names: ClassNames = ()) -> Task:
        """The task of labels ``y``; classes without a name are called by their numbers.

        Parameters
        ----------
        y : Tensor
            Integers [N], -1 where unknown; floats 0 and 1 [N, L], a row of NaN where unknown; or floats [N],
            NaN where unknown, to predict a number.
        class_names : tuple
            Names; where these are just the numbers 0, 1, …, they go as far as ``y`` needs.
        """
        kind = kind_of(y)
        count = kind.count(y, least=len(class_names))
        if class_names == numbered(len(class_names)):
            return kind.of_width(count)
        if count != len(class_names):
            raise InputError(f"y has {count} classes, but there are {len(class_names)} class names")
        return kind(class_names)

    @property
    def num_outputs(self) -> int:
        """L, the width of a model's output."""
        return len(self.class_names)

    @property
    def metric(self) -> Metric:
        """The headline metric."""
        return METRICS[self.metric_name or self.headline]

    def with_metric(self, name: str) -> Self:
        """The same task, decided by another metric.

        Examples
        --------
        >>> Task.of(torch.tensor([0, 1])).with_metric("roc_auc").metric.label
        'ROC-AUC'
        """
        return replace(self, metric_name=find_metric(name, self.name).name)

    def default_metric(self, labels: Tensor) -> tuple[str, str]:
        """The metric that fits these training labels, and a sentence on why if it is not ``headline``."""
        return self.headline, ""

    def learned(self, labels: Tensor, class_weight: ClassWeight = None) -> Self:
        """The task with what training labels [T] decide: weights of classes, a unit for numbers."""
        if class_weight is not None:
            raise InputError(f"class weights are for data with one class per node, not for {self.name} data")
        return self

    def weights(self, labels: Tensor) -> Tensor | None:
        """The weight of each node in the training loss, shaped as ``labels``; None if all count alike."""
        return None

    def settings(self) -> dict[str, Any]:
        """All fields but the names of the classes, for JSON."""
        return {
            entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "class_names"
        }

    @classmethod
    def from_settings(cls, class_names: ClassNames, settings: Mapping[str, Any]) -> Self:
        """The task that :meth:`settings` described; fields that are missing have their defaults."""
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        strange = set(values) - {entry.name for entry in fields(cls)}
        if strange:
            raise InputError(f"a {cls.name} task has no field {sorted(strange)[0]!r}")
        task = cls(class_names, **values)
        if task.metric_name:
            find_metric(task.metric_name, cls.name)
        return task

    @classmethod
    @abstractmethod
    def fits(cls, y: Tensor) -> bool:
        """Whether ``y`` has the type and the shape of such labels."""

    @classmethod
    @abstractmethod
    def count(cls, y: Tensor, least: int = 0) -> int:
        """Number of classes (or labels) in ``y``; at least ``least`` where a class may have no node."""

    @classmethod
    @abstractmethod
    def width(cls, y: Tensor, num_classes: int | None) -> int:
        """Outputs of a model trained on ``y``: ``num_classes``, checked, or as many as ``y`` needs."""

    @classmethod
    @abstractmethod
    def valid(cls, y: Tensor) -> Tensor:
        """Boolean [T]: nodes whose labels a loss can be computed for."""

    @abstractmethod
    def known(self, y: Tensor) -> Tensor:
        """Boolean [T]: nodes whose labels are known."""

    @abstractmethod
    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each node [..., T]."""

    def hits(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Two numbers per node, float64 [..., T]: the metric ``headline`` is the ratio of their sums."""
        raise NotImplementedError

    @property
    def decomposes(self) -> bool:
        """Whether the metric is a ratio of sums over nodes, so that the sums of pieces can be added up."""
        return self.metric.name == self.headline

    @abstractmethod
    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities of the classes (or labels)."""

    @abstractmethod
    def predict(self, logits: Tensor) -> Tensor:
        """Predicted labels, in the form of ``y``."""

    @abstractmethod
    def decode(self, probabilities: Tensor) -> Tensor:
        """Predicted labels, in the form of ``y``, from (mean) probabilities."""

    @abstractmethod
    def words(self, y: Tensor) -> list[str | None]:
        """Labels by name, None where unknown."""

    @abstractmethod
    def strata(self, y: Tensor) -> Tensor:
        """int64 [T], -1 where unknown: the groups that a random split shares out in equal proportion."""

    @abstractmethod
    def class_sizes(self, y: Tensor) -> dict[str, int]:
        """Number of nodes per class."""

    def correct(self, labels: Tensor, probabilities: Tensor) -> Tensor | None:
        """Boolean [T]: which predictions are right; None where a prediction is not just right or wrong."""
        return None

    def calibrated(self, probabilities: Tensor) -> Tensor:
        """Mean probabilities of an ensemble, corrected by what was learned from validation labels."""
        return probabilities

    @abstractmethod
    def _recoded(self, y: Tensor, class_names: ClassNames) -> Tensor | None: ...

    def recoded(self, y: Tensor, other: Task) -> Tensor | None:
        """Labels of ``other`` as this task numbers its classes, matched by name.

        A class that is missing here is unknown. None if the labels are of another kind, or lack a column.
        """
        return self._recoded(y, other.class_names) if other.name == self.name else None

    def score(self, right: Tensor, possible: Tensor) -> Tensor:
        """The headline metric of the sums of what :meth:`hits` gave; 1 where nothing was possible."""
        return torch.where(possible > 0, right / torch.where(possible > 0, possible, 1), 1.0)

    def tally(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Four sums over nodes, float64 [4]: losses, nodes, and the two of :meth:`hits`.

        The sum of the tallies of pieces is the tally of the whole.

        Examples
        --------
        >>> logits, labels = torch.tensor([[9.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 1])
        >>> Task.of(labels).tally(logits, labels)[1:]
        tensor([2., 1., 2.], dtype=torch.float64)
        """
        loss = self.losses(logits, labels).double().sum()
        right, possible = self.hits(logits, labels)
        return torch.stack([loss, torch.full_like(loss, labels.shape[0]), right.sum(), possible.sum()])

    def mean_loss_and_score(self, sums: Tensor) -> tuple[float, float]:
        """Mean loss and headline metric of what :meth:`tally` added up."""
        return float(sums[0] / sums[1]), float(self.score(sums[2], sums[3]))

    def merits(self, logits: Tensor, labels: Tensor, present: Tensor) -> Tensor:
        """How good R runs are, float64 [R], by their logits [R, T, L] at the nodes ``present`` [R, T].

        It is the metric, negated where lower is better, so that higher always is; 0 where it has no value.
        """
        if self.decomposes:
            right, possible = self.hits(logits, labels)
            return self.score((right * present).sum(1), (possible * present).sum(1))
        metric = self.metric
        labels, outputs = self.compared(metric, labels, self.probabilities(logits.double()))
        if metric.weighted is not None:
            values = metric.weighted(labels, outputs, present)
        else:
            values = torch.tensor(
                [_or_nan(metric, *(part[k][present[k] > 0] for part in (labels, outputs)))
                 for k in range(present.shape[0])], dtype=torch.float64,
            )  # fmt: skip
        return (metric.sign * values).nan_to_num(nan=0.0)

    def compared(self, metric: Metric, labels: Tensor, probabilities: Tensor) -> tuple[Tensor, Tensor]:
        """Labels and outputs [..., T] or [..., T, L] as ``metric.function`` takes them."""
        return labels, self.decode(probabilities) if metric.takes == "predictions" else probabilities

    def scores(self, labels: Tensor, probabilities: Tensor) -> dict[str, float]:
        """Every metric of this task that is defined here, by name, the headline first."""
        mine = [metric for metric in METRICS.values() if self.name in metric.tasks]
        found = {}
        for metric in sorted(mine, key=lambda metric: metric.name != self.metric.name):
            truth, said = self.compared(metric, labels, probabilities)
            if metric.defined(truth, said):
                found[metric.name] = metric.function(truth, said)
        return found

    def interval(self, labels: Tensor, probabilities: Tensor) -> Interval | None:
        """95 % confidence interval of the headline metric, where there is one."""
        return confidence_interval(self.metric, *self.compared(self.metric, labels, probabilities))

    def merit(self, labels: Tensor, probabilities: Tensor) -> float:
        """The headline metric, negated where lower is better; 0 where it has no value."""
        truth, said = self.compared(self.metric, labels, probabilities)
        if not self.metric.defined(truth, said):
            return 0.0
        return self.metric.sign * self.metric.function(truth, said)

    @classmethod
    def of_width(cls, num_outputs: int) -> Task:
        """The task whose classes are called by their numbers."""
        return cls(numbered(num_outputs))


def numbered(count: int) -> tuple[str, ...]:
    """Names of classes that have none: their numbers."""
    return tuple(str(k) for k in range(count))


def _or_nan(metric: Metric, labels: Tensor, outputs: Tensor) -> float:
    return metric.function(labels, outputs) if metric.defined(labels, outputs) else torch.nan


TASKS: dict[str, type[Task]] = {}
"""All tasks by name; the package fills it in."""


def kind_of(y: Tensor) -> type[Task]:
    """The kind of task that labels ``y`` are of."""
    if isinstance(y, Tensor):
        kind = next((kind for kind in TASKS.values() if kind.fits(y)), None)
        if kind is not None:
            return kind
    raise InputError(
        "y must hold integer classes [N], floats 0 and 1 [N, L] for several labels per node, "
        "or floats [N] for numbers"
    )


def training_task(
    y: Tensor,
    splits: Sequence[SplitLike],
    num_nodes: int,
    num_classes: int | None = None,
    task: Task | None = None,
) -> Task:
    """The task of training on ``y``; refuses labels and masks that cannot be trained on, naming the node.

    Parameters
    ----------
    y : Tensor
        As in :meth:`Task.of`, one row per node; read at training and validation nodes only.
    splits : sequence of objects with boolean masks ``train`` and ``val`` [N]
    num_nodes : int
    num_classes : int, optional
        By default as many as the labels at training and validation nodes need.
    task : Task, optional
        In place of ``num_classes``: what to predict, and the metric that decides.
    """
    if not isinstance(y, Tensor) or y.ndim == 0 or y.shape[0] != num_nodes:
        raise InputError(f"y must be a tensor of shape [{num_nodes}] or [{num_nodes}, L]")
    kind = kind_of(y)
    if task is not None and not isinstance(task, kind):
        raise InputError(f"y holds labels for {kind.name} data, but the task is {task.name}")
    learned = torch.zeros(num_nodes, dtype=torch.bool, device=y.device)
    seen = torch.zeros(num_nodes, dtype=torch.bool, device=y.device)
    for split in {id(split): split for split in splits}.values():
        for name, mask in (("train", split.train), ("val", split.val)):
            if mask.shape != (num_nodes,) or mask.dtype != torch.bool:
                raise InputError(f"split.{name} must be a boolean tensor of shape [{num_nodes}]")
            if not bool(mask.any()):
                raise InputError(f"split.{name} has no node")
            valid = kind.valid(y[mask])
            if not bool(valid.all()):
                node = int(mask.nonzero()[(~valid).nonzero()[0, 0], 0])
                raise InputError(f"node {node} is in split.{name} but y has no label for it")
            seen |= mask
        learned |= split.train
    width = kind.width(y[seen], num_classes if task is None else task.num_outputs)
    return (task or kind.of_width(width)).learned(y[learned])
