"""APPNP of Gasteiger et al. (2019): an MLP whose answers are propagated by personalised PageRank."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plap.models.kind import Grid, ModelKind, with_strong_decay
from plap.models.parameters import Parameters, integer, number, share
from plap.models.stacked import (
    Family,
    StackedInputs,
    StackedSettings,
    State,
    activated,
    first_linear,
    linear,
    pick,
    two_layers,
)
from plap.nn.baselines import APPNP


@dataclass(frozen=True)
class APPNPParameters(Parameters):
    """Parameters of appnp."""

    hidden: int = integer(16)
    """Hidden units."""
    K: int = integer(10)
    """Propagation steps."""
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
    start = linear(state, "lin2", activated(settings, embedding, epoch))
    alpha = settings.column("alpha")[:, None, None]
    held = alpha * start
    z = start
    for _ in range(settings.common("K")):
        z = torch.addcmul(held, 1 - alpha, inputs.averaged(z))
    return pick(z, rows)


PAPER: Grid = {
    "lr": (0.001, 0.01),
    "dropout": (0.0, 0.5),
    "alpha": (0.1, 0.5, 0.7, 1.0),
    "weight_decay": (0.0, 5e-4),
}
"""The appendix "Hyperparameter Settings"."""

APPNP_MODEL = ModelKind(
    "appnp",
    APPNPParameters,
    lambda c, i, o: APPNP(i, c.hidden, o, c.K, c.alpha, c.dropout),
    title="APPNP",
    grid=PAPER,
    search=with_strong_decay(PAPER),
    small={"lr": (0.01,), "alpha": (0.1, 0.5, 1.0), "weight_decay": (5e-4,)},
    wide=64,
    dropout_fields=("dropout",),
    stacked=Family(
        first_linear("lin1"),
        _head,
        equal=("hidden", "K"),
        width=lambda c, classes: 5 * c.hidden + (2 * c.K + 4) * classes,
        weights=two_layers,
        uses_adjacency=True,
    ),
    hops=lambda c: c.K + 1,
    module=APPNP,
)
