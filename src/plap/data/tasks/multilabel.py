"""Any number of labels per node."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from plap.data.tasks.task import ClassNames, Task
from plap.errors import InputError

_SEPARATOR = "; "


@dataclass(frozen=True)
class Multilabel(Task):
    """Any number of labels per node: y is float [N, L] of 0 and 1, a row of NaN where unknown."""

    name = "multilabel"
    headline = "micro_f1"

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

    def _recoded(self, y: Tensor, class_names: ClassNames) -> Tensor | None:
        columns = {str(name): k for k, name in enumerate(class_names)}
        if not all(str(name) in columns for name in self.class_names):
            return None
        return y[:, [columns[str(name)] for name in self.class_names]]
