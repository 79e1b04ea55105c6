"""Several attention layers on top of each other, the paper's rival on PPI."""

from __future__ import annotations

from dataclasses import dataclass

from plap.models import deep_pgnn
from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, share
from plap.nn.baselines import DeepGAT


@dataclass(frozen=True)
class DeepGATParameters(Parameters):
    """Parameters of deep-gat."""

    hidden: int = integer(16)
    """Hidden units of each head."""
    heads: int = integer(8)
    """Attention heads of all layers but the last."""
    layers: int = integer(3)
    """Attention layers."""
    dropout: float = share(0.5)
    """Share of the hidden units and attention coefficients that is dropped in training."""


DEEP_GAT_MODEL = ModelKind(
    "deep-gat",
    DeepGATParameters,
    lambda c, i, o: DeepGAT(i, c.hidden, o, c.layers, c.heads, c.dropout),
    title="deep GAT",
    label=lambda c: f"GAT {c.heads} head{'' if c.heads == 1 else 's'}",
    grid=deep_pgnn.GRID,
    small=deep_pgnn.SMALL,
    dropout_fields=("dropout",),
    module=DeepGAT,
)
