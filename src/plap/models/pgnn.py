"""pGNN, the paper's model (Eq. 16-18)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plap.graph import Graph
from plap.kernels.registry import propagate_unchecked
from plap.models.kind import Grid, ModelKind, PairStates
from plap.models.parameters import Parameters, integer, number, share
from plap.models.stacked import (
    Family,
    Propagation,
    StackedInputs,
    StackedSettings,
    State,
    activated,
    first_linear,
    linear,
    pick,
    two_layers,
)
from plap.nn import PGNN
from plap.nn.linear import Features
from plap.propagation import propagate


@dataclass(frozen=True)
class PGNNParameters(Parameters):
    """Parameters of pgnn."""

    hidden: int = integer(16)
    """Hidden units."""
    p: float = number(2.0, at_least=1)
    mu: float = number(0.1, above=0)
    K: int = integer(4)
    """Propagation steps."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


PAPER: Grid = {
    "lr": (0.001, 0.01, 0.05),
    "dropout": (0.0, 0.5),
    "mu": (0.01, 0.1, 0.2, 1.0, 10.0),
    "K": (4, 6, 8),
    "weight_decay": (0.0, 5e-4),
}
"""The appendix "Hyperparameter Settings"; p is not searched there: each has a row of its own."""

SMALL: Grid = {"lr": (0.01,), "mu": (0.01, 0.1, 1.0, 10.0), "K": (4,), "weight_decay": (5e-4,)}

PAPER_AND_LARGE_MU: Grid = {
    "p": (1.0, 1.5, 2.0, 2.5),
    "mu": (*PAPER["mu"], 100.0),
    "K": PAPER["K"],
    "lr": PAPER["lr"],
    "dropout": PAPER["dropout"],
    "weight_decay": PAPER["weight_decay"],
}
"""The paper's grid for all of its p, extended by mu = 100, with which the model all but ignores edges that
are of no use."""


def _build(c: PGNNParameters, in_channels: int, out_channels: int) -> torch.nn.Module:
    return PGNN(in_channels, c.hidden, out_channels, p=c.p, mu=c.mu, K=c.K, dropout=c.dropout)


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    result = _propagated(activated(settings, embedding, epoch), inputs.graph, settings)
    return linear(state, "conv.lin", pick(result, rows))


def _propagated(x: Tensor, graph: Graph, settings: StackedSettings) -> Tensor:
    # not plap.propagate: its checks cost a tenth of an epoch, and one run's overflow must not end the batch
    p, mu = settings.column("p", torch.float64), settings.column("mu", torch.float64)
    return propagate_unchecked(x, graph, p, mu, settings.common("K"), budget=settings.propagation_budget)


def _width(c: PGNNParameters, classes: int) -> int:
    return (c.K + 9) * (-(-c.hidden // 8) * 8)


def _edge_weights(module: PGNN, x: Features, graph: Graph) -> Tensor:
    """α D^-1/2 M D^-1/2 of the last step (Eq. 12-13)."""
    weight: Tensor = module(x, graph, return_aggregation_weights=True)[1][1]
    return weight


def _after(module: PGNN, start: Tensor, graph: Graph, steps: int) -> Tensor:
    conv = module.conv
    return propagate(start, graph, mu=conv.mu, K=steps, penalty=conv.penalty, omega=conv.omega, eps=conv.eps)


def _embeddings(module: PGNN, x: Features, graph: Graph) -> Tensor:
    """F(K) of Eq. 17."""
    return _after(module, module.embed(x), graph, module.conv.K)


def _pair_states(module: PGNN, x: Features, graph: Graph) -> PairStates:
    """F after 0, 1, 2 and K steps."""
    start = module.embed(x)
    later = [_after(module, start, graph, steps) for steps in sorted({1, 2, module.conv.K})]
    return PairStates([start, *later], module.conv.lin(later[-1]).softmax(1))


PGNN_MODEL = ModelKind(
    "pgnn",
    PGNNParameters,
    _build,
    title="pGNN",
    label=lambda c: f"pGNN p = {c.p}",
    grid=PAPER,
    small=SMALL,
    search=PAPER_AND_LARGE_MU,
    even_over="p",
    dropout_fields=("dropout",),
    stacked=Family(
        first_linear("lin"),
        _head,
        equal=("hidden", "K"),
        width=_width,
        weights=two_layers,
        propagation=lambda c: Propagation(c.hidden, c.K),
    ),
    hops=lambda c: c.K,
    module=PGNN,
    edge_weights=_edge_weights,
    embeddings=_embeddings,
    pair_states=_pair_states,
)
