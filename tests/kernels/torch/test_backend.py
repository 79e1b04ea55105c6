"""What only the plain PyTorch backend does: second derivatives, torch.compile, the published variant."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import problems
from plap.kernels import dense
from plap.kernels.backend import Variant
from plap.kernels.torch.backend import TORCH, aggregation_weights
from plap.penalties import Power
from problems import P_VALUES, PROBLEMS

R_P = torch.tensor([1.5, 2.0, 3.0], dtype=torch.float64)
R_MU = torch.tensor([0.1, 0.4, 1.0], dtype=torch.float64)


@pytest.mark.parametrize("p", P_VALUES)
def test_gradgradcheck(p: float) -> None:
    graph = problems.random_graph(5, 0.6, seed=2)

    def run(x: Tensor, weight: Tensor, mu: Tensor, p: Tensor) -> Tensor:
        return TORCH.propagate(x, problems.per_entry_weight(graph, weight), Power(p), mu, 2)

    inputs = (
        problems.features(10, 2).reshape(2, 5, 2).requires_grad_(),
        graph.weight.clone().requires_grad_(),
        torch.tensor([0.3, 1.0], dtype=torch.float64, requires_grad=True),
        torch.tensor([p, 1.7], dtype=torch.float64, requires_grad=True),
    )
    assert torch.autograd.gradgradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize("eps", [None, 0.4])
@pytest.mark.parametrize("variant", ["paper", "published"])
def test_compiles_to_one_graph(variant: Variant, eps: float | None) -> None:
    problem = problems.zero_rows()
    x = problem.x.expand(3, -1, -1).clone().requires_grad_()
    compiled = torch.compile(TORCH.propagate, fullgraph=True, backend="aot_eager")
    results = [
        f(x, problem.graph, Power(R_P), R_MU, 2, 1.0, eps, variant=variant)
        for f in (compiled, TORCH.propagate)
    ]
    slopes = [torch.autograd.grad(result.square().sum(), x)[0] for result in results]
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(slopes[0], slopes[1])


def published_step(F: Tensor, X: Tensor, W: Tensor, p: float, mu: float) -> Tensor:
    """Published code of 2022, node by node: α of the source, β = 4 μ α / p."""
    n, D = F.shape[0], W.sum(1)
    M = torch.zeros_like(W)
    for i in range(n):
        for j in range(n):
            norm = (W[i, j].sqrt() * (F[i] / D[i].sqrt() - F[j] / D[j].sqrt())).norm() if W[i, j] else 0.0
            M[i, j] = W[i, j] if p == 2 else (W[i, j] * norm ** (p - 2) if norm > 0 else 0.0)
    alpha = [1 / ((M[i].sum() / D[i] if D[i] > 0 else 0) + 2 * mu / p) for i in range(n)]
    result = torch.stack([4 * mu / p * alpha[i] * X[i] for i in range(n)])
    for i in range(n):
        for j in range(n):
            if W[i, j] > 0:
                result[i] += alpha[j] * M[i, j] / (D[i] * D[j]).sqrt() * F[j]
    return result


@pytest.mark.parametrize("name", ["fixture", "random", "isolated_node", "zero_rows", "self_loop"])
def test_published_variant_is_the_published_loop(name: str) -> None:
    problem = PROBLEMS[name]()
    W = dense.weight_matrix(problem.graph, torch.float64)
    x = problem.x.expand(3, -1, -1)
    result = TORCH.propagate(x, problem.graph, Power(R_P), R_MU, 3, variant="published")
    for run, (p, mu) in enumerate(zip(R_P.tolist(), R_MU.tolist(), strict=True)):
        F = problem.x
        for _ in range(3):
            F = published_step(F, problem.x, W, p, mu)
        torch.testing.assert_close(result[run], F)


@pytest.mark.parametrize("name", PROBLEMS)
def test_aggregation_weights_make_the_step(name: str) -> None:
    problem = PROBLEMS[name]()
    graph, x = problem.graph, problem.x.expand(3, -1, -1)
    weights = aggregation_weights(x, graph, Power(R_P), R_MU)
    assert weights.shape == (3, graph.num_entries)
    root = torch.where(graph.degree > 0, graph.degree, 1).double().sqrt()
    # α_i s_i M_ij s_j √D_j / √D_i = α_i M_ij / D_i, whose row sum is 1 − β_i (Eq. 13)
    share = weights * root[graph.indices.long()] / root[graph.receivers()]
    beta = 1 - torch.zeros(3, graph.num_nodes).double().index_add(1, graph.receivers(), share)
    message = weights[:, :, None] * x[:, graph.indices.long()]
    step = beta[:, :, None] * x + torch.zeros_like(x).index_add(1, graph.receivers(), message)
    torch.testing.assert_close(dense.DENSE.propagate(x, graph, Power(R_P), R_MU, 1), step)
