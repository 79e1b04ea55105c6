"""The oracle against the hand-checked fixture and its own derivatives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import problems
from plap.kernels import dense
from plap.penalties import Power
from problems import FIXTURE, FIXTURE_MU, P_VALUES


@pytest.mark.parametrize("p", FIXTURE)
def test_one_step_of_the_fixture_with_every_gradient(p: float) -> None:
    problem, expected = problems.fixture(), FIXTURE[p]
    F, X = problem.x.clone().requires_grad_(), problem.x.clone().requires_grad_()
    weight = problem.graph.weight.clone().requires_grad_()
    p_tensor = torch.tensor(p, dtype=torch.float64, requires_grad=True)
    mu = torch.tensor(FIXTURE_MU, dtype=torch.float64, requires_grad=True)
    W = dense.weight_matrix(problems.per_entry_weight(problem.graph, weight), torch.float64)
    F1 = dense.step(F, X, W, Power(p_tensor), mu)
    slopes = torch.autograd.grad(F1, [F, X, weight, p_tensor, mu], problems.fixture_cotangent())
    F_grad, X_grad, w_grad, p_grad, mu_grad = slopes

    torch.testing.assert_close(F1.detach(), problems.rows(expected.F1), rtol=0, atol=1e-10)
    assert mu_grad.item() == pytest.approx(expected.mu_grad, abs=1e-9)
    assert p_grad.item() == pytest.approx(expected.p_grad, abs=1e-9)
    if expected.F_grad is not None:
        torch.testing.assert_close(F_grad, problems.rows(expected.F_grad), rtol=0, atol=1e-9)
    if expected.X_grad is not None:
        torch.testing.assert_close(X_grad, problems.rows(expected.X_grad), rtol=0, atol=1e-9)
    if expected.w_grad is not None:
        numbers = torch.tensor(expected.w_grad, dtype=torch.float64)
        torch.testing.assert_close(w_grad, numbers, rtol=0, atol=1e-9)


@pytest.mark.parametrize("p", [1.5, 2.5])
def test_the_fixture_minimiser_is_a_fixed_point(p: float) -> None:
    problem, minimiser = problems.fixture(), problems.rows(FIXTURE[p].F_star)
    W = dense.weight_matrix(problem.graph, torch.float64)
    stepped = dense.step(minimiser, problem.x, W, Power(p), torch.tensor(FIXTURE_MU).double())
    torch.testing.assert_close(stepped, minimiser, rtol=0, atol=1e-8)


@pytest.mark.parametrize("eps", [None, 0.4])
@pytest.mark.parametrize("p", P_VALUES)
def test_gradcheck_and_gradgradcheck(p: float, eps: float | None) -> None:
    graph = problems.random_graph(5, 0.6, seed=2)

    def run(x: Tensor, weight: Tensor, mu: Tensor, p: Tensor) -> Tensor:
        return dense.DENSE.propagate(x, problems.per_entry_weight(graph, weight), Power(p), mu, 2, 1.0, eps)

    inputs = (
        problems.features(5, 2).unsqueeze(0).requires_grad_(),
        graph.weight.clone().requires_grad_(),
        torch.tensor([0.3], dtype=torch.float64, requires_grad=True),
        # a clamped edge jumps from eps to its true norm where p passes 2, unless M = W there
        torch.tensor([p], dtype=torch.float64, requires_grad=p != 2 or eps is None),
    )
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs, fast_mode=True)
