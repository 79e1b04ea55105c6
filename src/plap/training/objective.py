"""Loss and validation score of every run at its own nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from plap.errors import InputError
from plap.split_masks import SplitLike


@dataclass(frozen=True, eq=False)
class Targets:
    """The labelled nodes of R runs, padded to equal number."""

    rows: Tensor
    """Node indices [R, T]."""
    labels: Tensor
    """Classes int64 [R, T], or 0 and 1 as floats [R, T, L]."""
    present: Tensor
    """[R, T], 1 for a node and 0 for padding."""
    weight: Tensor
    """``present`` over the number of nodes of the run."""

    def loss(self, logits: Tensor) -> Tensor:
        """Mean cross-entropy [R] of logits [R, T, L], binary and over all labels for multi-label data."""
        if self.labels.ndim == 3:
            each = binary_cross_entropy_with_logits(logits, self.labels, reduction="none").mean(2)
        else:
            picked = logits.gather(2, self.labels.unsqueeze(2)).squeeze(2)
            each = logits.logsumexp(2) - picked
        return (each * self.weight).sum(1)

    def score(self, logits: Tensor) -> Tensor:
        """Accuracy [R], or micro-F1 for multi-label data; float64."""
        if self.labels.ndim == 2:
            hits = (logits.argmax(2) == self.labels).double() * self.present
            return hits.sum(1) / self.present.sum(1)
        said, true = (logits > 0).double(), self.labels.double()
        both = (said * true * self.present.unsqueeze(2)).sum((1, 2))
        either = ((said + true) * self.present.unsqueeze(2)).sum((1, 2))
        return torch.where(either > 0, 2 * both / either.clamp(min=1), 1.0)

    def keep(self, runs: Tensor) -> Targets:
        """The targets of these runs only."""
        return Targets(self.rows[runs], self.labels[runs], self.present[runs], self.weight[runs])


def make_targets(masks: Sequence[Tensor], y: Tensor, dtype: torch.dtype) -> Targets:
    """The nodes of one mask a run, ascending, and their labels."""
    nodes = [mask.nonzero().squeeze(1) for mask in masks]
    longest = max(index.shape[0] for index in nodes)
    rows = torch.zeros(len(nodes), longest, dtype=torch.int64)
    present = torch.zeros(len(nodes), longest, dtype=torch.float64)
    for run, index in enumerate(nodes):
        rows[run, : index.shape[0]] = index
        rows[run, index.shape[0] :] = index[0]
        present[run, : index.shape[0]] = 1
    weight = (present / present.sum(1, keepdim=True)).to(dtype)
    labels = y[rows]
    return Targets(rows, labels if y.ndim == 1 else labels.to(dtype), present, weight)


def check_labels(y: Tensor, split: SplitLike, num_nodes: int) -> None:
    """Refuse masks and labels that cannot be trained on, naming the node."""
    if not isinstance(y, Tensor) or y.ndim not in (1, 2) or y.shape[0] != num_nodes:
        raise InputError(f"y must be a tensor of shape [{num_nodes}] or [{num_nodes}, L]")
    if (y.ndim == 1) == y.is_floating_point() or y.dtype == torch.bool:
        raise InputError(
            "y must hold integer classes [N], or floats 0 and 1 [N, L] for several labels a node"
        )
    for name, mask in (("train", split.train), ("val", split.val)):
        if mask.shape != (num_nodes,) or mask.dtype != torch.bool:
            raise InputError(f"split.{name} must be a boolean tensor of shape [{num_nodes}]")
        if not bool(mask.any()):
            raise InputError(f"split.{name} has no node")
        known = y[mask] >= 0 if y.ndim == 1 else ((y[mask] == 0) | (y[mask] == 1)).all(1)
        if not bool(known.all()):
            node = int(mask.nonzero()[(~known).nonzero()[0, 0], 0])
            raise InputError(f"node {node} is in split.{name} but y has no label for it")


def count_classes(y: Tensor, splits: Sequence[SplitLike], num_classes: int | None) -> int:
    """L: as given, or by the largest label among training and validation nodes."""
    if y.ndim == 2:
        if num_classes not in (None, y.shape[1]):
            raise InputError(f"num_classes = {num_classes} but y has {y.shape[1]} labels a node")
        return y.shape[1]
    largest = max(int(y[split.train | split.val].max()) for split in splits)
    if num_classes is not None and largest >= num_classes:
        raise InputError(f"y has class {largest} but num_classes is {num_classes}")
    return max(largest + 1, 2) if num_classes is None else num_classes
