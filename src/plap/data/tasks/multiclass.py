"""One class per node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from plap.data.labels import rarer_class
from plap.data.metrics import METRICS, Metric
from plap.data.tasks.task import ClassNames, ClassWeight, Task
from plap.errors import InputError

_IMBALANCED = 0.8
"""Share of the largest class from which on accuracy says little."""
_RARE = 0.1
"""Share of the rarer of two classes below which finding it is what matters."""


@dataclass(frozen=True)
class Multiclass(Task):
    """One class per node: y is int64 [N], -1 where unknown.

    Examples
    --------
    >>> labels = torch.tensor([0] * 98 + [1] * 2)
    >>> task = Multiclass(("good", "bad")).learned(labels, "balanced")
    >>> task.default_metric(labels)[0], task.positive, [round(w, 3) for w in task.class_weights]
    ('average_precision', 1, [0.51, 25.0])
    """

    class_weights: tuple[float, ...] | None = None
    """Of each class in the training loss, 1 on average over the training nodes."""
    positive: int | None = None
    """Of two classes, the rarer one among the training labels."""
    threshold: float | None = None
    """Probability of ``positive`` from which on it is predicted; None: where it is the larger one."""
    prior_shift: float = 0.0
    """By how much weights of classes raised the log odds of ``positive``; taken back before all else."""
    temperature: float = 1.0
    """Logarithms of mean probabilities are divided by it."""
    coverage: float | None = None
    """Share of nodes whose prediction set is to hold the true class; None: there are no such sets."""
    set_threshold: float | None = None
    """Probability from which on a class is in a node's prediction set."""

    name = "multiclass"
    headline = "accuracy"
    one_class_per_node = True

    def default_metric(self, labels: Tensor) -> tuple[str, str]:
        """Accuracy, unless one class has 80 % of the labels or more.

        Then it is balanced accuracy; or average precision if there are two classes, one of less than 10 %.
        """
        if not self.is_imbalanced(labels):
            return self.headline, ""
        shares = self._shares(labels)
        two = self.num_outputs == 2
        name = "average_precision" if two and shares.min() < _RARE else "balanced_accuracy"
        which = shares.argmin() if two else shares.argmax()
        said = f"{100 * float(shares[which]):.1f} % of the training labels are {self.class_names[int(which)]}"
        return name, (
            f"Classes are imbalanced ({said}), so {METRICS[name].label} decides; "
            "--metric accuracy changes that."
        )

    def is_imbalanced(self, labels: Tensor) -> bool:
        """Whether one class has 80 % of the known labels or more."""
        return self.num_outputs > 1 and bool(self._shares(labels).max() >= _IMBALANCED)

    def _shares(self, labels: Tensor) -> Tensor:
        known = labels[labels >= 0]
        return torch.bincount(known, minlength=self.num_outputs).double() / max(known.shape[0], 1)

    def learned(self, labels: Tensor, class_weight: ClassWeight = None) -> Self:
        """The task with the weights of its classes, and the rarer class of two."""
        sizes = torch.bincount(labels[labels >= 0], minlength=self.num_outputs)
        positive = self.positive
        if self.num_outputs == 2 and positive is None:
            positive = rarer_class(labels)
        weights = self.class_weights
        if class_weight is not None:
            weights = _class_weights(class_weight, sizes, self.class_names)
        return replace(self, positive=positive, class_weights=weights)

    def weights(self, labels: Tensor) -> Tensor | None:
        """The weight of each node's class."""
        if self.class_weights is None:
            return None
        return torch.tensor(self.class_weights, dtype=torch.float64, device=labels.device)[labels]

    def calibrated(self, probabilities: Tensor) -> Tensor:
        """Without the shift by weights of classes; sharper for a temperature below 1, flatter above."""
        if self.temperature == 1.0 and not self.prior_shift:
            return probabilities
        logits = probabilities.clamp(min=1e-12).log()
        if self.positive is not None and self.prior_shift:
            logits[..., self.positive] -= self.prior_shift
        return (logits / self.temperature).softmax(-1)

    def compared(self, metric: Metric, labels: Tensor, probabilities: Tensor) -> tuple[Tensor, Tensor]:
        """Of two classes, a metric of the positive one gets its probability alone."""
        if metric.of_positive_class and self.num_outputs == 2 and self.positive is not None:
            return (labels == self.positive).long(), probabilities[..., self.positive]
        return super().compared(metric, labels, probabilities)

    def sets(self, probabilities: Tensor) -> Tensor | None:
        """Boolean [..., T, L]: the prediction sets, never empty; None if there are none."""
        if self.set_threshold is None:
            return None
        likeliest = probabilities == probabilities.max(-1, keepdim=True).values
        return (probabilities >= self.set_threshold) | likeliest

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
        return -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)

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
        """The most probable class; with a threshold, the positive one from there on."""
        if self.threshold is None or self.positive is None:
            return probabilities.argmax(-1)
        found = probabilities[..., self.positive] >= self.threshold
        return torch.where(found, self.positive, 1 - self.positive)

    def margins(self, probabilities: Tensor) -> Tensor:
        """How far each prediction is from another one, [...]: 0 where it could as well be that.

        The gap between the two most probable classes; with a threshold, the distance from it.

        Examples
        --------
        >>> said = torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.5, 0.5]], dtype=torch.float64)
        >>> Multiclass(("good", "bad")).margins(said).tolist()
        [0.8, 0.39999999999999997, 0.0]
        >>> Multiclass(("good", "bad"), positive=1, threshold=0.3).margins(said).tolist()
        [0.19999999999999998, 0.0, 0.2]
        """
        if self.threshold is not None and self.positive is not None:
            return (probabilities[..., self.positive] - self.threshold).abs()
        first, second = probabilities.topk(2, dim=-1).values.unbind(-1)
        return first - second

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
        """Where the predicted class is the true one."""
        return self.decode(probabilities) == labels

    def _recoded(self, y: Tensor, class_names: ClassNames) -> Tensor:
        mine = {str(name): k for k, name in enumerate(self.class_names)}
        folded = {name.casefold(): k for name, k in mine.items()}  # True is true, unless both are classes
        loose = folded if len(folded) == len(mine) else {}
        numbers = [mine.get(str(name), loose.get(str(name).casefold(), -1)) for name in class_names]
        return torch.tensor([*numbers, -1])[y.clamp(min=-1)]


def _class_weights(given: Any, sizes: Tensor, names: ClassNames) -> tuple[float, ...]:
    """A weight for each class, 1 on average over the nodes."""
    if given == "balanced":
        chosen = 1 / sizes.clamp(min=1).double()
    elif isinstance(given, str) or not hasattr(given, "items"):
        raise InputError(f"class_weight must be 'balanced' or the weights of classes by name, not {given!r}")
    else:
        chosen = torch.ones(len(names), dtype=torch.float64)
        positions = {str(name): k for k, name in enumerate(names)}
        for name, weight in given.items():
            if str(name) not in positions:
                raise InputError(
                    f"class_weight names the class {name!r}, which is none of the {len(names)} classes"
                )
            if (
                isinstance(weight, bool)
                or not isinstance(weight, int | float)
                or not 0 < weight < float("inf")
            ):
                raise InputError(f"class_weight of {name!r} must be a positive number, not {weight!r}")
            chosen[positions[str(name)]] = float(weight)
    mean = (chosen * sizes).sum() / sizes.sum().clamp(min=1)
    return tuple((chosen / mean).tolist())
