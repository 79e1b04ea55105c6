"""GCN of Kipf and Welling (2017), two layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import relu

from plap.graph import Graph
from plap.models.kind import Grid, ModelKind, with_strong_decay
from plap.models.parameters import Parameters, integer, share
from plap.models.stacked import (
    Family,
    StackedInputs,
    StackedSettings,
    State,
    activated,
    pick,
    two_layers,
)
from plap.nn.adjacency import adjacency_tensor, graph_convolution
from plap.nn.baselines import GCN
from plap.nn.linear import Features, sparse_product


@dataclass(frozen=True)
class GCNParameters(Parameters):
    """Parameters of gcn."""

    hidden: int = integer(16)
    """Hidden units."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


PAPER: Grid = {"lr": (0.001, 0.01), "dropout": (0.0, 0.5), "weight_decay": (0.0, 5e-4)}
"""The appendix "Hyperparameter Settings"."""

PAPER_AND_MORE: Grid = with_strong_decay({**PAPER, "lr": (*PAPER["lr"], 0.05)})
"""The paper's grid, extended by pGNN's highest learning rate and strongest weight decay: in a comparison all
get the same ones."""


def _embed(state: State, inputs: StackedInputs) -> Tensor:
    return inputs.averaged(inputs.times_features(state["lin1.weight"])) + state["lin1.bias"].unsqueeze(1)


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    hidden = torch.bmm(activated(settings, embedding, epoch), state["lin2.weight"])
    return pick(inputs.averaged(hidden), rows) + state["lin2.bias"].unsqueeze(1)


def _embeddings(module: GCN, x: Features, graph: Graph) -> Tensor:
    """The hidden units after the second averaging."""
    A = adjacency_tensor(graph)
    return sparse_product(A, relu(graph_convolution(A, x, module.lin1)))


GCN_MODEL = ModelKind(
    "gcn",
    GCNParameters,
    lambda c, i, o: GCN(i, c.hidden, o, c.dropout),
    title="GCN",
    grid=PAPER,
    small={"lr": (0.01,)},
    wide=64,
    search=PAPER_AND_MORE,
    dropout_fields=("dropout",),
    stacked=Family(
        _embed,
        _head,
        equal=("hidden",),
        width=lambda c, classes: 6 * c.hidden + 4 * classes,
        weights=two_layers,
        uses_adjacency=True,
    ),
    hops=lambda c: 3,  # two averagings, and the self-loops of the normalisation
    module=GCN,
    embeddings=_embeddings,
)
