"""Products with dropped features: those of the dropped matrix, values and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_training as tiny
from plap.training.inputs import RunSettings, make_inputs


def features() -> Tensor:
    x = torch.randn(60, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return torch.where(x.abs() < 0.7, 0.0, x)


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr], ids=str)
def test_is_the_product_with_the_dropped_matrix(layout: Any) -> None:
    x, graph = features(), tiny.data().graph
    given = x if layout == torch.strided else x.to_sparse_csr()
    inputs = make_inputs(graph, given, torch.float64, adjacency=False)
    configs = [tiny.config("gat", dropout=rate, seed=seed) for rate, seed in ((0.6, 3), (0.0, 4), (0.6, 5))]
    settings = RunSettings(configs, torch.float64)
    weight = torch.randn(3, 7, 5, dtype=torch.float64, requires_grad=True)
    product = inputs.times_dropped_features(weight, settings, 2, "dropout", layer=1)
    if layout == torch.strided:
        dropped = x * settings.masks(2, 1, settings.column("dropout"), (60, 7))
    else:
        dropped = torch.zeros(3, 60, 7, dtype=torch.float64)
        count = int((x != 0).sum())
        dropped[:, x != 0] = x[x != 0] * settings.masks(2, 1, settings.column("dropout"), (1, count))[:, 0]
    assert torch.equal(dropped[1], x)
    assert not torch.equal(dropped[0] != 0, dropped[2] != 0)
    torch.testing.assert_close(product, torch.bmm(dropped, weight))
    cotangent = torch.randn(3, 60, 5, dtype=torch.float64)
    slopes = torch.autograd.grad(product, weight, cotangent)[0]
    torch.testing.assert_close(slopes, torch.bmm(dropped.transpose(1, 2), cotangent))
