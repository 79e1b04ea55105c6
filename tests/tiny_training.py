"""A small graph with features, labels and splits, as every test of training needs one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from plap.data import GraphData, Split, csbm, split
from plap.models import Parameters, find_model, integer, share
from plap.training import RunConfig, build_module
from plap.training.config import OF_TRAINING


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


@dataclass(frozen=True)
class HiddenAndDropout(Parameters):
    """What a model of the tests' own has."""

    hidden: int = integer(16)
    dropout: float = share(0.5)


def config(model: str, **values: Any) -> RunConfig:
    """A configuration with those of the values that the model or training has a field for."""
    known = {*find_model(model).fields, *OF_TRAINING}
    return RunConfig(model, **{name: value for name, value in values.items() if name in known})


def plain_loop(
    config: RunConfig, graph_data: GraphData, split: Masks
) -> tuple[list[float], list[float], torch.nn.Module]:
    """Losses of training and validation, without dropout, and the last module."""
    x = graph_data.x.double()
    module = build_module(config, x.shape[1], 2).double()
    optimizer = torch.optim.Adam(module.parameters(), lr=config.lr, weight_decay=config.weight_decay)
    train, val = [], []
    for _ in range(config.max_epochs):
        module.train()
        optimizer.zero_grad()
        loss = cross_entropy(module(x, graph_data.graph)[split.train], graph_data.y[split.train])
        loss.backward()
        optimizer.step()
        train.append(float(loss.detach()))
        module.eval()
        with torch.no_grad():
            val.append(float(cross_entropy(module(x, graph_data.graph)[split.val], graph_data.y[split.val])))
    return train, val, module
