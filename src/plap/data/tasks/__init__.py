"""What is to be predicted for each node: one class, several labels, or a number; one file and line each."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from plap.data.tasks.multiclass import Multiclass
from plap.data.tasks.multilabel import Multilabel
from plap.data.tasks.regression import Regression
from plap.data.tasks.task import TASKS, ClassNames, ClassWeight, Task, kind_of
from plap.errors import InputError
from plap.split_masks import SplitLike

__all__ = [
    "TASKS",
    "ClassNames",
    "ClassWeight",
    "Multiclass",
    "Multilabel",
    "Regression",
    "Task",
    "kind_of",
    "training_task",
]

TASKS |= {kind.name: kind for kind in (Multiclass, Multilabel, Regression)}


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
