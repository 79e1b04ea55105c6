"""GPRGNN of Chien et al. (2021): APPNP with a learned coefficient for each step."""

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
    dropped,
    first_linear,
    linear,
    pick,
    two_layers,
)
from plap.nn.baselines import GPRGNN


@dataclass(frozen=True)
class GPRGNNParameters(Parameters):
    """Parameters of gprgnn."""

    hidden: int = integer(16)
    """Hidden units."""
    K: int = integer(10)
    """Propagation steps."""
    alpha: float = number(0.1, at_least=0, at_most=1)
    """What the coefficients start from."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""
    dprate: float = share(0.0)
    """Dropout before the propagation."""


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    z = linear(state, "lin2", activated(settings, embedding, epoch))
    z = dropped(settings, z, epoch, "dprate", layer=1)
    gamma = state["gamma"][:, :, None, None]
    result = gamma[:, 0] * pick(z, rows)
    for k in range(1, settings.common("K") + 1):
        z = inputs.averaged(z)
        result = torch.addcmul(result, gamma[:, k], pick(z, rows))
    return result


PAPER: Grid = {
    "lr": (0.001, 0.01, 0.05),
    "dropout": (0.0, 0.5),
    "alpha": (0.0, 0.1, 0.2, 0.5, 0.7, 0.9, 1.0),
    "dprate": (0.0, 0.5, 0.7),
    "weight_decay": (0.0, 5e-4),
}
"""The appendix "Hyperparameter Settings"."""

GPRGNN_MODEL = ModelKind(
    "gprgnn",
    GPRGNNParameters,
    lambda c, i, o: GPRGNN(i, c.hidden, o, c.K, c.alpha, c.dropout, c.dprate),
    title="GPRGNN",
    grid=PAPER,
    search=with_strong_decay(PAPER),
    small={"lr": (0.01,), "alpha": (0.1, 0.5, 0.9), "dprate": (0.5,), "weight_decay": (5e-4,)},
    wide=64,
    dropout_fields=("dropout", "dprate"),
    stacked=Family(
        first_linear("lin1"),
        _head,
        equal=("hidden", "K"),
        width=lambda c, classes: 5 * c.hidden + (3 * c.K + 4) * classes,
        weights=two_layers,
        uses_adjacency=True,
    ),
    hops=lambda c: c.K + 1,
    module=GPRGNN,
)
