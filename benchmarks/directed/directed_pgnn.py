"""pGNN with the operator of the published code, on Chameleon and Squirrel as directed graphs.

plap's graphs are undirected, because the theory needs symmetric weights. This model ignores the graph that it
is given and takes the edges as the files have them, to find out what the paper's numbers come from. An edge
j → i sends from j to i; degrees are in-degrees; α is the sender's, and β is twice that of the paper's Eq. 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from plap.data import load
from plap.models import Parameters, integer, number, share

_DATASETS = {2277: "chameleon", 5201: "squirrel"}
"""By their numbers of nodes."""


@dataclass(frozen=True)
class DirectedParameters(Parameters):
    """Parameters of pGNN."""

    hidden: int = integer(16)
    p: float = number(2.0, at_least=1)
    mu: float = number(0.1, above=0)
    K: int = integer(4)
    dropout: float = share(0.5)


PARAMETERS = DirectedParameters
GRID = {
    "lr": [0.001, 0.01, 0.05],
    "dropout": [0.0, 0.5],
    "mu": [0.01, 0.1, 0.2, 1.0, 10.0],
    "K": [4, 6, 8],
    "weight_decay": [0.0, 5e-4],
}


class DirectedPGNN(nn.Module):
    """Linear, ReLU, dropout, K steps, linear."""

    def __init__(self, parameters: DirectedParameters, inputs: int, outputs: int) -> None:
        super().__init__()
        self.settings = parameters
        self.first = nn.Linear(inputs, parameters.hidden)
        self.last = nn.Linear(parameters.hidden, outputs)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits; the edges that are given are not used."""
        source, target = directed_edges(x.shape[0])
        start = dropout(relu(self.first(x)), self.settings.dropout, self.training)
        state = start
        for _ in range(self.settings.K):
            state = step(state, start, source, target, self.settings.p, self.settings.mu)
        logits: Tensor = self.last(state)
        return logits


def step(state: Tensor, start: Tensor, source: Tensor, target: Tensor, p: float, mu: float) -> Tensor:
    """One step of the published code on directed edges of weight 1."""
    count = state.shape[0]
    degree = torch.zeros(count, dtype=state.dtype).index_add(0, target, torch.ones_like(state[source, 0]))
    root = torch.where(degree > 0, degree, 1).rsqrt() * (degree > 0)
    scaled = root[:, None] * state
    squared = (scaled[source] - scaled[target]).square().sum(1)
    some = squared > 0
    conductance = torch.where(some, torch.where(some, squared, 1) ** (p / 2 - 1), float(p == 2))
    total = torch.zeros_like(degree).index_add(0, target, conductance)
    alpha = 1 / (root.square() * total + 2 * mu / p)
    message = (alpha[source] * conductance)[:, None] * scaled[source]
    received = torch.zeros_like(state).index_add(0, target, message)
    return root[:, None] * received + (4 * mu / p * alpha)[:, None] * start


@cache
def directed_edges(nodes: int) -> tuple[Tensor, Tensor]:
    """Sources and targets of the edges as the files have them."""
    data = load(_DATASETS[nodes])
    assert data.directed_edge_index is not None
    source, target = data.directed_edge_index
    return source, target


def build(parameters: DirectedParameters, in_channels: int, out_channels: int) -> nn.Module:
    """What plap trains."""
    return DirectedPGNN(parameters, in_channels, out_channels)
