"""RUNG of Hou et al. (2024): an MLP whose answers are propagated with the minimax concave penalty."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plap.kernels.registry import propagate_unchecked
from plap.models.kind import ModelKind
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
from plap.nn import RUNG
from plap.penalties import MCP


@dataclass(frozen=True)
class RUNGParameters(Parameters):
    """Parameters of rung."""

    hidden: int = integer(64)
    """Hidden units."""
    gamma: float = number(6.0, above=0)
    """Length beyond which an edge counts for nothing."""
    mu: float = number(1 / 18, above=0)
    K: int = integer(10)
    """Propagation steps."""
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
    gamma, mu = settings.column("gamma", torch.float64), settings.column("mu", torch.float64)
    result = propagate_unchecked(
        start, inputs.graph, MCP(gamma), mu, settings.common("K"), detach_weights=True
    )
    return pick(result, rows)


RUNG_MODEL = ModelKind(
    "rung",
    RUNGParameters,
    lambda c, i, o: RUNG(i, c.hidden, o, c.gamma, c.mu, c.K, c.dropout),
    title="RUNG",
    # γ, learning rate and weight decay are searched by its authors as well; λ̂ = 0.9 and K = 10 are theirs.
    grid={"gamma": (1.0, 2.0, 3.0, 6.0), "lr": (0.01, 0.05), "weight_decay": (5e-4, 5e-3)},
    small={"lr": (0.05,), "weight_decay": (5e-4,)},
    dropout_fields=("dropout",),
    stacked=Family(
        first_linear("lin1"),
        _head,
        equal=("hidden", "K"),
        width=lambda c, classes: 5 * c.hidden + (c.K + 9) * (-(-classes // 8) * 8),
        weights=two_layers,
    ),
    hops=lambda c: c.K,
    module=RUNG,
)
