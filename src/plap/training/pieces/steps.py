"""How a model is called on a piece, how far it sees, and one step of training on a few pieces."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.data.tasks import Task
from plap.models import ModelKind, find_model
from plap.training.adam import StackedAdam
from plap.training.config import RunConfig
from plap.training.modules import check_logits, seeded
from plap.training.native import mask_keys
from plap.training.pieces.cutting import Halo, Piece, Pieces, Share
from plap.training.pieces.distributed import Ranks


def logits_of(kind: ModelKind[Any], module: torch.nn.Module, piece: Piece, num_classes: int) -> Tensor:
    """Logits [T, L] of the wanted nodes of a piece."""
    takes_sparse = kind.sparse_features or kind.stacked is not None
    x = piece.x if takes_sparse or piece.x.layout == torch.strided else piece.x.to_dense()
    if kind.takes == "graph":
        logits = module(x, piece.graph)
    elif piece.weighted:
        logits = module(x, piece.graph.edge_index, edge_weight=piece.graph.weight.to(x.dtype))
    else:
        logits = module(x, piece.graph.edge_index)
    return check_logits(kind, logits, (piece.graph.num_nodes, num_classes)).index_select(0, piece.rows)


def halo_of(config: RunConfig, module: torch.nn.Module) -> Halo | None:
    """The halo with which predictions are exact; None if it is not known how far the model sees.

    The number of hops is given by the model (:attr:`plap.models.ModelKind.hops`) or by an attribute ``hops``
    of its module. A model that takes an ``edge_index`` gets no self-loops at the rim, which would have to be
    weighted, but one hop more: every node whose messages count then has all its neighbours.
    """
    kind = find_model(config.model)
    hops = getattr(module, "hops", None) if kind.hops is None else kind.hops(config.parameters)
    if not isinstance(hops, int) or hops < 0:
        return None
    takes_loops = kind.takes == "graph"
    return Halo(hops if takes_loops else hops + 1, rim_loops=takes_loops)


class PieceLoss(torch.nn.Module):
    """The sum of the losses at a piece's training nodes, each by its weight; 0 without a piece.

    Every parameter gets a gradient, if only of zero: DistributedDataParallel waits for all of them.
    """

    def __init__(self, kind: ModelKind[Any], module: torch.nn.Module, task: Task) -> None:
        super().__init__()
        self.module = module
        self._kind, self._task = kind, task

    def forward(self, piece: Piece | None) -> Tensor:
        """The sum, a scalar."""
        nothing = torch.stack([0 * value.sum() for value in self.parameters() if value.requires_grad]).sum()
        if piece is None:
            return nothing
        logits = logits_of(self._kind, self.module, piece, self._task.num_outputs)
        losses, weights = self._task.losses(logits, piece.labels), self._task.weights(piece.labels)
        return nothing + (losses if weights is None else losses * weights.to(losses.dtype)).sum()


class Stepper:
    """One step of Adam on the mean loss over the training nodes of a step's pieces.

    The pieces are dealt out to the ranks, whose gradients are added up; a rank without a piece adds zero.
    Dropout depends on the run's seed, the epoch and the piece. A step is therefore the same for any number
    of ranks, up to the order of sums.

    Parameters
    ----------
    pieces : Pieces
    config : RunConfig
    module : torch.nn.Module
        On the device of ``ranks``.
    ranks : Ranks
    """

    def __init__(self, pieces: Pieces, config: RunConfig, module: torch.nn.Module, ranks: Ranks) -> None:
        self._pieces, self._config, self._ranks = pieces, config, ranks
        self._loss = ranks.wrap(PieceLoss(find_model(config.model), module, pieces.task))
        trained = [(name, value) for name, value in module.named_parameters() if value.requires_grad]
        self.names = [name for name, _ in trained]
        self._parameters = [value for _, value in trained]
        self.optimizer = StackedAdam(
            [value.detach().unsqueeze(0) for value in self._parameters],  # views: a step changes the module
            torch.tensor([config.lr], dtype=torch.float64),
            torch.tensor([config.weight_decay], dtype=torch.float64),
        )
        self._buffers = [value for value in module.buffers() if value.layout == torch.strided]

    def step(self, epoch: int, shares: Sequence[Share]) -> Tensor:
        """Update the weights; returns the sum of this rank's losses before the update."""
        self._loss.train()
        for parameter in self._parameters:
            parameter.grad = None
        before = [value.clone() for value in self._buffers]
        changes = [torch.zeros_like(value) for value in self._buffers]
        scale = self._ranks.size / sum(share.labelled for share in shares)  # ranks' gradients are averaged
        total = torch.zeros((), dtype=torch.float64, device=self._ranks.device)
        own: list[Share | None] = list(self._ranks.own(shares)) or [None]
        for position, share in enumerate(own):
            with self._exchange(position == len(own) - 1):
                loss = self._loss_of(epoch, share)
                (loss * scale).backward()
            total += loss.detach()
            for value, start, change in zip(self._buffers, before, changes, strict=True):
                change.add_(value - start)
                value.copy_(start)
        self._settle_buffers(changes, len(shares))
        gradients = (torch.zeros_like(v) if v.grad is None else v.grad for v in self._parameters)
        self.optimizer.step([gradient.unsqueeze(0) for gradient in gradients])
        return total

    def _loss_of(self, epoch: int, share: Share | None) -> Tensor:
        if share is None:
            nothing: Tensor = self._loss(None)
            return nothing
        piece = self._pieces.training_piece(share).to(self._ranks.device)
        key = int(mask_keys(np.array([self._config.seed], dtype=np.uint64), epoch, share.number)[0])
        with seeded(key, self._ranks.device):
            loss: Tensor = self._loss(piece)
        return loss

    def _exchange(self, now: bool) -> contextlib.AbstractContextManager[None]:
        """Gradients are exchanged only after a rank's last piece."""
        if now or not isinstance(self._loss, torch.nn.parallel.DistributedDataParallel):
            return contextlib.nullcontext()
        context: contextlib.AbstractContextManager[None] = self._loss.no_sync()
        return context

    def _settle_buffers(self, changes: Sequence[Tensor], count: int) -> None:
        """Change the buffers (such as BatchNorm's statistics) by the mean of the pieces' changes."""
        for value, change in zip(self._buffers, changes, strict=True):
            total = self._ranks.total(change)
            value.add_(total / count if value.is_floating_point() else total // count)
