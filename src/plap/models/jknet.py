"""JKNet of Xu et al. (2018), as in the paper: an LSTM's attention to two GCN layers, then APPNP."""

from __future__ import annotations

from collections.abc import Sequence
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
    linear,
    pick,
)
from plap.nn.baselines import JKNet
from plap.nn.jknet import LSTM_LAYERS
from plap.nn.stacked_lstm import Weights, attended


@dataclass(frozen=True)
class JKNetParameters(Parameters):
    """Parameters of jknet."""

    hidden: int = integer(16)
    """Hidden units."""
    K: int = integer(10)
    """Propagation steps."""
    alpha: float = number(0.1, at_least=0, at_most=1)
    """Teleport probability."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


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
    first = activated(settings, embedding, epoch)
    second = inputs.averaged(torch.bmm(first, state["lin2.weight"])) + state["lin2.bias"].unsqueeze(1)
    second = dropped(settings, second.relu(), epoch, "dropout", layer=1)
    return jumped(state, inputs, settings, [first, second], rows, settings.common("K"))


def jumped(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    layers: Sequence[Tensor],
    rows: Tensor,
    steps: int,
) -> Tensor:
    """:class:`plap.nn.jknet.JumpingHead` of every run, at ``rows``."""
    start = attended(layers, _lstm_weights(state))
    alpha = settings.column("alpha")[:, None, None]
    held = alpha * start
    z = start
    for _ in range(steps):
        z = torch.addcmul(held, 1 - alpha, inputs.averaged(z))
    return linear(state, "head.lin", pick(z, rows))


def _lstm_weights(state: State) -> Weights:
    def both(name: str) -> Tensor:
        return torch.cat([state[f"head.jump.lstm.{name}{way}"] for way in ("", "_reverse")])

    bias = both("bias_ih_l0") + both("bias_hh_l0")
    attention = torch.cat(state["head.jump.att.weight"].chunk(2, 1))
    return Weights(both("weight_ih_l0"), both("weight_hh_l0"), bias.unsqueeze(1), attention)


def jumping_width(hidden: int, classes: int) -> int:
    """Numbers per node that the LSTM and the steps after it hold."""
    units = LSTM_LAYERS * hidden // 2
    return 40 * units + 12 * hidden + 2 * classes


def jumping_weights(hidden: int, classes: int) -> int:
    """Weights from the layers to the logits."""
    units = LSTM_LAYERS * hidden // 2
    return 8 * units * (hidden + units + 2) + 2 * units + 1 + (hidden + 1) * classes


PAPER: Grid = {
    "lr": (0.001, 0.01),
    "dropout": (0.0, 0.5),
    "alpha": (0.1, 0.5, 0.7, 1.0),
    "weight_decay": (0.0, 5e-4),
}
"""The appendix "Hyperparameter Settings"."""

JKNET_MODEL = ModelKind(
    "jknet",
    JKNetParameters,
    lambda c, i, o: JKNet(i, c.hidden, o, c.K, c.alpha, c.dropout),
    title="JKNet",
    grid=PAPER,
    search=with_strong_decay(PAPER),
    small={"lr": (0.01,), "alpha": (0.1, 0.5), "weight_decay": (5e-4,)},
    wide=64,
    dropout_fields=("dropout",),
    sparse_features=True,
    stacked=Family(
        _embed,
        _head,
        equal=("hidden", "K"),
        width=lambda c, classes: 8 * c.hidden + jumping_width(c.hidden, classes),
        weights=lambda c, features, classes: (
            (features + 1 + c.hidden + 1) * c.hidden + jumping_weights(c.hidden, classes)
        ),
        uses_adjacency=True,
    ),
    module=JKNet,
)
