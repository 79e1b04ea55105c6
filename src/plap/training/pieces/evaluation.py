"""Exact predictions piece by piece, or on the whole graph, spread over the ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from plap.checks import check_choice
from plap.errors import InputError
from plap.models import find_model
from plap.parts.subgraph import halo_size
from plap.training.config import RunConfig
from plap.training.pieces.cutting import Halo, Piece, Pieces
from plap.training.pieces.distributed import Ranks
from plap.training.pieces.steps import halo_of, logits_of

EvaluateOn = Literal["auto", "halos", "whole"]

_known: WeakKeyDictionary[Pieces, dict[tuple[Halo, int, int], bool]] = WeakKeyDictionary()
"""Results of :func:`halos_are_less`, so that models and seeds on the same pieces do not count again."""


def check_place_of_evaluation(on: str) -> None:
    """Refuse anything but the values of ``EvaluateOn``.

    Examples
    --------
    >>> check_place_of_evaluation("nowhere")
    Traceback (most recent call last):
    plap.errors.InputError: evaluation must be one of auto, halos, whole, not 'nowhere'
    """
    check_choice("evaluation", on, EvaluateOn)


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
        check_place_of_evaluation(on)
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
