"""The operator that is registered with PyTorch, and the way past it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import plap
from plap.kernels.fused.backend import FUSED


def registered(*arguments: object) -> Tensor:
    result: Tensor = FUSED.operators.forward(*arguments)[0]
    return result


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_plain_call_does_what_the_registered_operator_does(detach: bool, weighted: bool) -> None:
    data = plap.data.csbm(phi=0.5, n=40, f=5, seed=1)
    graph = data.graph

    def run(operator: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        x = data.x.double().unsqueeze(0).requires_grad_()
        weight = graph.weight.double().requires_grad_(weighted)
        p, mu = (torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in (1.5, 0.1))
        result = operator(
            x,
            graph.indptr,
            graph.indices,
            weight,
            graph.degree,
            p,
            mu,
            3,
            0.9,
            0.0,
            1,
            "power",
            1.0,
            detach,
            torch.empty(0, 0, dtype=torch.int64),
        )
        leaves = [x, p, mu, *([weight] if weighted else [])]
        return result, *torch.autograd.grad(result.square().sum(), leaves)

    for plain, other in zip(run(FUSED.operators.eager), run(registered), strict=True):
        assert plain.equal(other)
