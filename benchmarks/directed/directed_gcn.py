"""GCN on Chameleon and Squirrel as directed graphs: a node averages over itself and what points to it."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from plap.data import load
from plap.models import Parameters

_DATASETS = {2277: "chameleon", 5201: "squirrel"}
"""By their numbers of nodes."""
GRID = {"lr": [0.001, 0.01], "dropout": [0.0, 0.5], "weight_decay": [0.0, 5e-4]}


class DirectedGCN(nn.Module):
    """Two layers."""

    def __init__(self, inputs: int, hidden: int, outputs: int, share: float) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.last = nn.Linear(hidden, outputs)
        self.share = share

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits; the edges that are given are not used."""
        source, target, weight = normalised_edges(x.shape[0])

        def averaged(values: Tensor) -> Tensor:
            return torch.zeros_like(values).index_add(0, target, weight[:, None] * values[source])

        hidden = dropout(relu(averaged(self.first(x))), self.share, self.training)
        return averaged(self.last(hidden))


@cache
def normalised_edges(nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, targets and D^-1/2 A D^-1/2 with self-loops and in-degrees."""
    data = load(_DATASETS[nodes])
    assert data.directed_edge_index is not None
    kept = data.directed_edge_index[:, data.directed_edge_index[0] != data.directed_edge_index[1]]
    loops = torch.arange(nodes).expand(2, nodes)
    source, target = torch.cat([kept, loops], dim=1)
    root = torch.bincount(target, minlength=nodes).float().rsqrt()
    return source, target, root[source] * root[target]


def build(parameters: Parameters, in_channels: int, out_channels: int) -> nn.Module:
    """What plap trains."""
    hidden, share = parameters.hidden, parameters.dropout  # type: ignore[attr-defined]
    return DirectedGCN(in_channels, hidden, out_channels, share)
