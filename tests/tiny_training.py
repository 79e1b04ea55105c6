"""A small graph with features, labels and splits, as every test of training needs one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plap.data import GraphData, Split, csbm, split


@dataclass(frozen=True)
class Masks:
    """A split without a test mask: whoever reads one fails."""

    train: Tensor
    val: Tensor


def data(nodes: int = 60, features: int = 12, phi: float = 0.5, seed: int = 0) -> GraphData:
    return csbm(phi=phi, n=nodes, f=features, seed=seed)


def masks(y: Tensor, seed: int = 0) -> Masks:
    drawn: Split = split(y, rates=(0.4, 0.3, 0.3), seed=seed)
    return Masks(drawn.train, drawn.val)


def multilabel(graph_data: GraphData) -> Tensor:
    """Three labels a node that the features tell something about."""
    generator = torch.Generator().manual_seed(3)
    directions = torch.randn(graph_data.x.shape[1], 3, generator=generator)
    return (graph_data.x.to_dense() @ directions > 0).float()
