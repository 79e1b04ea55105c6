"""JKNet with a p-Laplacian layer inside."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plap.kernels.registry import propagate_unchecked
from plap.models import pgnn
from plap.models.jknet import JKNET_MODEL, jumped, jumping_weights, jumping_width
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
)
from plap.nn import JKNetPlusPGNN

_STEPS = 10
"""Of APPNP, after the LSTM's attention."""


@dataclass(frozen=True)
class JKNetPlusPGNNParameters(Parameters):
    """Parameters of jknet+pgnn."""

    hidden: int = integer(16)
    """Hidden units."""
    p: float = number(2.0, at_least=1)
    mu: float = number(0.1, above=0)
    K: int = integer(4)
    """Steps of the p-Laplacian layer."""
    alpha: float = number(0.1, at_least=0, at_most=1)
    """Teleport probability."""
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
    layers, hidden = [], activated(settings, embedding, epoch)
    for layer in (1, 2):
        propagated = propagate_unchecked(hidden, inputs.graph, p, mu, settings.common("K"))
        hidden = linear(state, f"conv{layer}.lin", propagated).relu()
        hidden = dropped(settings, hidden, epoch, "dropout", layer=layer)
        layers.append(hidden)
    return jumped(state, inputs, settings, layers, rows, _STEPS)


def _width(c: JKNetPlusPGNNParameters, classes: int) -> int:
    propagation = (c.K + 9) * (-(-c.hidden // 8) * 8)
    return 2 * propagation + 8 * c.hidden + jumping_width(c.hidden, classes)


def _weights(c: JKNetPlusPGNNParameters, features: int, classes: int) -> int:
    return (features + 1 + 2 * (c.hidden + 1)) * c.hidden + jumping_weights(c.hidden, classes)


JKNET_PGNN_MODEL = ModelKind(
    "jknet+pgnn",
    JKNetPlusPGNNParameters,
    lambda c, i, o: JKNetPlusPGNN(i, c.hidden, o, c.p, c.mu, c.K, _STEPS, c.alpha, c.dropout),
    title="JKNet + pGNN",
    label=lambda c: f"JKNet + pGNN {c.p}",
    # The paper gives no grid for the hybrids: JKNet's own, with pGNN's mu and K.
    grid={
        "lr": JKNET_MODEL.grid["lr"],
        "dropout": JKNET_MODEL.grid["dropout"],
        "alpha": JKNET_MODEL.grid["alpha"],
        "mu": pgnn.PAPER["mu"],
        "K": pgnn.PAPER["K"],
        "weight_decay": JKNET_MODEL.grid["weight_decay"],
    },
    small={**pgnn.SMALL, "mu": (0.1, 1.0), "alpha": (0.1, 1.0)},
    dropout_fields=("dropout",),
    sparse_features=True,
    stacked=Family(
        first_linear("lin"),
        _head,
        equal=("hidden", "K"),
        width=_width,
        weights=_weights,
        uses_adjacency=True,
    ),
    module=JKNetPlusPGNN,
)
