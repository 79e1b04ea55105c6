"""The operator that is registered with PyTorch, and the way past it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import plap
import problems
from plap.kernels.fused.backend import FUSED
from plap.kernels.registry import propagate_unchecked


def registered(*arguments: object) -> Tensor:
    result: Tensor = FUSED.operators.forward(*arguments)[0]
    return result


def arguments(
    x: Tensor,
    graph: plap.Graph,
    weight: Tensor,
    p: Tensor,
    mu: Tensor,
    *,
    every: int = 1,
    detach: bool = False,
) -> tuple[Any, ...]:
    everywhere = torch.empty(0, 0, dtype=torch.int64)
    return (
        x, graph.indptr, graph.indices, weight, graph.degree, p, mu, 3, 0.9, 0.0, every, "power", 1.0, detach,
        everywhere,
    )  # fmt: skip


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_plain_call_does_what_the_registered_operator_does(detach: bool, weighted: bool) -> None:
    data = plap.data.csbm(phi=0.5, n=40, f=5, seed=1)
    graph = data.graph

    def run(operator: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        x = data.x.double().unsqueeze(0).requires_grad_()
        weight = graph.weight.double().requires_grad_(weighted)
        p, mu = (torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in (1.5, 0.1))
        result = operator(*arguments(x, graph, weight, p, mu, detach=detach))
        leaves = [x, p, mu, *([weight] if weighted else [])]
        return result, *torch.autograd.grad(result.square().sum(), leaves)

    for plain, other in zip(run(FUSED.operators.eager), run(registered), strict=True):
        assert plain.equal(other)


@pytest.mark.parametrize("every", [0, 1, 2], ids=["none kept", "all kept", "some kept"])
def test_opcheck(every: int) -> None:
    keep = every > 0
    graph = problems.random_graph(30, 0.2, seed=1, weighted=True)
    x = problems.features(2 * graph.num_nodes, 5, seed=1).reshape(2, graph.num_nodes, 5).requires_grad_(keep)
    p = torch.tensor([1.5, 2.0], dtype=torch.float64, requires_grad=keep)
    mu = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=keep)
    weight = graph.weight.clone().requires_grad_(keep)
    torch.library.opcheck(FUSED.operators.forward, arguments(x, graph, weight, p, mu, every=every))


@pytest.mark.parametrize("powers", [(2.0, 2.0), (2.0, 1.5)], ids=["linear", "one linear"])
@pytest.mark.parametrize("K", [1, 3])
def test_a_gradient_of_x_alone_is_the_same(powers: tuple[float, float], K: int) -> None:
    """Linear steps make less of what only other gradients need."""
    graph = problems.random_graph(30, 0.2, seed=1, weighted=True)
    x = problems.features(60, 20, seed=1).reshape(2, 30, 20).requires_grad_()
    p = torch.tensor(powers, dtype=torch.float64)
    mu = torch.tensor([0.1, 0.2], dtype=torch.float64)

    def slope(mu: Tensor) -> Tensor:
        return torch.autograd.grad(propagate_unchecked(x, graph, p, mu, K).sin().sum(), x)[0]

    torch.testing.assert_close(slope(mu), slope(mu.clone().requires_grad_()), rtol=1e-13, atol=1e-13)
