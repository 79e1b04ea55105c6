"""The models of the paper's comparison, as training knows them."""

from __future__ import annotations

import torch

from plap.nn import PGNN, DeepPGNN, GCNPlusPGNN, JKNetPlusPGNN, baselines
from plap.training import stacked
from plap.training.catalogue import ModelKind, register_model
from plap.training.config import RunConfig


def _deep_pgnn(config: RunConfig, in_channels: int, out_channels: int) -> torch.nn.Module:
    return DeepPGNN(
        in_channels, config.hidden, out_channels, config.layers, config.p, config.mu, config.K,
        dropout=config.dropout, residual=config.residual, mlp_layers=config.mlp_layers,
    )  # fmt: skip


_BUILT_IN = (
    ModelKind(
        "pgnn",
        lambda c, i, o: PGNN(i, c.hidden, o, p=c.p, mu=c.mu, K=c.K, dropout=c.dropout),
        uses=("hidden", "p", "mu", "K", "dropout"),
        dropout_fields=("dropout",),
        stacked=stacked.PGNN,
    ),
    ModelKind(
        "mlp",
        lambda c, i, o: baselines.MLP(i, c.hidden, o, c.dropout),
        uses=("hidden", "dropout"),
        dropout_fields=("dropout",),
        stacked=stacked.MLP,
    ),
    ModelKind(
        "gcn",
        lambda c, i, o: baselines.GCN(i, c.hidden, o, c.dropout),
        uses=("hidden", "dropout"),
        dropout_fields=("dropout",),
        stacked=stacked.GCN,
    ),
    ModelKind(
        "sgc", lambda c, i, o: baselines.SGC(i, o, c.K), uses=("K",), dropout_fields=(), stacked=stacked.SGC
    ),
    ModelKind(
        "appnp",
        lambda c, i, o: baselines.APPNP(i, c.hidden, o, c.K, c.alpha, c.dropout),
        uses=("hidden", "K", "alpha", "dropout"),
        dropout_fields=("dropout",),
        stacked=stacked.APPNP,
    ),
    ModelKind(
        "gprgnn",
        lambda c, i, o: baselines.GPRGNN(i, c.hidden, o, c.K, c.alpha, c.dropout, c.dprate),
        uses=("hidden", "K", "alpha", "dropout", "dprate"),
        dropout_fields=("dropout", "dprate"),
        stacked=stacked.GPRGNN,
    ),
    ModelKind(
        "gat",
        lambda c, i, o: baselines.GAT(i, c.hidden, o, c.heads, c.dropout),
        uses=("hidden", "heads", "dropout"),
        dropout_fields=("dropout",),
        sparse_features=True,
    ),
    ModelKind(
        "jknet",
        lambda c, i, o: baselines.JKNet(i, c.hidden, o, c.K, c.alpha, c.dropout),
        uses=("hidden", "K", "alpha", "dropout"),
        dropout_fields=("dropout",),
        sparse_features=True,
    ),
    ModelKind(
        "gcn+pgnn",
        lambda c, i, o: GCNPlusPGNN(i, c.hidden, o, c.p, c.mu, c.K, c.dropout),
        uses=("hidden", "p", "mu", "K", "dropout"),
        dropout_fields=("dropout",),
        sparse_features=True,
    ),
    ModelKind(
        "jknet+pgnn",
        lambda c, i, o: JKNetPlusPGNN(i, c.hidden, o, c.p, c.mu, c.K, alpha=c.alpha, dropout=c.dropout),
        uses=("hidden", "p", "mu", "K", "alpha", "dropout"),
        dropout_fields=("dropout",),
        sparse_features=True,
    ),
    ModelKind(
        "deep-pgnn",
        _deep_pgnn,
        uses=("hidden", "p", "mu", "K", "dropout", "layers", "mlp_layers", "residual"),
        sparse_features=True,
    ),
    ModelKind(
        "deep-gat",
        lambda c, i, o: baselines.DeepGAT(i, c.hidden, o, c.layers, c.heads, c.dropout),
        uses=("hidden", "heads", "layers", "dropout"),
        dropout_fields=("dropout",),
    ),
)

for _kind in _BUILT_IN:
    register_model(_kind)
