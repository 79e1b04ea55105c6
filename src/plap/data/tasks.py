"""What is to be predicted for each node: one class, or several labels. A task is one class and one line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from plap.data.metrics import METRICS, Interval, Metric, accuracy_interval
from plap.errors import InputError
from plap.split_masks import SplitLike

ClassNames = tuple[Any, ...]
_SEPARATOR = "; "


@dataclass(frozen=True)
class Task(ABC):
    """Everything that depends on the kind of label: loss, scores, output width, decoding, known labels.

    Logits and probabilities have shape [..., T, L] for T nodes, labels [..., T] or [..., T, L]; leading axes
    are runs that are trained together.

    Parameters
    ----------
    class_names : tuple
        One name per class (or label), in the order of a model's outputs.

    Examples
    --------
    >>> task = Task.of(torch.tensor([0, 2, -1]))
    >>> task.name, task.num_outputs, task.known(torch.tensor([0, 2, -1])).tolist()
    ('multiclass', 3, [True, True, False])
    """

    class_names: ClassNames

    name: ClassVar[str]
    """Its key in :data:`TASKS` and in files."""
    headline: ClassVar[str]
    """Name of the metric that is reported first and that decides when training stops."""
    one_class_per_node: ClassVar[bool]
    """Whether a prediction is right or wrong: what a confusion matrix or label propagation needs."""

    @staticmethod
    def of(y: Tensor, class_names: ClassNames = ()) -> Task:
        """The task of labels ``y``; classes without a name are called by their numbers.

        Parameters
        ----------
        y : Tensor
            Integers [N], -1 where unknown; or floats 0 and 1 [N, L], a row of NaN where unknown.
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
        return METRICS[self.headline]

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

    @abstractmethod
    def hits(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Two numbers per node, float64 [..., T]: the headline metric is the ratio of their sums."""

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

    @abstractmethod
    def correct(self, labels: Tensor, probabilities: Tensor) -> Tensor | None:
        """Boolean [T]: which predictions are right; None where a prediction is not just right or wrong."""

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
        >>> Multiclass.of_width(2).tally(torch.tensor([[9.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 1]))[1:]
        tensor([2., 1., 2.], dtype=torch.float64)
        """
        loss = self.losses(logits, labels).double().sum()
        right, possible = self.hits(logits, labels)
        return torch.stack([loss, torch.full_like(loss, labels.shape[0]), right.sum(), possible.sum()])

    def mean_loss_and_score(self, sums: Tensor) -> tuple[float, float]:
        """Mean loss and headline metric of what :meth:`tally` added up."""
        return float(sums[0] / sums[1]), float(self.score(sums[2], sums[3]))

    def scores(self, labels: Tensor, probabilities: Tensor) -> dict[str, float]:
        """Every metric of this task that is defined here, by name, the headline first."""
        predictions = self.decode(probabilities)
        mine = [metric for metric in METRICS.values() if self.name in metric.tasks]
        return {
            metric.name: metric.function(
                labels, predictions if metric.takes == "predictions" else probabilities
            )
            for metric in sorted(mine, key=lambda metric: metric.name != self.headline)
            if metric.defined(labels, probabilities)
        }

    def interval(self, labels: Tensor, probabilities: Tensor) -> Interval | None:
        """95 % confidence interval of the headline metric, where there is one."""
        right = self.correct(labels, probabilities)
        return None if right is None else accuracy_interval(int(right.sum()), right.shape[0])

    @classmethod
    def of_width(cls, num_outputs: int) -> Task:
        """The task whose classes are called by their numbers."""
        return cls(numbered(num_outputs))


class Multiclass(Task):
    """One class per node: y is int64 [N], -1 where unknown."""

    name = "multiclass"
    headline = "accuracy"
    one_class_per_node = True

    @classmethod
    def fits(cls, y: Tensor) -> bool:
        """One integer per node."""
        return y.ndim == 1 and not y.is_floating_point() and y.dtype != torch.bool

    @classmethod
    def count(cls, y: Tensor, least: int = 0) -> int:
        """One more than the largest class."""
        return max(int(y.max()) + 1, least) if y.numel() else least

    @classmethod
    def width(cls, y: Tensor, num_classes: int | None) -> int:
        """At least two, unless ``num_classes`` says otherwise."""
        if num_classes is None:
            return cls.count(y, least=2)
        if cls.count(y) > num_classes:
            raise InputError(f"y has class {cls.count(y) - 1} but num_classes is {num_classes}")
        return num_classes

    @classmethod
    def valid(cls, y: Tensor) -> Tensor:
        """Those that are not negative."""
        return y >= 0

    def known(self, y: Tensor) -> Tensor:
        """Those that are not negative."""
        return y >= 0

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy."""
        if logits.ndim == 2:
            return cross_entropy(logits, labels, reduction="none")
        # PyTorch's kernel wants the classes on the second axis, and would copy a stack of runs for that
        picked = logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        return logits.logsumexp(-1) - picked

    def hits(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Whether the prediction is right, and 1."""
        right = (self.predict(logits) == labels).double()
        return right, torch.ones_like(right)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Softmax."""
        return logits.softmax(-1)

    def predict(self, logits: Tensor) -> Tensor:
        """The class with the largest logit."""
        return logits.argmax(-1)

    def decode(self, probabilities: Tensor) -> Tensor:
        """The most probable class."""
        return probabilities.argmax(-1)

    def words(self, y: Tensor) -> list[str | None]:
        """The name of each node's class."""
        names = [*map(str, self.class_names), None]
        return [names[k] for k in y.clamp(min=-1).tolist()]

    def strata(self, y: Tensor) -> Tensor:
        """The classes."""
        return y

    def class_sizes(self, y: Tensor) -> dict[str, int]:
        """Nodes of each class."""
        sizes = torch.bincount(y[y >= 0].long(), minlength=self.num_outputs).tolist()
        return dict(zip(map(str, self.class_names), sizes, strict=True))

    def correct(self, labels: Tensor, probabilities: Tensor) -> Tensor:
        """Where the most probable class is the true one."""
        return self.decode(probabilities) == labels

    def _recoded(self, y: Tensor, class_names: ClassNames) -> Tensor:
        mine = {str(name): k for k, name in enumerate(self.class_names)}
        numbers = torch.tensor([*(mine.get(str(name), -1) for name in class_names), -1])
        return numbers[y.clamp(min=-1)]


class Multilabel(Task):
    """Any number of labels per node: y is float [N, L] of 0 and 1, a row of NaN where unknown."""

    name = "multilabel"
    headline = "micro_f1"
    one_class_per_node = False

    @classmethod
    def fits(cls, y: Tensor) -> bool:
        """A row of floats per node."""
        return y.ndim == 2 and y.is_floating_point()

    @classmethod
    def count(cls, y: Tensor, least: int = 0) -> int:
        """Columns."""
        return y.shape[1]

    @classmethod
    def width(cls, y: Tensor, num_classes: int | None) -> int:
        """Columns."""
        if num_classes not in (None, y.shape[1]):
            raise InputError(f"num_classes = {num_classes} but y has {y.shape[1]} labels per node")
        return y.shape[1]

    @classmethod
    def valid(cls, y: Tensor) -> Tensor:
        """Rows of nothing but 0 and 1."""
        return ((y == 0) | (y == 1)).all(-1)

    def known(self, y: Tensor) -> Tensor:
        """Rows without NaN."""
        return ~y.isnan().any(-1)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean binary cross-entropy over the labels."""
        return binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").mean(-1)

    def hits(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """2 TP and 2 TP + FP + FN."""
        said, true = self.predict(logits).double(), labels.double()
        return 2 * (said * true).sum(-1), (said + true).sum(-1)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Sigmoid."""
        return logits.sigmoid()

    def predict(self, logits: Tensor) -> Tensor:
        """Labels with a positive logit, 0 and 1."""
        return (logits > 0).float()

    def decode(self, probabilities: Tensor) -> Tensor:
        """Labels with a probability of ½ or more, 0 and 1."""
        return (probabilities >= 0.5).float()

    def words(self, y: Tensor) -> list[str | None]:
        """The names of each node's labels."""
        names = list(map(str, self.class_names))
        unknown = y.isnan().any(-1).tolist()
        return [
            None if missing else _SEPARATOR.join(name for name, yes in zip(names, row, strict=True) if yes)
            for row, missing in zip((y > 0.5).tolist(), unknown, strict=True)
        ]

    def strata(self, y: Tensor) -> Tensor:
        """One group of all known nodes."""
        return torch.where(self.known(y), 0, -1)

    def class_sizes(self, y: Tensor) -> dict[str, int]:
        """Nodes with each label."""
        sizes = y.nan_to_num(0.0).sum(0).long().tolist()
        return dict(zip(map(str, self.class_names), sizes, strict=True))

    def correct(self, labels: Tensor, probabilities: Tensor) -> None:
        """Nothing: some labels of a node may be right and others wrong."""
        return

    def _recoded(self, y: Tensor, class_names: ClassNames) -> Tensor | None:
        columns = {str(name): k for k, name in enumerate(class_names)}
        if not all(str(name) in columns for name in self.class_names):
            return None
        return y[:, [columns[str(name)] for name in self.class_names]]


TASKS: dict[str, type[Task]] = {kind.name: kind for kind in (Multiclass, Multilabel)}
"""All tasks by name."""


def numbered(count: int) -> tuple[str, ...]:
    """Names of classes that have none: their numbers."""
    return tuple(str(k) for k in range(count))


def kind_of(y: Tensor) -> type[Task]:
    """The kind of task that labels ``y`` are of."""
    if isinstance(y, Tensor):
        kind = next((kind for kind in TASKS.values() if kind.fits(y)), None)
        if kind is not None:
            return kind
    raise InputError("y must hold integer classes [N], or floats 0 and 1 [N, L] for several labels per node")


def training_task(
    y: Tensor, splits: Sequence[SplitLike], num_nodes: int, num_classes: int | None = None
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
    """
    if not isinstance(y, Tensor) or y.ndim == 0 or y.shape[0] != num_nodes:
        raise InputError(f"y must be a tensor of shape [{num_nodes}] or [{num_nodes}, L]")
    kind = kind_of(y)
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
    return kind.of_width(kind.width(y[seen], num_classes))
