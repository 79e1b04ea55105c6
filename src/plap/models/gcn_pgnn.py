"""GCN whose edge weights are the aggregation weights of a p-Laplacian layer in front of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from plap.graph import Graph
from plap.kernels.registry import propagate_unchecked
from plap.kernels.torch.autograd_ops import aggregation_weights
from plap.models import gcn, pgnn
from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, number, share
from plap.models.stacked import (
    Family,
    StackedInputs,
    StackedSettings,
    State,
    activated,
    dropped,
    first_linear,
    linear,
    pick,
)
from plap.nn import GCNPlusPGNN
from plap.nn.stacked_attention import log_lengths, neighbours_alone, weighted_sums
from plap.penalties import Power


@dataclass(frozen=True)
class GCNPlusPGNNParameters(Parameters):
    """Parameters of gcn+pgnn."""

    hidden: int = integer(16)
    """Hidden units."""
    p: float = number(2.0, at_least=1)
    mu: float = number(0.1, above=0)
    K: int = integer(4)
    """Steps of the p-Laplacian layer."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    p, mu = settings.column("p", torch.float64), settings.column("mu", torch.float64)
    graph, K = inputs.graph, settings.common("K")
    start = activated(settings, embedding, epoch)
    before = propagate_unchecked(start, graph, p, mu, K - 1) if K > 1 else start
    lengths = partial(log_lengths, neighbours_alone(graph))
    weights = aggregation_weights(before, graph, Power(p), mu, log_lengths=lengths)
    hidden = linear(state, "conv1.lin", _stepped(before, start, graph, weights)).relu()
    hidden = dropped(settings, hidden, epoch, "dropout", layer=1)
    averaged = _averaged(torch.bmm(hidden, state["conv2.lin.weight"]), graph, weights)
    return pick(averaged, rows) + state["conv2.bias"].unsqueeze(1)


def _stepped(F: Tensor, start: Tensor, graph: Graph, weights: Tensor) -> Tensor:
    """A F + β X (Eq. 11) with the weights A of the step; β follows from α_i Σ_j M_ij / D_i + β_i = 1."""
    neighbours = neighbours_alone(graph)
    root = graph.degree.to(F.dtype).sqrt()
    share = weights * (root[neighbours.indices] / root[neighbours.receivers])
    beta = torch.ones_like(F[:, :, 0]).index_add(1, neighbours.receivers, -share)
    return torch.addcmul(weighted_sums(neighbours, F, weights), beta.unsqueeze(2), start)


def _averaged(x: Tensor, graph: Graph, weights: Tensor) -> Tensor:
    """GCN's average of x [R, N, C] with edge weights [R, entries]; every node has a self-loop of weight 1."""
    neighbours = neighbours_alone(graph)
    if graph.num_self_loops:
        weights = weights * (neighbours.indices != neighbours.receivers)
    root = torch.ones_like(x[:, :, 0]).index_add(1, neighbours.receivers, weights).rsqrt().unsqueeze(2)
    scaled = root * x
    return root * (weighted_sums(neighbours, scaled, weights) + scaled)


def _width(c: GCNPlusPGNNParameters, classes: int) -> int:
    return (c.K + 12) * (-(-c.hidden // 8) * 8) + 4 * c.hidden + 8 * classes


GCN_PGNN_MODEL = ModelKind(
    "gcn+pgnn",
    GCNPlusPGNNParameters,
    lambda c, i, o: GCNPlusPGNN(i, c.hidden, o, c.p, c.mu, c.K, c.dropout),
    title="GCN + pGNN",
    label=lambda c: f"GCN + pGNN {c.p}",
    # The paper gives no grid for the hybrids: GCN's own, with pGNN's mu and K.
    grid={
        "lr": gcn.PAPER["lr"],
        "dropout": gcn.PAPER["dropout"],
        "mu": pgnn.PAPER["mu"],
        "K": pgnn.PAPER["K"],
        "weight_decay": gcn.PAPER["weight_decay"],
    },
    small=pgnn.SMALL,
    dropout_fields=("dropout",),
    sparse_features=True,
    stacked=Family(
        first_linear("lin"),
        _head,
        equal=("hidden", "K"),
        width=_width,
        edge_width=lambda c: 6 * c.hidden + 40,  # where no loop is compiled, both ends are gathered
        weights=lambda c, features, classes: (features + 1 + c.hidden + 1 + classes) * c.hidden + classes,
    ),
    module=GCNPlusPGNN,
)
