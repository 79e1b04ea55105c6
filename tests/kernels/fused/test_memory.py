"""The fused backend within a budget: bit for bit the same numbers, in the memory that was promised."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import problems
from allocations import Allocations
from plap.kernels import row_passes
from plap.kernels.budget import KEEP_ALL, KEEP_NONE, Shape
from plap.kernels.fused.backend import FUSED
from plap.kernels.fused.launcher import KERNELS

GRAPH = problems.random_graph(300, 0.05, seed=1)


def forward_and_backward(
    every: int, *, channels: int, K: int, dtype: torch.dtype, omega: float = 1.0
) -> tuple[list[Tensor], Allocations]:
    """The result and its gradients, every one wanted, and what was allocated for them."""
    x, grad = (problems.features(600, channels, seed).reshape(2, 300, channels).to(dtype) for seed in (2, 3))
    p, mu = torch.tensor([1.4, 2.5], dtype=torch.float64), torch.tensor([0.1, 1.0], dtype=torch.float64)
    graph = (GRAPH.indptr, GRAPH.indices, GRAPH.weight.to(dtype), GRAPH.degree, p, mu)
    with Allocations(x, grad, *graph) as seen:
        saved = row_passes.forward(KERNELS, x, *graph, K, omega, 0.0, every)
        results = [saved.result]
        if every != KEEP_NONE:
            slopes = row_passes.backward(
                KERNELS, grad, saved, x, *graph, omega, 0.0, every, want_weight=True, want_parameter=True
            )  # fmt: skip
            assert slopes.weight is not None
            results += [slopes.x, slopes.weight, slopes.parameter, slopes.mu]
    return results, seen


@pytest.mark.parametrize("omega", [1.0, 0.7])
@pytest.mark.parametrize("channels", [5, 16])
@pytest.mark.parametrize(("K", "every"), [(4, 2), (5, 3), (6, 2), (3, 7)])
def test_recomputing_changes_no_bit(K: int, every: int, channels: int, omega: float) -> None:
    kept, _ = forward_and_backward(KEEP_ALL, channels=channels, K=K, dtype=torch.float32, omega=omega)
    again, _ = forward_and_backward(every, channels=channels, K=K, dtype=torch.float32, omega=omega)
    for expected, result in zip(kept, again, strict=True):
        assert torch.equal(result, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("channels", [5, 16])
@pytest.mark.parametrize("K", [1, 4, 9])
def test_no_way_takes_more_than_it_says(K: int, channels: int, dtype: torch.dtype) -> None:
    shape = Shape(2, 300, channels, GRAPH.num_entries, K, dtype.itemsize)
    for training in (False, True):
        for way in FUSED.ways(shape, training=training):
            results, seen = forward_and_backward(way.every, channels=channels, K=K, dtype=dtype)
            ends = sum(result.numel() * result.element_size() for result in results)
            assert seen.peak - ends <= way.size
            if training:
                assert seen.peak > 0.7 * way.size
