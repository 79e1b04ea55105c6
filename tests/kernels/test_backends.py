"""What every backend of propagate owes: the fixture, the dense oracle, the theorems, and finite numbers."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import problems
from plap.calculus import gradient, objective
from plap.graph import Graph
from plap.kernels import dense, registry
from plap.kernels.backend import Backend
from plap.kernels.dense import DENSE
from plap.penalties import Power
from problems import DEGENERATE, FIXTURE, FIXTURE_MU, GENERIC, P_VALUES, PROBLEMS, Problem

EXAMPLES = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "new" else 500
"""Random problems of the longest test: all in ``make test-all``, a quarter in ``make test``."""

BACKENDS = {
    backend.name: backend
    for backend in registry.BACKENDS
    if backend is not DENSE and "cpu" in (backend.capabilities.devices or {"cpu"})
}

every_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
every_p = pytest.mark.parametrize("p", P_VALUES)
every_problem = pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def one_run(
    backend: Backend, problem: Problem, p: float, mu: float, K: int, eps: float | None = None
) -> Tensor:
    return backend.propagate(problem.x[None], problem.graph, Power(numbers(p)), numbers(mu), K, 1.0, eps)[0]


def with_gradients(
    backend: Backend, problem: Problem, p: Tensor, mu: Tensor, K: int, omega: float, eps: float | None
) -> list[Tensor]:
    """The result for one run per p, and its gradients in x, weights, p and mu against a fixed cotangent."""
    x = torch.stack([problem.x * (1 + run) for run in range(len(p))]).requires_grad_()
    weight = problem.graph.weight.clone().requires_grad_()
    p, mu = p.clone().requires_grad_(), mu.clone().requires_grad_()
    result = backend.propagate(
        x, problems.per_entry_weight(problem.graph, weight), Power(p), mu, K, omega, eps
    )
    cotangent = problems.features(result.numel(), 1, seed=5).reshape(result.shape)
    return [result.detach(), *torch.autograd.grad(result, [x, weight, p, mu], cotangent)]


@every_backend
@pytest.mark.parametrize("p", FIXTURE)
def test_fixture(backend: Backend, p: float) -> None:
    problem, expected = problems.fixture(), FIXTURE[p]
    x = problem.x[None].requires_grad_()
    weight = problem.graph.weight.clone().requires_grad_()
    p_tensor, mu = numbers(p).requires_grad_(), numbers(FIXTURE_MU).requires_grad_()
    F1 = backend.propagate(x, problems.per_entry_weight(problem.graph, weight), Power(p_tensor), mu, 1)
    dx, dw, dp, dmu = torch.autograd.grad(F1, [x, weight, p_tensor, mu], problems.fixture_cotangent()[None])

    torch.testing.assert_close(F1[0].detach(), problems.rows(expected.F1), rtol=0, atol=1e-10)
    assert dp.item() == pytest.approx(expected.p_grad, abs=1e-9)
    assert dmu.item() == pytest.approx(expected.mu_grad, abs=1e-9)
    if expected.F_grad is not None and expected.X_grad is not None:
        total = problems.rows(expected.F_grad) + problems.rows(expected.X_grad)
        torch.testing.assert_close(dx[0], total, rtol=0, atol=1e-9)
    if expected.w_grad is not None:
        torch.testing.assert_close(dw, numbers(*expected.w_grad), rtol=0, atol=1e-9)
    F4 = one_run(backend, problems.fixture(), p, FIXTURE_MU, K=4)
    if expected.F4 is not None:
        torch.testing.assert_close(F4, problems.rows(expected.F4), rtol=0, atol=1e-10)
    if expected.L_F4 is not None:
        level = objective(F4, problem.x.detach(), problem.graph, p, FIXTURE_MU)
        assert level.item() == pytest.approx(expected.L_F4, abs=1e-9)


@every_backend
@pytest.mark.parametrize(("omega", "eps"), [(1.0, None), (0.6, None), (1.0, 0.5)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_agrees_with_the_dense_oracle(backend: Backend, name: str, omega: float, eps: float | None) -> None:
    make = PROBLEMS[name]
    # two equal rows differ by some rounding after a step, and M = w ν^(1/4) makes 1e-8 of 1e-32
    tolerance = 2e-6 if name in DEGENERATE else 1e-9
    mu = torch.linspace(0.1, 1.0, len(P_VALUES), dtype=torch.float64)
    results = with_gradients(backend, make(), numbers(*P_VALUES), mu, 3, omega, eps)
    expected = with_gradients(DENSE, make(), numbers(*P_VALUES), mu, 3, omega, eps)
    for result, oracle in zip(results, expected, strict=True):
        torch.testing.assert_close(result, oracle, rtol=tolerance, atol=tolerance)


@every_backend
@every_p
def test_float32_agrees_with_the_dense_oracle(backend: Backend, p: float) -> None:
    problem = GENERIC["random"]()
    result = backend.propagate(
        problem.x[None].float(), problem.graph, Power(torch.tensor([p])), torch.tensor([0.1]), 4
    )
    assert result.dtype == torch.float32
    expected = one_run(DENSE, problem, p, 0.1, K=4)
    torch.testing.assert_close(result[0].double(), expected, rtol=1e-4, atol=1e-5)


@every_backend
@every_p
def test_gradcheck(backend: Backend, p: float) -> None:
    graph = problems.random_graph(5, 0.6, seed=2)

    def run(x: Tensor, weight: Tensor, mu: Tensor, p: Tensor) -> Tensor:
        return backend.propagate(x, problems.per_entry_weight(graph, weight), Power(p), mu, 2)

    inputs = (
        problems.features(10, 2).reshape(2, 5, 2).requires_grad_(),
        graph.weight.clone().requires_grad_(),
        numbers(0.3, 1.0).requires_grad_(),
        numbers(p, 1.7).requires_grad_(),
    )
    assert torch.autograd.gradcheck(run, inputs)


@every_backend
@every_problem
def test_p_2_is_the_linear_recursion_and_its_limit_theorem_1(
    backend: Backend, make: Callable[[], Problem]
) -> None:
    problem, mu = make(), 0.5
    W = dense.weight_matrix(problem.graph, torch.float64)
    D = W.sum(1)
    root = torch.where(D > 0, D, 1).rsqrt()
    walk, linked = root[:, None] * W * root[None, :], (D > 0)[:, None]
    F = problem.x
    for _ in range(3):
        F = torch.where(linked, (walk @ F + mu * problem.x) / (1 + mu), problem.x)
    torch.testing.assert_close(one_run(backend, problem, 2.0, mu, K=3), F)

    laplacian = torch.diag((D > 0).double()) - walk
    limit = torch.linalg.solve(laplacian + mu * torch.eye(len(D)).double(), mu * problem.x)
    torch.testing.assert_close(one_run(backend, problem, 2.0, mu, K=120), limit)


@every_backend
@every_p
@every_problem
def test_relabelling_the_nodes_relabels_the_result(
    backend: Backend, make: Callable[[], Problem], p: float
) -> None:
    problem = make()
    graph, n = problem.graph, problem.graph.num_nodes
    new_label = torch.from_numpy(np.random.default_rng(3).permutation(n))
    relabelled = Graph.from_edge_index(
        new_label[graph.edge_index], graph.weight, n, symmetrize="error", self_loops="keep"
    )
    x = torch.empty_like(problem.x)
    x[new_label] = problem.x
    result = one_run(backend, Problem(relabelled, x), p, 0.2, K=3)
    torch.testing.assert_close(result[new_label], one_run(backend, problem, p, 0.2, K=3))


@every_backend
@every_p
@every_problem
def test_scaling_laws(backend: Backend, make: Callable[[], Problem], p: float) -> None:
    problem, mu, c = make(), 0.3, 8.0
    F = one_run(backend, problem, p, mu, K=3)
    heavier = problems.per_entry_weight(problem.graph, c * problem.graph.weight)
    torch.testing.assert_close(one_run(backend, Problem(heavier, problem.x), p, mu, K=3), F)
    scaled = one_run(backend, Problem(problem.graph, c * problem.x), p, mu, K=3)
    torch.testing.assert_close(scaled, c * one_run(backend, problem, p, mu * c ** (2 - p), K=3))


def clamped_objective(F: Tensor, problem: Problem, p: float, mu: float, eps: float) -> Tensor:
    """L of Eq. 8 with ρ(ν) of numerics §2 in place of ν^(p/2)."""
    nu = gradient(F, problem.graph).square().sum(1)
    below = p / 2 * eps ** (p - 2) * nu + (1 - p / 2) * eps**p
    rho = torch.where(nu >= eps**2, nu ** (p / 2), below)
    return 0.5 * rho.sum() + mu * (F - problem.x).square().sum()


@every_backend
@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("p", [p for p in P_VALUES if p <= 2])
@every_problem
def test_clamped_energy_descends_by_the_margin(
    backend: Backend, make: Callable[[], Problem], p: float, mu: float
) -> None:
    problem, eps = make(), 0.2
    F = problem.x
    level = clamped_objective(F, problem, p, mu, eps)
    for K in range(1, 9):
        following = one_run(backend, problem, p, mu, K, eps)
        next_level = clamped_objective(following, problem, p, mu, eps)
        margin = mu * (following - F).square().sum()
        assert next_level <= level - margin + 1e-12 * (1 + level)
        F, level = following, next_level


@every_backend
@every_p
def test_a_node_without_edges_keeps_its_input(backend: Backend, p: float) -> None:
    lone, empty = problems.isolated_node(), problems.no_edges()
    assert one_run(backend, lone, p, 0.1, K=4)[2].equal(lone.x[2])
    assert not one_run(backend, lone, p, 0.1, K=4)[0].equal(lone.x[0])
    assert one_run(backend, empty, p, 0.1, K=4).equal(empty.x)


@every_backend
@pytest.mark.parametrize("p", [p for p in P_VALUES if p < 2])
def test_rows_equal_but_for_rounding_are_cut_like_equal_rows(backend: Backend, p: float) -> None:
    problem = problems.duplicate_rows()
    nudged = problem.x.clone()
    nudged[3] *= 1 + 2.0**-52
    assert not nudged.equal(problem.x)
    result = one_run(backend, Problem(problem.graph, nudged), p, 0.1, K=1)
    torch.testing.assert_close(result, one_run(backend, problem, p, 0.1, K=1))


@every_backend
@every_p
@pytest.mark.parametrize("make", DEGENERATE.values(), ids=DEGENERATE)
def test_runs_are_independent(backend: Backend, make: Callable[[], Problem], p: float) -> None:
    problem = make()
    x = torch.stack([problem.x, 2 * problem.x, problem.x.flip(0)])
    together = backend.propagate(x, problem.graph, Power(numbers(p, 2.0, 3.5)), numbers(0.1, 0.5, 2.0), 2)
    for run, (p_run, mu_run) in enumerate([(p, 0.1), (2.0, 0.5), (3.5, 2.0)]):
        alone = one_run(backend, Problem(problem.graph, x[run]), p_run, mu_run, K=2)
        torch.testing.assert_close(together[run], alone)


@every_backend
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    problem=problems.graphs_with_features(),
    p=st.sampled_from(P_VALUES),
    mu=st.sampled_from([0.01, 0.1, 10.0]),
    K=st.integers(1, 4),
    eps=st.sampled_from([None, None, 0.1]),
)
def test_values_and_gradients_are_finite_in_float32(
    backend: Backend, problem: Problem, p: float, mu: float, K: int, eps: float | None
) -> None:
    x = problem.x.float()[None].requires_grad_()
    weight = problem.graph.weight.float().requires_grad_()
    p_tensor, mu_tensor = torch.tensor([p], requires_grad=True), torch.tensor([mu], requires_grad=True)
    result = backend.propagate(
        x, problems.per_entry_weight(problem.graph, weight), Power(p_tensor), mu_tensor, K, 1.0, eps
    )
    assert torch.isfinite(result).all()
    slopes = torch.autograd.grad(result.mean(), [x, weight, p_tensor, mu_tensor])
    for name, slope in zip(["x", "weight", "p", "mu"], slopes, strict=True):
        assert torch.isfinite(slope).all(), f"gradient in {name}"
