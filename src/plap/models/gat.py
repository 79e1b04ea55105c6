"""GAT of Veličković et al. (2018), two layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu

from plap.graph import Graph
from plap.models.kind import Grid, ModelKind, with_strong_decay
from plap.models.parameters import Parameters, integer, share
from plap.models.stacked import Family, StackedInputs, StackedSettings, State, dropped, pick
from plap.nn.adjacency import times
from plap.nn.gat import GAT, edges_with_loops
from plap.nn.linear import Features
from plap.nn.stacked_attention import attend, neighbours_and_self


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


def _embed(state: State, inputs: StackedInputs) -> Tensor:
    return inputs.times_features(state["lin.weight"])


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    if epoch is not None and settings.drops("dropout"):
        embedding = inputs.times_dropped_features(state["lin.weight"], settings, epoch, "dropout", layer=0)
    first = elu(_convolution(state, "conv1", inputs, settings, embedding, epoch, layer=1))
    hidden = torch.bmm(dropped(settings, first, epoch, "dropout", layer=2), state["conv2.lin.weight"])
    return pick(_convolution(state, "conv2", inputs, settings, hidden, epoch, layer=3), rows)


def _convolution(
    state: State,
    name: str,
    inputs: StackedInputs,
    settings: StackedSettings,
    x: Tensor,
    epoch: int | None,
    *,
    layer: int,
) -> Tensor:
    """Attention of every run, [R, N, H C]; the heads of x [R, N, H C] stand beside each other."""
    neighbours = neighbours_and_self(inputs.graph)
    vectors = torch.stack([state[f"{name}.att_src"], state[f"{name}.att_dst"]], 1).squeeze(2)
    runs, _, heads, channels = vectors.shape
    own = torch.eye(heads, dtype=x.dtype, device=x.device)
    # [R, H C, 2 H]: a head's score is a product with the channels of that head alone
    across = (vectors.permute(0, 2, 3, 1).unsqueeze(4) * own[:, None, None]).reshape(runs, -1, 2 * heads)
    mask = None
    if epoch is not None and settings.drops("dropout"):
        entries = neighbours.indices.shape[0]
        mask = settings.masks(epoch, layer, settings.column("dropout"), (entries, heads))
    result = attend(neighbours, x.unflatten(2, (heads, channels)), torch.bmm(x, across), mask)
    return result.flatten(2) + state[f"{name}.bias"].unsqueeze(1)


def _weights(c: GATParameters, features: int, classes: int) -> int:
    hidden = c.heads * c.hidden
    return (features + 3) * hidden + (hidden + 3) * classes


PAPER: Grid = {"lr": (0.001, 0.005), "dropout": (0.0, 0.6), "weight_decay": (0.0, 5e-4)}
"""The appendix "Hyperparameter Settings"."""

GAT_MODEL = ModelKind(
    "gat",
    GATParameters,
    lambda c, i, o: GAT(i, c.hidden, o, c.heads, c.dropout),
    title="GAT",
    grid=PAPER,
    search=with_strong_decay(PAPER),
    small={"lr": (0.005,), "weight_decay": (5e-4,)},
    dropout_fields=("dropout",),
    sparse_features=True,
    stacked=Family(
        _embed,
        _head,
        equal=("hidden", "heads"),
        width=lambda c, classes: 9 * c.heads * c.hidden + 8 * c.heads + 6 * classes,
        edge_width=lambda c: 4 * c.heads + 4,
        weights=_weights,
    ),
    module=GAT,
    edge_weights=_attention,
)
