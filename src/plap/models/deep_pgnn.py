"""Several p-Laplacian layers on top of each other, as the paper has them for PPI and ogbn-arxiv."""

from __future__ import annotations

from dataclasses import dataclass

from plap.models.kind import Grid, ModelKind
from plap.models.parameters import Parameters, integer, number, share, switch
from plap.nn import DeepPGNN


@dataclass(frozen=True)
class DeepPGNNParameters(Parameters):
    """Parameters of deep-pgnn."""

    hidden: int = integer(16)
    """Hidden units."""
    p: float = number(2.0, at_least=1)
    mu: float = number(0.1, above=0)
    K: int = integer(4)
    """Steps of each p-Laplacian layer."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""
    layers: int = integer(3)
    """p-Laplacian layers."""
    mlp_layers: int = integer(0, at_least=0)
    """Linear layers in front of them."""
    residual: bool = switch(False)
    """Whether layers add their input to their output."""


# The paper says how the deep models are made and nothing of their training: this grid is ours.
GRID: Grid = {"lr": (0.005, 0.01), "dropout": (0.0, 0.5), "weight_decay": (0.0, 5e-4)}
SMALL: Grid = {"lr": (0.01,), "weight_decay": (0.0,)}


def _build(c: DeepPGNNParameters, in_channels: int, out_channels: int) -> DeepPGNN:
    return DeepPGNN(
        in_channels, c.hidden, out_channels, c.layers, c.p, c.mu, c.K,
        dropout=c.dropout, residual=c.residual, mlp_layers=c.mlp_layers,
    )  # fmt: skip


def _label(c: DeepPGNNParameters) -> str:
    return f"pGNN {c.p} + residual {c.layers}" if c.residual else f"pGNN p = {c.p}, {c.hidden} units"


DEEP_PGNN_MODEL = ModelKind(
    "deep-pgnn",
    DeepPGNNParameters,
    _build,
    title="deep pGNN",
    label=_label,
    grid=GRID,
    small=SMALL,
    sparse_features=True,
    module=DeepPGNN,
)
