"""Elastic GNN of Liu et al. (2021): an MLP whose answers are made smooth by an ℓ21 and an ℓ2 norm."""

from __future__ import annotations

from dataclasses import dataclass

from plap.models.kind import ModelKind
from plap.models.parameters import Parameters, integer, number, share
from plap.nn import ElasticGNN


@dataclass(frozen=True)
class ElasticGNNParameters(Parameters):
    """Parameters of elastic-gnn."""

    hidden: int = integer(16)
    """Hidden units."""
    lambda1: float = number(3.0, at_least=0)
    """Weight of the ℓ21 norm."""
    lambda2: float = number(3.0, at_least=0)
    """Weight of the ℓ2 norm."""
    K: int = integer(10)
    """Propagation steps."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""


ELASTIC_GNN_MODEL = ModelKind(
    "elastic-gnn",
    ElasticGNNParameters,
    lambda c, i, o: ElasticGNN(i, c.hidden, o, c.lambda1, c.lambda2, c.K, c.dropout),
    title="Elastic GNN",
    grid={"lambda1": (3.0, 6.0, 9.0), "lambda2": (0.0, 3.0), "lr": (0.01,), "weight_decay": (5e-4,)},
    small={"lambda1": (3.0, 9.0), "lambda2": (3.0,)},
    dropout_fields=("dropout",),
    sparse_features=True,
    hops=lambda c: c.K + 1,
    module=ElasticGNN,
)
