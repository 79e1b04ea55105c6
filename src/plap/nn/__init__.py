"""Layers and models by PyG's conventions."""

from plap.nn import baselines
from plap.nn.correct_and_smooth import correct_and_smooth
from plap.nn.deep import DeepPGNN
from plap.nn.label_reuse import LabelReuse
from plap.nn.linear import FeatureLinear
from plap.nn.pgnn import PGNN, GCNPlusPGNN, JKNetPlusPGNN
from plap.nn.plaplacian_conv import PLaplacianConv
from plap.nn.robust import RUNG, ElasticGNN, GCNJaccard

__all__ = [
    "PGNN",
    "RUNG",
    "DeepPGNN",
    "ElasticGNN",
    "FeatureLinear",
    "GCNJaccard",
    "GCNPlusPGNN",
    "JKNetPlusPGNN",
    "LabelReuse",
    "PLaplacianConv",
    "baselines",
    "correct_and_smooth",
]
