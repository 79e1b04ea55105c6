"""The models that can be trained by name, one file each: parameters, grids, label, builder, stacked form."""

from plap.models import (
    appnp,
    deep_gat,
    deep_pgnn,
    elastic_gnn,
    gat,
    gcn,
    gcn_jaccard,
    gcn_pgnn,
    gprgnn,
    jknet,
    jknet_pgnn,
    mlp,
    pgnn,
    rung,
    sage,
    sgc,
)
from plap.models.kind import Architecture, Grid, ModelKind, PairStates
from plap.models.parameters import Parameters, choice, integer, number, share, switch
from plap.models.registry import (
    find_model,
    model_names,
    model_of,
    models_with,
    register_model,
    suitable_models,
)

register_model(pgnn.PGNN_MODEL)
register_model(mlp.MLP_MODEL)
register_model(gcn.GCN_MODEL)
register_model(sage.SAGE_MODEL)
register_model(sgc.SGC_MODEL)
register_model(appnp.APPNP_MODEL)
register_model(gprgnn.GPRGNN_MODEL)
register_model(gat.GAT_MODEL)
register_model(jknet.JKNET_MODEL)
register_model(gcn_pgnn.GCN_PGNN_MODEL)
register_model(jknet_pgnn.JKNET_PGNN_MODEL)
register_model(deep_pgnn.DEEP_PGNN_MODEL)
register_model(deep_gat.DEEP_GAT_MODEL)
register_model(rung.RUNG_MODEL)
register_model(elastic_gnn.ELASTIC_GNN_MODEL)
register_model(gcn_jaccard.GCN_JACCARD_MODEL)

__all__ = [
    "Architecture",
    "Grid",
    "ModelKind",
    "PairStates",
    "Parameters",
    "choice",
    "find_model",
    "integer",
    "model_names",
    "model_of",
    "models_with",
    "number",
    "register_model",
    "share",
    "suitable_models",
    "switch",
]
