"""GCN-Jaccard of Wu et al. (2019): GCN without the edges whose ends have no features in common."""

from __future__ import annotations

from dataclasses import dataclass

from plap.models.gcn import PAPER
from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, share
from plap.nn import GCNJaccard


@dataclass(frozen=True)
class GCNJaccardParameters(Parameters):
    """Parameters of gcn-jaccard."""

    hidden: int = integer(16)
    """Hidden units."""
    threshold: float = share(0.01)
    """An edge is kept if the Jaccard index of its ends' features is greater."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


GCN_JACCARD_MODEL = ModelKind(
    "gcn-jaccard",
    GCNJaccardParameters,
    lambda c, i, o: GCNJaccard(i, c.hidden, o, c.threshold, c.dropout),
    title="GCN-Jaccard",
    grid={"threshold": (0.01, 0.03, 0.05), **PAPER},
    small={"threshold": (0.01, 0.05), "lr": (0.01,), "weight_decay": (5e-4,), "dropout": (0.5,)},
    dropout_fields=("dropout",),
    sparse_features=True,
    hops=lambda c: 3,  # two averagings, and the self-loops of the normalisation
    module=GCNJaccard,
)
