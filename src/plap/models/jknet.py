"""JKNet of Xu et al. (2018), as in the paper: an LSTM's attention to two GCN layers, then APPNP."""

from __future__ import annotations

from dataclasses import dataclass

from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, number, share
from plap.nn.baselines import JKNet


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


JKNET_MODEL = ModelKind(
    "jknet",
    JKNetParameters,
    lambda c, i, o: JKNet(i, c.hidden, o, c.K, c.alpha, c.dropout),
    title="JKNet",
    grid={
        "lr": (0.001, 0.01),
        "dropout": (0.0, 0.5),
        "alpha": (0.1, 0.5, 0.7, 1.0),
        "weight_decay": (0.0, 5e-4),
    },
    small={"lr": (0.01,), "alpha": (0.1, 0.5), "weight_decay": (5e-4,)},
    dropout_fields=("dropout",),
    sparse_features=True,
    module=JKNet,
)
