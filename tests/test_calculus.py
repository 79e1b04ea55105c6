"""Identities of the graph calculus, the fixture's energies, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import problems
from plap.calculus import divergence, energy, gradient, objective, p_laplacian
from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.dense import weight_matrix
from problems import FIXTURE, FIXTURE_MU, GENERIC, P_VALUES, PROBLEMS, Problem

every_problem = pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)
generic_problem = pytest.mark.parametrize("make", GENERIC.values(), ids=GENERIC)
every_p = pytest.mark.parametrize("p", P_VALUES)


def edge_function(problem: Problem) -> Tensor:
    """A random function of the entries, with v([i, j]) unrelated to v([j, i])."""
    return problems.features(problem.graph.num_entries, problem.x.shape[1], seed=7)


@every_problem
def test_gradient_is_eq_1(make: Callable[[], Problem]) -> None:
    problem = make()
    graph, f = problem.graph, problem.x
    W = weight_matrix(graph, f.dtype)
    D = W.sum(1)
    result = gradient(f, graph)
    assert result.shape == (graph.num_entries, f.shape[1])
    for e, (i, j) in enumerate(zip(graph.receivers().tolist(), graph.indices.tolist(), strict=True)):
        torch.testing.assert_close(result[e], (W[i, j] / D[j]).sqrt() * f[j] - (W[i, j] / D[i]).sqrt() * f[i])


@every_problem
def test_divergence_is_eq_4(make: Callable[[], Problem]) -> None:
    problem = make()
    graph, v = problem.graph, edge_function(problem)
    W = weight_matrix(graph, v.dtype)
    D = W.sum(1)
    entries = zip(graph.receivers().tolist(), graph.indices.tolist(), strict=True)
    value = {(i, j): v[e] for e, (i, j) in enumerate(entries)}
    expected = torch.zeros_like(problem.x)
    for (i, j), v_ij in value.items():
        expected[i] += (W[i, j] / D[i]).sqrt() * (v_ij - value[j, i])
    torch.testing.assert_close(divergence(v, graph), expected)


@every_problem
def test_divergence_is_minus_the_adjoint_of_the_gradient(make: Callable[[], Problem]) -> None:
    problem = make()
    f, v = problem.x, edge_function(problem)
    inner_edges = (gradient(f, problem.graph) * v).sum()
    inner_nodes = (f * -divergence(v, problem.graph)).sum()
    torch.testing.assert_close(inner_edges, inner_nodes)


@every_problem
def test_divergence_of_gradient_is_minus_twice_the_laplacian(make: Callable[[], Problem]) -> None:
    problem = make()
    expected = -2 * p_laplacian(problem.x, problem.graph, 2)
    torch.testing.assert_close(divergence(gradient(problem.x, problem.graph), problem.graph), expected)


@every_problem
def test_2_laplacian_is_the_normalised_laplacian(make: Callable[[], Problem]) -> None:
    problem = make()
    W = weight_matrix(problem.graph, torch.float64)
    D = W.sum(1)
    root = torch.where(D > 0, D, 1).rsqrt()
    laplacian = torch.diag((D > 0).double()) - root[:, None] * W * root[None, :]
    torch.testing.assert_close(p_laplacian(problem.x, problem.graph, 2), laplacian @ problem.x)


@every_p
@generic_problem
def test_p_laplacian_is_eq_6(make: Callable[[], Problem], p: float) -> None:
    problem = make()
    graph, f = problem.graph, problem.x
    W = weight_matrix(graph, f.dtype)
    D = W.sum(1)
    expected = torch.zeros_like(f)
    for i, j in zip(graph.receivers().tolist(), graph.indices.tolist(), strict=True):
        difference = (W[i, j] / D[i]).sqrt() * f[i] - (W[i, j] / D[j]).sqrt() * f[j]
        expected[i] += (W[i, j] / D[i]).sqrt() * difference.norm() ** (p - 2) * difference
    torch.testing.assert_close(p_laplacian(f, graph, p), expected)


@every_p
@every_problem
def test_energy_is_the_product_of_f_and_its_p_laplacian(make: Callable[[], Problem], p: float) -> None:
    problem = make()
    expected = 0.5 * gradient(problem.x, problem.graph).norm(dim=1).pow(p).sum()
    torch.testing.assert_close(energy(problem.x, problem.graph, p), expected)
    torch.testing.assert_close((problem.x * p_laplacian(problem.x, problem.graph, p)).sum(), expected)


@every_p
@every_problem
def test_derivative_of_the_energy_is_p_times_the_p_laplacian(make: Callable[[], Problem], p: float) -> None:
    problem = make()
    f = problem.x.requires_grad_()
    (slope,) = torch.autograd.grad(energy(f, problem.graph, p), f)
    torch.testing.assert_close(slope, p * p_laplacian(f, problem.graph, p).detach())


@every_p
def test_a_real_function_is_a_vector_function_of_one_channel(p: float) -> None:
    graph = problems.random_graph(8, 0.5, seed=3)
    f, v = problems.features(8)[:, 0], problems.features(graph.num_entries)[:, 0]
    assert gradient(f, graph).equal(gradient(f[:, None], graph)[:, 0])
    assert divergence(v, graph).equal(divergence(v[:, None], graph)[:, 0])
    assert p_laplacian(f, graph, p).equal(p_laplacian(f[:, None], graph, p)[:, 0])
    assert energy(f, graph, p).equal(energy(f[:, None], graph, p))


@pytest.mark.parametrize("p", FIXTURE)
def test_objective_of_the_fixture(p: float) -> None:
    problem, expected = problems.fixture(), FIXTURE[p]
    levels = {expected.L_X: problem.x, expected.L_F1: problems.rows(expected.F1)}
    if expected.F4 is not None and expected.L_F4 is not None:
        levels[expected.L_F4] = problems.rows(expected.F4)
    if expected.F_star is not None and expected.L_star is not None:
        levels[expected.L_star] = problems.rows(expected.F_star)
    for level, f in levels.items():
        value = objective(f, problem.x, problem.graph, p, FIXTURE_MU)
        assert value.item() == pytest.approx(level, abs=2e-9)


@pytest.mark.parametrize("p", [1.5, 2.5])
def test_objective_is_stationary_at_the_fixture_minimiser(p: float) -> None:
    problem = problems.fixture()
    f = problems.rows(FIXTURE[p].F_star).requires_grad_()
    (slope,) = torch.autograd.grad(objective(f, problem.x, problem.graph, p, FIXTURE_MU), f)
    assert slope.abs().max() < 1e-8


@every_p
def test_gradcheck_in_function_weights_p_and_mu(p: float) -> None:
    graph, x = problems.random_graph(6, 0.6, seed=2), problems.features(6, 2, seed=1)

    def everything(f: Tensor, weight: Tensor, p: Tensor, mu: Tensor) -> tuple[Tensor, ...]:
        weighted = problems.per_entry_weight(graph, weight)
        return gradient(f, weighted), p_laplacian(f, weighted, p), objective(f, x, weighted, p, mu)

    inputs = (
        problems.features(6, 2).requires_grad_(),
        graph.weight.clone().requires_grad_(),
        # a difference quotient at p = 1 would need p < 1, which is refused
        torch.tensor(p, dtype=torch.float64, requires_grad=p > 1),
        torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
    )
    assert torch.autograd.gradcheck(everything, inputs)
    assert torch.autograd.gradgradcheck(everything, inputs, fast_mode=True)


def test_gradcheck_of_divergence() -> None:
    graph = problems.random_graph(6, 0.6, seed=2)
    v = problems.features(graph.num_entries, 2).requires_grad_()
    weight = graph.weight.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda v, w: divergence(v, problems.per_entry_weight(graph, w)), (v, weight)
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems.graphs_with_features(), st.sampled_from([1.0, 1.2, 1.5, 2.0]), st.sampled_from([0.1, 2.0]))
def test_values_and_gradients_are_finite_in_float32(problem: Problem, p: float, mu: float) -> None:
    x = problem.x.float()
    f = x.clone().requires_grad_()
    weight = problem.graph.weight.float().requires_grad_()
    graph = problems.per_entry_weight(problem.graph, weight)
    p_tensor = torch.tensor(p, requires_grad=True)
    value = objective(f, x, graph, p_tensor, mu)
    laplacian = p_laplacian(f, graph, p_tensor)
    slopes = torch.autograd.grad([value, laplacian.mean()], [f, weight, p_tensor])
    for result in (value, laplacian, *slopes):
        assert torch.isfinite(result).all()


@pytest.mark.parametrize("p", [2.5, 3.0, 4.0])
@pytest.mark.parametrize("make", [problems.duplicate_rows, problems.zero_rows, problems.self_loop])
def test_second_derivatives_are_finite_at_equal_rows(make: Callable[[], Problem], p: float) -> None:
    problem = make()
    f = problem.x.requires_grad_()
    (slope,) = torch.autograd.grad(energy(f, problem.graph, p), f, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.square().sum(), f)
    assert torch.isfinite(curvature).all()
    assert curvature.abs().max() > 0


def test_curvature_operator_does_not_depend_on_the_size_of_the_function() -> None:
    graph, f = problems.random_graph(8, 0.5, seed=4), problems.features(8).float()
    reference = p_laplacian(f, graph, 1)
    for factor in (2.0**-80, 2.0**80):
        torch.testing.assert_close(p_laplacian(factor * f, graph, 1), reference)


EDGE = Graph.from_edges([(0, 1)])
F = torch.tensor([1.0, 3.0])


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: gradient(torch.zeros(3), EDGE), r"f must have shape \[2\]"),
        (lambda: gradient(torch.zeros(2, 1, 1), EDGE), r"f must have shape .* not \[2, 1, 1\]"),
        (lambda: gradient(torch.zeros(2, 0), EDGE), r"f must have shape"),
        (lambda: gradient(torch.tensor([1, 2]), EDGE), "f must be .* not torch.int64"),
        (lambda: gradient([1.0, 2.0], EDGE), "f must be .* not list"),  # type: ignore[arg-type]
        (lambda: gradient(torch.tensor([1.0, math.nan]), EDGE), r"f\[1\] = nan"),
        (lambda: divergence(torch.zeros(3), EDGE), "v must have shape .* num_entries = 2"),
        (lambda: divergence(torch.tensor([[1.0], [math.inf]]), EDGE), r"v\[1, 0\] = inf"),
        (lambda: p_laplacian(F, EDGE, 0.9), "p must be a finite number of at least 1, not 0.9"),
        (lambda: p_laplacian(F, EDGE, math.nan), "p must be"),
        (lambda: energy(F, EDGE, torch.tensor([2.0, 3.0])), r"p must be one number, not .* \[2\]"),
        (lambda: energy(torch.zeros(5), EDGE, 2), "f must have shape"),
        (lambda: objective(F, F, EDGE, 2, 0.0), "mu must be a positive finite number, not 0"),
        (lambda: objective(F, F, EDGE, 2, math.inf), "mu must be"),
        (lambda: objective(F, torch.zeros(3), EDGE, 2, 1), "x must have shape"),
        (lambda: objective(F, torch.zeros(2, 1), EDGE, 2, 1), "x must have the shape and type of f"),
        (lambda: objective(F, F.double(), EDGE, 2, 1), "x must have the shape and type of f"),
        (lambda: gradient(F, EDGE.edge_index), "graph must be a plap.Graph, not Tensor"),  # type: ignore[arg-type]
        (lambda: divergence(F, EDGE.edge_index), "graph must be a plap.Graph, not Tensor"),  # type: ignore[arg-type]
        (lambda: p_laplacian(F, EDGE.edge_index, 2), "graph must be a plap.Graph"),  # type: ignore[arg-type]
        (lambda: energy(F, EDGE.edge_index, 2), "graph must be a plap.Graph, not Tensor"),  # type: ignore[arg-type]
        (lambda: objective(F, F, EDGE.edge_index, 2, 1), "graph must be a plap.Graph"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_by_name(call: Callable[[], Tensor], names: str) -> None:
    with pytest.raises(InputError, match=names):
        call()
