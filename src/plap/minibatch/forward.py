"""How a model is called on a piece, and how far it sees."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from plap.minibatch.pieces import Halo, Piece
from plap.models import ModelKind, find_model
from plap.training.config import RunConfig
from plap.training.module_checks import check_logits


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
    """How far a node can be and still count, so that a halo of so many hops is exact; None: not known.

    The model says it (:attr:`plap.models.ModelKind.hops`), or its module by an attribute ``hops``. One that
    takes an ``edge_index`` gets no self-loops at the rim, which would have to be weighted, but one hop more:
    so all nodes whose messages count have all their neighbours, whatever is computed of these.
    """
    kind = find_model(config.model)
    hops = getattr(module, "hops", None) if kind.hops is None else kind.hops(config.parameters)
    if not isinstance(hops, int) or hops < 0:
        return None
    takes_loops = kind.takes == "graph"
    return Halo(hops if takes_loops else hops + 1, rim_loops=takes_loops)
