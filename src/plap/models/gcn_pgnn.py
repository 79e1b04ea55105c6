"""GCN whose edge weights are the aggregation weights of a p-Laplacian layer in front of it."""

from __future__ import annotations

from dataclasses import dataclass

from plap.models import gcn, pgnn
from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, number, share
from plap.nn import GCNPlusPGNN


@dataclass(frozen=True)
class GCNPlusPGNNParameters(Parameters):
    """Parameters of gcn+pgnn."""

    hidden: int = integer(16)
    """Hidden units."""
    p: float = number(2.0, at_least=1)
    mu: float = number(0.1, above=0)
    K: int = integer(4)
    """Steps of the p-Laplacian layer."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


GCN_PGNN_MODEL = ModelKind(
    "gcn+pgnn",
    GCNPlusPGNNParameters,
    lambda c, i, o: GCNPlusPGNN(i, c.hidden, o, c.p, c.mu, c.K, c.dropout),
    title="GCN + pGNN",
    label=lambda c: f"GCN + pGNN {c.p}",
    # The paper gives no grid for the hybrids: GCN's own, with pGNN's mu and K.
    grid={
        "lr": gcn.PAPER["lr"],
        "dropout": gcn.PAPER["dropout"],
        "mu": pgnn.PAPER["mu"],
        "K": pgnn.PAPER["K"],
        "weight_decay": gcn.PAPER["weight_decay"],
    },
    small=pgnn.SMALL,
    dropout_fields=("dropout",),
    sparse_features=True,
    module=GCNPlusPGNN,
)
