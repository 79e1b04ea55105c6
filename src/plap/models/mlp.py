"""A multilayer perceptron, which knows nothing of the edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import relu

from plap.graph import Graph
from plap.models.kind import Grid, ModelKind, PairStates, linked_nodes_differ, with_strong_decay
from plap.models.parameters import Parameters, integer, share
from plap.models.stacked import (
    Family,
    StackedInputs,
    StackedSettings,
    State,
    TwoMaps,
    activated,
    first_linear,
    linear,
    pick,
    two_layers,
)
from plap.nn.baselines import MLP
from plap.nn.linear import Features


@dataclass(frozen=True)
class MLPParameters(Parameters):
    """Parameters of mlp."""

    hidden: int = integer(16)
    """Hidden units."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


PAPER: Grid = {"lr": (0.001, 0.01), "dropout": (0.0, 0.5), "weight_decay": (0.0, 5e-4)}
"""The appendix "Hyperparameter Settings"."""

PAPER_AND_MORE: Grid = with_strong_decay({**PAPER, "lr": (*PAPER["lr"], 0.05)})
"""The paper's grid, extended by pGNN's highest learning rate and strongest weight decay: in a comparison all
get the same ones."""


_MOST_ENTRIES = 20_000_000
"""Of a graph on which a fit that chooses models itself searches this one too."""


def _suits(graph: Graph, y: Tensor, train: Tensor) -> bool:
    return graph.num_entries <= _MOST_ENTRIES and linked_nodes_differ(graph, y, train)


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    return linear(state, "lin2", pick(activated(settings, embedding, epoch), rows))


def _edge_weights(module: MLP, x: Features, graph: Graph) -> Tensor:
    return torch.zeros_like(graph.weight)


def _embeddings(module: MLP, x: Features, graph: Graph) -> Tensor:
    """The hidden units."""
    return relu(module.lin1(x))


def _pair_states(module: MLP, x: Features, graph: Graph) -> PairStates:
    """There is one state, and edges have no part in it."""
    hidden = _embeddings(module, x, graph)
    return PairStates([hidden], module.lin2(hidden).softmax(1))


MLP_MODEL = ModelKind(
    "mlp",
    MLPParameters,
    lambda c, i, o: MLP(i, c.hidden, o, c.dropout),
    title="MLP",
    uses="features alone",
    grid=PAPER,
    small={"lr": (0.01,)},
    wide=64,
    search=PAPER_AND_MORE,
    suits=_suits,
    dropout_fields=("dropout",),
    stacked=Family(
        first_linear("lin1"),
        _head,
        equal=("hidden",),
        width=lambda c, classes: 5 * c.hidden,
        weights=two_layers,
        two_maps=TwoMaps("lin1", "lin2", None),
    ),
    hops=lambda c: 0,
    module=MLP,
    edge_weights=_edge_weights,
    embeddings=_embeddings,
    pair_states=_pair_states,
    exportable=True,
)
