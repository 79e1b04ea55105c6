"""GAT of Veličković et al. (2018), two layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plap.graph import Graph
from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, share
from plap.nn.adjacency import times
from plap.nn.gat import GAT, edges_with_loops
from plap.nn.linear import Features


@dataclass(frozen=True)
class GATParameters(Parameters):
    """Parameters of gat."""

    hidden: int = integer(8)
    """Hidden units of each head."""
    heads: int = integer(8)
    """Attention heads of the first layer."""
    dropout: float = share(0.5)
    """Share of the features, hidden units and attention coefficients that is dropped in training."""


def _attention(module: GAT, x: Features, graph: Graph) -> Tensor:
    """The first layer's, one column per head; what a node pays to itself is not in it."""
    edges = edges_with_loops(graph)
    _, (_, attention) = module.conv1(times(x, module.lin.weight), edges, return_attention_weights=True)
    own = graph.receivers() == graph.indices
    result = torch.empty(graph.num_entries, attention.shape[1], dtype=attention.dtype)
    first = graph.num_entries - int(own.sum())
    result[~own] = attention[:first]
    result[own] = attention[first + graph.indices[own].long()]
    return result


GAT_MODEL = ModelKind(
    "gat",
    GATParameters,
    lambda c, i, o: GAT(i, c.hidden, o, c.heads, c.dropout),
    title="GAT",
    grid={"lr": (0.001, 0.005), "dropout": (0.0, 0.6), "weight_decay": (0.0, 5e-4)},
    small={"lr": (0.005,), "weight_decay": (5e-4,)},
    dropout_fields=("dropout",),
    sparse_features=True,
    module=GAT,
    edge_weights=_attention,
)
