"""A number for each node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from plap.data.metrics import Metric
from plap.data.tasks.task import ClassNames, ClassWeight, Task
from plap.errors import InputError

_BINS = 10
"""Groups of about equal size that a random split shares out in proportion."""
Loss = Literal["huber", "squared"]


@dataclass(frozen=True)
class Regression(Task):
    """A number for each node: y is float [N], NaN where unknown.

    A model predicts (y − centre) / scale; ``probabilities`` turns that into the unit of the labels.

    Examples
    --------
    >>> y = torch.tensor([10.0, 30.0, torch.nan])
    >>> task = Regression().learned(y)
    >>> task.centre, task.scale, task.probabilities(torch.tensor([[0.5]])).tolist()
    (20.0, 10.0, [[25.0]])
    """

    class_names: ClassNames = ()
    centre: float = 0.0
    """Mean of the training labels."""
    scale: float = 0.0
    """Their standard deviation; 0 before any were seen, and then labels are taken as they are."""
    loss: Loss = "huber"
    """Huber's counts errors beyond one standard deviation linearly, so that a few wild labels decide less."""
    coverage: float | None = None
    """Share of nodes whose interval is to hold the true number."""
    half_width: float | None = None
    """By how much the interval of a prediction reaches below and above it."""

    name = "regression"
    headline = "r2"
    numeric = True

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    @property
    def decomposes(self) -> bool:
        """R² needs the mean of the labels."""
        return False

    @classmethod
    def of_width(cls, num_outputs: int) -> Regression:
        """There is one width only."""
        return cls()

    @classmethod
    def fits(cls, y: Tensor) -> bool:
        """One float per node."""
        return y.ndim == 1 and y.is_floating_point()

    @classmethod
    def count(cls, y: Tensor, least: int = 0) -> int:
        """There are no classes."""
        return 0

    @classmethod
    def width(cls, y: Tensor, num_classes: int | None) -> int:
        """One."""
        if num_classes not in (None, 0, 1):
            raise InputError(f"num_classes = {num_classes} but y holds one number per node")
        return 1

    @classmethod
    def valid(cls, y: Tensor) -> Tensor:
        """Finite numbers."""
        return y.isfinite()

    def known(self, y: Tensor) -> Tensor:
        """Those that are not NaN."""
        return ~y.isnan()

    def learned(self, labels: Tensor, class_weight: ClassWeight = None) -> Self:
        """The task with the mean and the standard deviation of the training labels, unless it has them."""
        super().learned(labels, class_weight)
        known = labels[labels.isfinite()].double()
        if self.scale > 0 or not known.numel():
            return self
        spread = float(known.std(correction=0))
        return replace(self, centre=float(known.mean()), scale=spread if spread > 0 else 1.0)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Huber's or half the squared error, in units of ``scale``."""
        target = ((labels.double() - self.centre) / (self.scale or 1.0)).to(logits.dtype)
        if self.loss == "huber":
            return huber_loss(logits[..., 0], target, reduction="none")
        return (logits[..., 0] - target).square() / 2

    def probabilities(self, logits: Tensor) -> Tensor:
        """Predictions [..., T, 1] in the unit of the labels."""
        return logits * (self.scale or 1.0) + self.centre

    def predict(self, logits: Tensor) -> Tensor:
        """Predictions [..., T]."""
        return self.decode(self.probabilities(logits))

    def decode(self, probabilities: Tensor) -> Tensor:
        """The numbers themselves."""
        return probabilities[..., 0]

    def words(self, y: Tensor) -> list[str | None]:
        """Each number as text."""
        return [None if value != value else f"{value:.6g}" for value in y.tolist()]  # noqa: PLR0124  (NaN)

    def strata(self, y: Tensor) -> Tensor:
        """Ten groups by size, fewer where there are few labels."""
        known = self.known(y).nonzero().squeeze(1)
        groups = torch.full(y.shape, -1, dtype=torch.int64, device=y.device)
        bins = max(1, min(_BINS, known.shape[0] // 5))
        order = y[known].argsort(stable=True)
        groups[known[order]] = torch.arange(known.shape[0], device=y.device) * bins // max(known.shape[0], 1)
        return groups

    def class_sizes(self, y: Tensor) -> dict[str, int]:
        """There are no classes."""
        return {}

    def compared(self, metric: Metric, labels: Tensor, probabilities: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers and numbers."""
        return labels, self.decode(probabilities)

    def intervals(self, probabilities: Tensor) -> tuple[Tensor, Tensor] | None:
        """Lower and upper ends [T] of the predictions; None if they were not learned."""
        if self.half_width is None:
            return None
        said = self.decode(probabilities)
        return said - self.half_width, said + self.half_width

    def _recoded(self, y: Tensor, class_names: ClassNames) -> Tensor:
        return y
