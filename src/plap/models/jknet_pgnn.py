"""JKNet with a p-Laplacian layer inside."""

from __future__ import annotations

from dataclasses import dataclass

from plap.models import pgnn
from plap.models.jknet import JKNET_MODEL
from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, number, share
from plap.nn import JKNetPlusPGNN


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


JKNET_PGNN_MODEL = ModelKind(
    "jknet+pgnn",
    JKNetPlusPGNNParameters,
    lambda c, i, o: JKNetPlusPGNN(i, c.hidden, o, c.p, c.mu, c.K, alpha=c.alpha, dropout=c.dropout),
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
    module=JKNetPlusPGNN,
)
