"""Training labels as input features, without ever showing a label that is to be predicted."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from plap.checks import check_number
from plap.errors import InputError


class LabelDraw(NamedTuple):
    """What one training step sees, and what it has to predict."""

    columns: Tensor
    """Float32 [N, classes]: the one-hot label of each shown node, zero elsewhere."""
    predicted: Tensor
    """Boolean [N]: the training nodes that are not shown; the loss is theirs alone."""


class LabelReuse:
    """Show a random share of the training labels as features and predict the others.

    Every training step draws anew which labels are shown. To predict validation and test nodes, all training
    labels are shown; a score on the *training* nodes then says nothing, because the input holds their labels.
    None of plap's models uses this by itself.

    Parameters
    ----------
    y : Tensor, shape [N], integer
        Classes; -1 where unknown. Labels outside ``train`` are never read.
    train : Tensor, shape [N], boolean
    num_classes : int
    share : float between 0 and 1
        Share of the training labels shown in a step; at least one label is always left to predict.

    Examples
    --------
    >>> import torch
    >>> reuse = LabelReuse(torch.tensor([0, 1, 1, 0]), torch.tensor([True, True, True, False]), 2, share=0.5)
    >>> columns, predicted = reuse.draw(torch.Generator().manual_seed(0))
    >>> int(columns.sum()), int(predicted.sum())
    (2, 1)
    >>> reuse.everything()
    tensor([[1., 0.], [0., 1.], [0., 1.], [0., 0.]])

    A model for features x then takes ``torch.cat([x, columns], 1)``.
    """

    def __init__(self, y: Tensor, train: Tensor, num_classes: int, share: float = 0.5) -> None:
        if not isinstance(y, Tensor) or y.ndim != 1 or y.is_floating_point() or y.dtype == torch.bool:
            raise InputError("y must be a tensor of integers of shape [N], one class per node")
        if not isinstance(train, Tensor) or train.dtype != torch.bool or train.shape != y.shape:
            raise InputError(f"train must be a boolean tensor of shape {list(y.shape)}")
        check_number("share", share, above=0, below=1)
        labelled = (train & (y >= 0)).nonzero().squeeze(1)
        if labelled.numel() < 2:
            raise InputError("label reuse needs two training labels: one to show and one to predict")
        labels = y[labelled].long()
        if int(labels.max()) >= num_classes:
            raise InputError(f"y contains the class {int(labels.max())}, but num_classes is {num_classes}")
        self.share, self._num_nodes = share, y.shape[0]
        self._labelled, self._one_hot = labelled, one_hot(labels, num_classes).float()

    def draw(self, generator: torch.Generator | None = None) -> LabelDraw:
        """Labels to show and nodes to predict in one training step; ``generator`` is on the CPU."""
        count = self._labelled.numel()
        shown = min(max(round(self.share * count), 1), count - 1)
        order = torch.randperm(count, generator=generator).to(self._labelled.device)
        predicted = torch.zeros(self._num_nodes, dtype=torch.bool, device=order.device)
        predicted[self._labelled[order[shown:]]] = True
        return LabelDraw(self._columns(order[:shown]), predicted)

    def everything(self) -> Tensor:
        """All training labels, [N, classes]: the input to predict other nodes from."""
        return self._columns(torch.arange(self._labelled.numel(), device=self._labelled.device))

    def _columns(self, which: Tensor) -> Tensor:
        columns = self._one_hot.new_zeros(self._num_nodes, self._one_hot.shape[1])
        columns[self._labelled[which]] = self._one_hot[which]
        return columns
