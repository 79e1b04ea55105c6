"""Penalties: their formulas, every backend against the dense formula, gradients, descent, and bad input."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import plap
import problems
from allocations import Allocations
from penalty_samples import ON_CPU, OTHERS, PENALTIES, numbers, values_and_slopes
from plap.kernels.backend import Backend
from plap.kernels.dense import DENSE, step, weight_matrix
from plap.penalties import (
    BUILT_IN,
    MCP,
    SCAD,
    Cauchy,
    Geman,
    Huber,
    Penalty,
    Power,
    Welsch,
)
from problems import DEGENERATE, GENERIC, PROBLEMS, Problem

A = 3.7
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
every_other = pytest.mark.parametrize("penalty", OTHERS, ids=repr)
every_backend = pytest.mark.parametrize(
    "backend", [b for b in ON_CPU if b is not DENSE], ids=lambda b: b.name
)


def rho_of(penalty: Penalty, y: float) -> float:
    """ρ as the literature has it, by plain arithmetic."""
    g = float(penalty.parameter)
    match penalty:
        case Power():
            return float(y**g)
        case MCP():
            return y - y * y / (2 * g) if y < g else g / 2
        case SCAD():
            if y <= g:
                return y
            if y <= A * g:
                return (2 * A * g * y - y * y - g * g) / (2 * (A - 1) * g)
            return g * (A + 1) / 2
        case Huber():
            return y * y / 2 if y <= g else g * y - g * g / 2
        case Welsch():
            return g * g / 2 * (1 - math.exp(-y * y / (g * g)))
        case Geman():
            return y * y / 2 / (1 + y * y / (g * g))
        case Cauchy():
            return g * g / 2 * math.log(1 + y * y / (g * g))
    raise AssertionError(penalty)


def psi_of(penalty: Penalty, nu: float) -> float:
    """ψ as the literature has it, by plain arithmetic."""
    g, y = float(penalty.parameter), math.sqrt(nu)
    match penalty:
        case Power():
            return float(nu ** ((g - 2) / 2))
        case MCP():
            return max(1 / y - 1 / g, 0.0)
        case SCAD():
            return 1 / y if y <= g else max(A * g - y, 0.0) / ((A - 1) * g * y)
        case Huber():
            return min(1.0, g / y)
        case Welsch():
            return math.exp(-nu / (g * g))
        case Geman():
            return (1 + nu / (g * g)) ** -2
        case Cauchy():
            return 1 / (1 + nu / (g * g))
    raise AssertionError(penalty)


@every_penalty
def test_formulas(penalty: Penalty) -> None:
    y = torch.logspace(-3, 2, 101, dtype=torch.float64)
    torch.testing.assert_close(penalty.rho(y), numbers(*(rho_of(penalty, v) for v in y.tolist())))
    nu = y.square()
    torch.testing.assert_close(
        penalty.psi(nu), numbers(*(psi_of(penalty, v) for v in nu.tolist())), rtol=1e-13, atol=1e-15
    )
    at = y.clone().requires_grad_()
    (slope,) = torch.autograd.grad(penalty.rho(at).sum(), at)
    torch.testing.assert_close(slope, float(penalty.c) * y * penalty.psi(nu))


@every_penalty
def test_derivatives_of_psi(penalty: Penalty) -> None:
    nu = torch.logspace(-6, 4, 101, dtype=torch.float64)
    torch.testing.assert_close(penalty.dpsi_dlog_nu(nu), Penalty.dpsi_dlog_nu(penalty, nu))
    torch.testing.assert_close(penalty.dpsi_dparameter(nu), Penalty.dpsi_dparameter(penalty, nu))
    for function in (penalty.psi, penalty.dpsi_dlog_nu, penalty.dpsi_dparameter):
        assert function(nu.float()).dtype == torch.float32


@every_backend
@pytest.mark.parametrize(
    "options",
    [{}, {"omega": 0.6}, {"eps": 0.25}, {"detach_weights": True}],
    ids=["plain", "omega", "eps", "detached"],
)
@every_penalty
def test_agrees_with_the_dense_formula(backend: Backend, penalty: Penalty, options: dict[str, Any]) -> None:
    for name, make in PROBLEMS.items():
        if isinstance(penalty, Power) and not options.get("detach_weights"):
            continue  # tests/kernels/test_backends.py
        tolerance = 1e-9 if name in DEGENERATE else 1e-11
        results = values_and_slopes(backend, make(), penalty, **options)
        expected = values_and_slopes(DENSE, make(), penalty, **options)
        torch.testing.assert_close(results[0], expected[0], rtol=1e-12, atol=1e-12, msg=f"{name}: values")
        for got, wanted in zip(results[1:], expected[1:], strict=True):
            torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("backend", ON_CPU, ids=lambda b: b.name)
@every_other
def test_gradcheck(backend: Backend, penalty: Penalty) -> None:
    graph = problems.random_graph(5, 0.6, seed=2)

    def run(x: Tensor, weight: Tensor, mu: Tensor, parameter: Tensor) -> Tensor:
        return backend.propagate(x, problems.per_entry_weight(graph, weight), penalty.at(parameter), mu, 2)

    inputs = (
        problems.features(10, 2).reshape(2, 5, 2).requires_grad_(),
        graph.weight.clone().requires_grad_(),
        numbers(0.3, 1.0).requires_grad_(),
        numbers(float(penalty.parameter), 1.1).requires_grad_(),
    )
    assert torch.autograd.gradcheck(run, inputs)


@every_backend
@every_other
def test_float32_agrees_with_the_dense_formula(backend: Backend, penalty: Penalty) -> None:
    problem = GENERIC["random"]()
    results = []
    for kind, where in ((torch.float32, backend), (torch.float64, DENSE)):
        x = problem.x[None].to(kind).requires_grad_()
        parameter = numbers(float(penalty.parameter)).requires_grad_()
        result = where.propagate(x, problem.graph, penalty.at(parameter), numbers(0.1), 3)
        results.append([result, *torch.autograd.grad(result.square().sum(), [x, parameter])])
    for got, wanted in zip(*results, strict=True):
        scale = 1 + wanted.abs().max().item()
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=3e-5 * scale)


@every_backend
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    problem=problems.graphs_with_features(),
    penalty=st.sampled_from(OTHERS),
    mu=st.sampled_from([0.01, 10.0]),
    eps=st.sampled_from([None, None, 0.1]),
)
def test_values_and_gradients_are_finite_in_float32(
    backend: Backend, problem: Problem, penalty: Penalty, mu: float, eps: float | None
) -> None:
    x, weight = problem.x.float()[None].requires_grad_(), problem.graph.weight.float().requires_grad_()
    parameter = torch.tensor([float(penalty.parameter)], requires_grad=True)
    anchor = torch.tensor([mu], requires_grad=True)
    graph = problems.per_entry_weight(problem.graph, weight)
    result = backend.propagate(x, graph, penalty.at(parameter), anchor, 3, 1.0, eps)
    assert torch.isfinite(result).all()
    for slope in torch.autograd.grad(result.mean(), [x, weight, parameter, anchor]):
        assert torch.isfinite(slope).all()


@pytest.mark.parametrize("backend", ["fused", "torch", "dense"])
def test_p_is_short_for_a_power(backend: str) -> None:
    problem = problems.fixture()
    short = plap.propagate(problem.x, problem.graph, 1.5, 0.1, 4, backend=backend)
    written = plap.propagate(
        problem.x, problem.graph, mu=0.1, K=4, penalty=plap.penalties.Power(1.5), backend=backend
    )
    assert short.equal(written)


def test_huber_of_a_wide_gamma_is_p_2_and_detaching_it_changes_nothing() -> None:
    problem = GENERIC["random"]()
    x = problem.x.clone().requires_grad_()
    results = [
        plap.propagate(x, problem.graph, mu=mu, K=3, penalty=penalty, detach_weights=detach)
        for penalty, mu, detach in (
            (Huber(1e6), 0.1, False),
            (Huber(1e6), 0.1, True),
            (Power(2.0), 0.2, False),
        )
    ]
    slopes = [torch.autograd.grad(result.square().sum(), x)[0] for result in results]
    for k in (1, 2):
        torch.testing.assert_close(results[k], results[0])
        torch.testing.assert_close(slopes[k], slopes[0])


@every_other
def test_runs_take_their_own_gamma(penalty: Penalty) -> None:
    problem = GENERIC["random"]()
    gammas = numbers(0.3, 0.9, 2.0)
    runs = torch.stack([problem.x, 2 * problem.x, -problem.x])
    together = plap.propagate(runs, problem.graph, mu=0.1, K=3, penalty=penalty.at(gammas))
    for run, gamma in enumerate(gammas.tolist()):
        alone = plap.propagate(runs[run], problem.graph, mu=0.1, K=3, penalty=penalty.at(gamma))
        torch.testing.assert_close(together[run], alone)


@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0])
@every_penalty
def test_the_energy_falls_by_the_margin(penalty: Penalty, mu: float) -> None:
    """L(F') ≤ L(F) − μ ‖F' − F‖², the descent lemma."""
    if isinstance(penalty, Power) and float(penalty.p) > 2:
        pytest.skip("t → ρ(√t) is not concave")
    for name, make in GENERIC.items():
        problem = make()
        F = problem.x
        level = plap.objective(F, problem.x, problem.graph, mu=mu, penalty=penalty)
        for _ in range(12):
            following = _step_from(F, problem, penalty, mu)
            next_level = plap.objective(following, problem.x, problem.graph, mu=mu, penalty=penalty)
            margin = mu * (following - F).square().sum()
            assert next_level <= level - margin + 1e-13 * (1 + level), name
            F, level = following, next_level


def _step_from(F: Tensor, problem: Problem, penalty: Penalty, mu: float) -> Tensor:
    """One step of Eq. 11 from F, which propagate itself only takes from X."""
    return step(F, problem.x, weight_matrix(problem.graph, F.dtype), penalty, torch.tensor(mu, dtype=F.dtype))


def test_vmap_and_batched_gradients_go_through_the_fused_backend() -> None:
    problem = GENERIC["random"]()
    gamma = numbers(0.5, 1.0).requires_grad_()
    runs = torch.stack([problem.x, 2 * problem.x]).requires_grad_()

    def one(x: Tensor, g: Tensor) -> Tensor:
        return plap.propagate(x, problem.graph, mu=0.1, K=2, penalty=MCP(g))

    together = torch.func.vmap(one)(runs, gamma)
    expected = plap.propagate(runs, problem.graph, mu=0.1, K=2, penalty=MCP(gamma))
    for got, wanted in zip(
        torch.autograd.grad(together.square().sum(), [runs, gamma]),
        torch.autograd.grad(expected.square().sum(), [runs, gamma]),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("backend", ["fused", "torch"])
@pytest.mark.parametrize("penalty", [MCP(0.7), SCAD(0.3), Welsch(0.8)], ids=repr)
def test_compiles_as_one_graph(penalty: Penalty, backend: str) -> None:
    problem = GENERIC["random"]()

    def loss(x: Tensor) -> Tensor:
        return (
            plap.propagate(x.relu(), problem.graph, mu=0.1, K=2, penalty=penalty, backend=backend)
            .square()
            .sum()
        )

    eager, traced = problem.x.clone().requires_grad_(), problem.x.clone().requires_grad_()
    loss(eager).backward()
    torch.compile(loss, fullgraph=True, backend="aot_eager")(traced).backward()
    torch.testing.assert_close(traced.grad, eager.grad)


@pytest.mark.parametrize("backend", ["fused", "torch"])
def test_a_memory_budget_changes_nothing(backend: str) -> None:
    graph, x = problems.random_graph(60, 0.2, seed=1), problems.features(60, 8)
    need = plap.memory_needed(60, graph.num_entries, 8, 6, dtype=x.dtype, backend=backend)
    results = []
    for budget in (None, need.least):
        leaf = x.clone().requires_grad_()
        gamma = numbers(0.8).requires_grad_()
        result = plap.propagate(
            leaf, graph, mu=0.1, K=6, penalty=MCP(gamma), backend=backend, memory_budget=budget
        )
        results.append([result, *torch.autograd.grad(result.square().sum(), [leaf, gamma])])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted)


def test_second_derivatives_through_the_torch_backend() -> None:
    graph = problems.random_graph(5, 0.6, seed=2)

    def run(x: Tensor, gamma: Tensor) -> Tensor:
        return plap.propagate(x, graph, mu=0.3, K=2, penalty=Welsch(gamma), backend="torch")

    inputs = (problems.features(5, 2).requires_grad_(), numbers(0.9).requires_grad_())
    assert torch.autograd.gradgradcheck(run, inputs, fast_mode=True)


def test_aggregation_weights_of_a_penalty_vanish_beyond_gamma() -> None:
    graph = plap.Graph.from_edges([(0, 1), (2, 3)])
    x = torch.tensor([[0.0], [1.0], [0.0], [5.0]])
    weights = plap.aggregation_weights(x, graph, mu=0.1, penalty=MCP(2.0))
    assert weights[:2].min() > 0.4
    assert weights[2:].equal(torch.zeros(2))


def test_no_array_of_edges_times_channels() -> None:
    graph, x = problems.random_graph(200, 0.5, seed=1), problems.features(200, 16).float().requires_grad_()
    with Allocations(x) as seen:
        plap.propagate(x, graph, mu=0.1, K=2, penalty=MCP(1.0)).sum().backward()
    assert seen.largest < graph.num_entries * 16 / 2


def test_every_built_in_is_tested() -> None:
    assert {type(penalty) for penalty in PENALTIES} == set(BUILT_IN)
