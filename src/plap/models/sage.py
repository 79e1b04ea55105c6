"""GraphSAGE of Hamilton et al. (2017) with mean aggregator, two layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import relu

from plap.graph import Graph
from plap.models.gcn import PAPER, PAPER_AND_MORE
from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, share
from plap.models.stacked import Family, StackedInputs, StackedSettings, State, activated, pick
from plap.nn.adjacency import mean_convolution, neighbour_means
from plap.nn.baselines import SAGE
from plap.nn.linear import Features, sparse_product


@dataclass(frozen=True)
class SAGEParameters(Parameters):
    """Parameters of sage."""

    hidden: int = integer(16)
    """Hidden units."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


def _embed(state: State, inputs: StackedInputs) -> Tensor:
    own = inputs.times_features(state["own1.weight"])
    neighbours = inputs.times_features(state["neighbours1.weight"])
    return own + inputs.mean_of_neighbours(neighbours) + state["own1.bias"].unsqueeze(1)


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    weights = torch.cat([state["own2.weight"], state["neighbours2.weight"]], dim=2)
    own, neighbours = torch.bmm(activated(settings, embedding, epoch), weights).chunk(2, dim=2)
    return pick(own + inputs.mean_of_neighbours(neighbours), rows) + state["own2.bias"].unsqueeze(1)


def _embeddings(module: SAGE, x: Features, graph: Graph) -> Tensor:
    """The hidden units, and beside them their means over neighbours."""
    A = neighbour_means(graph)
    hidden = relu(mean_convolution(A, x, module.own1, module.neighbours1))
    return torch.cat([hidden, sparse_product(A, hidden)], dim=1)


SAGE_MODEL = ModelKind(
    "sage",
    SAGEParameters,
    lambda c, i, o: SAGE(i, c.hidden, o, c.dropout),
    title="SAGE",
    grid=PAPER,  # the paper has no SAGE: the values of its GCN
    small={"lr": (0.01,)},
    wide=64,
    search=PAPER_AND_MORE,
    dropout_fields=("dropout",),
    stacked=Family(
        _embed,
        _head,
        equal=("hidden",),
        width=lambda c, classes: 8 * c.hidden + 6 * classes,
        weights=lambda c, features, classes: (2 * features + 1) * c.hidden + (2 * c.hidden + 1) * classes,
        uses_means=True,
    ),
    hops=lambda c: 2,
    module=SAGE,
    embeddings=_embeddings,
)
