"""Loss and score as sums over nodes, so that sums of pieces are those of the whole."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy


def node_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each node [T]; with several labels a node, the mean of their binary ones."""
    if labels.ndim == 2:
        return binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").mean(1)
    return cross_entropy(logits, labels, reduction="none")


def tally(logits: Tensor, labels: Tensor) -> Tensor:
    """Four sums over nodes, float64 [4]: losses, nodes, right answers, and of how many.

    With several labels a node the last two are numerator and denominator of micro-F1.

    Examples
    --------
    >>> tally(torch.tensor([[9.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 1]))[1:]
    tensor([2., 1., 2.], dtype=torch.float64)
    """
    loss = node_losses(logits, labels).double().sum()
    count = torch.full_like(loss, labels.shape[0])
    if labels.ndim == 1:
        return torch.stack([loss, count, (logits.argmax(1) == labels).double().sum(), count])
    said, true = (logits > 0).double(), labels.double()
    return torch.stack([loss, count, 2 * (said * true).sum(), (said + true).sum()])


def mean_loss_and_score(sums: Tensor) -> tuple[float, float]:
    """Mean loss, and accuracy or micro-F1, of what :func:`tally` added up."""
    loss, count, right, possible = sums.tolist()
    return loss / count, right / possible if possible else 1.0
