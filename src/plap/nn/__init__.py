"""Layers and models by PyG's conventions."""

from plap.nn import baselines
from plap.nn.linear import FeatureLinear
from plap.nn.pgnn import PGNN
from plap.nn.plaplacian_conv import PLaplacianConv

__all__ = ["PGNN", "FeatureLinear", "PLaplacianConv", "baselines"]
