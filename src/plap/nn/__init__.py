"""Layers and models by PyG's conventions."""

from plap.nn.linear import FeatureLinear
from plap.nn.plaplacian_conv import PLaplacianConv
from plap.nn.pgnn import PGNN

__all__ = ["PGNN", "FeatureLinear", "PLaplacianConv"]
