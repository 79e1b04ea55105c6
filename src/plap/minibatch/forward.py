"""How a model of the catalogue is called on a piece, and how far it sees."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from plap.minibatch.pieces import Halo, Piece
from plap.training.catalogue import ModelKind, find_model
from plap.training.config import RunConfig
from plap.training.module_checks import check_logits


def logits_of(kind: ModelKind, module: torch.nn.Module, piece: Piece, num_classes: int) -> Tensor:
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

    A module of a user's own says it by an attribute ``hops``: its steps of message passing, and one more if
    it takes a graph and adds self-loops to it. One that takes an ``edge_index`` gets no self-loops at the
    rim, which would have to be weighted, but one hop more: so all nodes whose messages count have all their
    neighbours, whatever is computed of these.
    """
    rule = _HOPS.get(config.model)
    hops = getattr(module, "hops", None) if rule is None else rule(config)
    if not isinstance(hops, int) or hops < 0:
        return None
    takes_loops = find_model(config.model).takes == "graph"
    return Halo(hops if takes_loops else hops + 1, rim_loops=takes_loops)


# GCN's normalisation adds a self-loop to every node, which needs one hop more than there are steps.
_HOPS: dict[str, Callable[[RunConfig], int]] = {
    "mlp": lambda c: 0,
    "pgnn": lambda c: c.K,
    "gcn": lambda c: 3,
    "sgc": lambda c: c.K + 1,
    "appnp": lambda c: c.K + 1,
    "gprgnn": lambda c: c.K + 1,
}
