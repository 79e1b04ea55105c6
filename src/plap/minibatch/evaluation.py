"""Exact predictions piece by piece, or on the whole graph, spread over the ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from plap.errors import InputError
from plap.minibatch.distributed import Ranks
from plap.minibatch.forward import hops_of, logits_of
from plap.minibatch.objective import mean_loss_and_score, tally
from plap.minibatch.pieces import Piece, Pieces
from plap.training.catalogue import find_model
from plap.training.config import RunConfig

EvaluateOn = Literal["auto", "halos", "whole"]


class Evaluation:
    """Loss and score at the validation nodes, and logits of all nodes; the same for any number of ranks.

    Parameters
    ----------
    pieces : Pieces
    config : RunConfig
    module : torch.nn.Module
        On the device of ``ranks``; evaluated with the weights it has at the time.
    ranks : Ranks
    on : {"auto", "halos", "whole"}
        Whole: the first rank takes the whole graph. Halos: each rank takes parts with all that their
        predictions depend on, which needs less memory but, many hops wide, more work. "auto" takes halos
        where the rank with the most work has less of it than the whole graph is.
    """

    def __init__(
        self, pieces: Pieces, config: RunConfig, module: torch.nn.Module, ranks: Ranks, on: EvaluateOn
    ) -> None:
        if on not in get_args(EvaluateOn):
            raise InputError(f"evaluation must be one of {', '.join(get_args(EvaluateOn))}, not {on!r}")
        self._kind, self._module = find_model(config.model), module
        self._pieces, self._ranks = pieces, ranks
        self._hops = hops_of(config, module)
        if on == "halos" and self._hops is None:
            raise InputError(
                f"how far model {config.model!r} sees is not known: evaluate it on the whole graph"
            )
        self._validation = pieces.split.val
        self._whole: Piece | None = None
        self._on_halos = on == "halos" or (on == "auto" and self._halos_are_less())

    @torch.no_grad()
    def validate(self, also: Tensor) -> tuple[float, float, list[float]]:
        """Mean loss and score at the validation nodes; ``also`` [n] is added up over the ranks with them."""
        self._module.eval()
        sums = torch.zeros(4, dtype=torch.float64, device=self._ranks.device)
        for piece in self._pieces_of(self._validation):
            sums += tally(logits_of(self._kind, self._module, piece), piece.labels)
        total = self._ranks.total(torch.cat([sums, also]))
        loss, score = mean_loss_and_score(total[:4])
        return loss, score, total[4:].tolist()

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Logits of all nodes [N, L], on the CPU."""
        self._module.eval()
        everyone = torch.ones_like(self._validation)
        result = torch.zeros(everyone.shape[0], self._pieces.num_classes)
        for piece in self._pieces_of(everyone):
            result[piece.nodes.cpu()] = logits_of(self._kind, self._module, piece).cpu()
        return self._ranks.total(result.to(self._ranks.device)).cpu()

    def _pieces_of(self, wanted: Tensor) -> Iterator[Piece]:
        """What this rank evaluates."""
        device = self._ranks.device
        if self._on_halos:
            for piece in self._halos(wanted):
                yield piece.to(device)
        elif self._ranks.rank == 0:
            nodes = wanted.nonzero().squeeze(1)
            if self._whole is None:  # kept: what layers remember of sparse features goes with it
                self._whole = self._pieces.whole(nodes).to(device)
            rows = nodes.to(device)
            yield replace(self._whole, rows=rows, nodes=rows, labels=self._pieces.y[nodes].to(device))

    def _halos(self, wanted: Tensor) -> Iterator[Piece]:
        assert self._hops is not None
        for nodes in self._ranks.own(self._pieces.groups()):
            chosen = nodes[wanted[nodes]]
            if chosen.numel():
                yield self._pieces.exact_piece(chosen, self._hops)

    def _halos_are_less(self) -> bool:
        if self._hops is None:
            return False
        work = sum(piece.graph.num_nodes + piece.graph.num_entries for piece in self._halos(self._validation))
        whole = self._pieces.graph.num_nodes + self._pieces.graph.num_entries
        too_much = torch.tensor([float(work >= whole)], device=self._ranks.device)
        return self._ranks.total(too_much).item() == 0
