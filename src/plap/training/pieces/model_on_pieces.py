"""How a model is called on pieces: steps of training on a few, and exact predictions for all nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from plap.checks import check_choice
from plap.data.tasks import Task
from plap.errors import InputError
from plap.models import ModelKind, find_model
from plap.parts.subgraph import halo_size
from plap.training.adam import StackedAdam
from plap.training.config import RunConfig
from plap.training.devices import Ranks
from plap.training.modules import Halo, check_logits, halo_of, seeded
from plap.training.native import mask_keys
from plap.training.pieces.cutting import Piece, Pieces, Share


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


EvaluateOn = Literal["auto", "halos", "whole"]

_known: WeakKeyDictionary[Pieces, dict[tuple[Halo, int, int], bool]] = WeakKeyDictionary()
"""Results of :func:`halos_are_less`, so that models and seeds on the same pieces do not count again."""


class Evaluation:
    """Loss and score at the validation nodes, and logits of all nodes; the same for any number of ranks.

    Parameters
    ----------
    pieces : Pieces
    config : RunConfig
    module : torch.nn.Module
        On the device of ``ranks``; evaluated with its current weights.
    ranks : Ranks
    on : {"auto", "halos", "whole"}
        "whole": the first rank evaluates the whole graph. "halos": each rank evaluates some parts with
        everything that their predictions depend on, which needs less memory but, with many hops, more work.
        "auto": halos if even the rank with the most work has less than the whole graph.
    """

    def __init__(
        self, pieces: Pieces, config: RunConfig, module: torch.nn.Module, ranks: Ranks, on: EvaluateOn
    ) -> None:
        check_choice("evaluation", on, EvaluateOn)
        self._kind, self._module = find_model(config.model), module
        self._pieces, self._ranks = pieces, ranks
        self._halo = halo_of(config, module)
        if on == "halos" and self._halo is None:
            raise InputError(
                f"it is not known how far model {config.model!r} sees: evaluate it on the whole graph"
            )
        self._validation = pieces.split.val
        self._whole: Piece | None = None
        self._on_halos = on == "halos" or (on == "auto" and self._halos_are_less())

    @torch.no_grad()
    def validate(self, also: Tensor) -> tuple[float, float, list[float]]:
        """Mean loss and score at the validation nodes; ``also`` [n] is added up over the ranks with them."""
        self._module.eval()
        if not self._pieces.task.decomposes:
            return self._validate_together(also)
        sums = torch.zeros(4, dtype=torch.float64, device=self._ranks.device)
        for piece in self._pieces_of(self._validation):
            sums += self._pieces.task.tally(self._logits_of(piece), piece.labels)
        total = self._ranks.total(torch.cat([sums, also]))
        loss, score = self._pieces.task.mean_loss_and_score(total[:4])
        return loss, score, total[4:].tolist()

    def _validate_together(self, also: Tensor) -> tuple[float, float, list[float]]:
        """The same for a metric of all validation nodes together: every rank gets the logits of all."""
        task, nodes = self._pieces.task, self._validation.nonzero().squeeze(1)
        place = torch.full(self._validation.shape, -1)
        place[nodes] = torch.arange(nodes.shape[0])
        logits = torch.zeros(nodes.shape[0], task.num_outputs, device=self._ranks.device)
        for piece in self._pieces_of(self._validation):
            logits[place[piece.nodes.cpu()].to(logits.device)] = self._logits_of(piece)
        logits, labels = self._ranks.total(logits), self._pieces.y[nodes].to(logits.device)
        present = torch.ones(1, nodes.shape[0], dtype=torch.float64, device=logits.device)
        loss = float(task.losses(logits, labels).double().mean())
        score = float(task.merits(logits[None], labels[None], present))
        return loss, score, self._ranks.total(also).tolist()

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Logits of all nodes [N, L], on the CPU."""
        self._module.eval()
        everyone = torch.ones_like(self._validation)
        result = torch.zeros(everyone.shape[0], self._pieces.task.num_outputs)
        for piece in self._pieces_of(everyone):
            result[piece.nodes.cpu()] = self._logits_of(piece).cpu()
        return self._ranks.total(result.to(self._ranks.device)).cpu()

    def _logits_of(self, piece: Piece) -> Tensor:
        return logits_of(self._kind, self._module, piece, self._pieces.task.num_outputs)

    def _pieces_of(self, wanted: Tensor) -> Iterator[Piece]:
        """The pieces that this rank evaluates."""
        device = self._ranks.device
        if self._on_halos:
            for piece in self._halos(wanted):
                yield piece.to(device)
        elif self._ranks.rank == 0:
            nodes = wanted.nonzero().squeeze(1)
            if self._whole is None:  # kept, because layers cache what they derive from sparse features
                self._whole = self._pieces.whole(nodes).to(device)
            rows = nodes.to(device)
            yield replace(self._whole, rows=rows, nodes=rows, labels=self._pieces.y[nodes].to(device))

    def _halos(self, wanted: Tensor) -> Iterator[Piece]:
        assert self._halo is not None
        for nodes in _cores(self._pieces, self._ranks, wanted):
            yield self._pieces.exact_piece(nodes, self._halo)

    def _halos_are_less(self) -> bool:
        """Whether halos are less work on every rank; each rank counts its own, or looks it up."""
        if self._halo is None:
            return False
        known = _known.setdefault(self._pieces, {})
        key = (self._halo, self._ranks.rank, self._ranks.size)
        if key not in known:
            known[key] = halos_are_less(self._pieces, self._halo, self._ranks)
        return self._ranks.most(int(not known[key])) == 0


def halos_are_less(pieces: Pieces, halo: Halo, ranks: Ranks) -> bool:
    """Whether this rank's validation nodes with their halos have fewer nodes and entries than the graph.

    Nothing is cut out, and counting stops as soon as the size of the whole graph is reached.
    """
    left = pieces.graph.num_nodes + pieces.graph.num_entries
    for nodes in _cores(pieces, ranks, pieces.split.val):
        left -= halo_size(pieces.graph, nodes, halo.hops, rim_loops=halo.rim_loops)
        if left <= 0:
            return False
    return True


def _cores(pieces: Pieces, ranks: Ranks, wanted: Tensor) -> Iterator[Tensor]:
    """The wanted nodes of each of this rank's groups of parts."""
    for nodes in ranks.own(pieces.groups()):
        chosen = nodes[wanted[nodes]]
        if chosen.numel():
            yield chosen
