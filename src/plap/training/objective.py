"""Loss and validation score of every run at its own nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plap.data.tasks import Task


@dataclass(frozen=True, eq=False)
class Targets:
    """The labelled nodes of R runs, padded to equal number."""

    task: Task
    rows: Tensor
    """Node indices [R, T]."""
    labels: Tensor
    """Classes int64 [R, T], or 0 and 1 as floats [R, T, L]."""
    present: Tensor
    """[R, T], 1 for a node and 0 for padding."""
    weight: Tensor
    """``present`` over the number of nodes of the run."""

    def loss(self, logits: Tensor) -> Tensor:
        """Mean loss [R] of logits [R, T, L]."""
        return (self.task.losses(logits, self.labels) * self.weight).sum(1)

    def score(self, logits: Tensor) -> Tensor:
        """The task's headline metric [R]; float64."""
        right, possible = self.task.hits(logits, self.labels)
        return self.task.score((right * self.present).sum(1), (possible * self.present).sum(1))

    def keep(self, runs: Tensor) -> Targets:
        """The targets of these runs only."""
        return Targets(self.task, self.rows[runs], self.labels[runs], self.present[runs], self.weight[runs])


def make_targets(task: Task, masks: Sequence[Tensor], y: Tensor, dtype: torch.dtype) -> Targets:
    """The nodes of one mask per run, ascending, and their labels."""
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
    return Targets(task, rows, labels.to(dtype) if y.is_floating_point() else labels, present, weight)
