"""The table of methods: all find the same point, and each is what its name says."""

from __future__ import annotations

import itertools

import pytest
import torch

import plap
import problems
from plap.penalties import Power
from plap.solving import methods
from plap.solving.methods import ROUNDING, descend
from plap.solving.problem import Problem
from plap.solving.solver import METHODS

NAMES = list(METHODS)


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("p", problems.P_VALUES)
def test_all_find_the_same_point_by_going_down(method: str, p: float) -> None:
    problem = problems.PROBLEMS["barbell"]()
    expected, _ = plap.solve(problem.x, problem.graph, p, 0.5, tol=1e-11, eps=0.05)
    y, info = plap.solve(problem.x, problem.graph, p, 0.5, tol=1e-9, eps=0.05, method=method)  # type: ignore[arg-type]
    assert info.converged
    assert info.method == method
    assert all(after <= before * (1 + ROUNDING) for before, after in itertools.pairwise(info.history))
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("name", list(problems.DEGENERATE))
def test_all_cope_with_equal_neighbours(method: str, name: str) -> None:
    problem = problems.DEGENERATE[name]()
    expected, _ = plap.solve(problem.x, problem.graph, 1.2, 0.5, tol=1e-10)
    y, info = plap.solve(problem.x, problem.graph, 1.2, 0.5, tol=1e-8, method=method)  # type: ignore[arg-type]
    assert info.converged
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-6)


def light_ends_of_a_heavy_edge() -> problems.Problem:
    """One step of the paper raises the objective for p = 3 and mu = 0.01, damped or not."""
    graph = problems.weighted([(0, 1, 100.0), (0, 2, 1.0), (1, 3, 1.0)], 4)
    return problems.Problem(graph, torch.tensor([[0.0], [0.0], [1.0], [-1.0]], dtype=torch.float64))


@pytest.mark.parametrize("method", NAMES)
def test_the_guard_holds_where_damping_alone_fails(method: str) -> None:
    problem = light_ends_of_a_heavy_edge()
    start = float(plap.objective(problem.x, problem.x, problem.graph, 3.0, 0.01))
    damped = plap.propagate(problem.x, problem.graph, 3.0, 0.01, 1, omega=0.5)
    assert float(plap.objective(damped, problem.x, problem.graph, 3.0, 0.01)) > 100 * start
    _, info = plap.solve(problem.x, problem.graph, 3.0, 0.01, method=method)  # type: ignore[arg-type]
    assert info.converged
    assert info.history[0] == pytest.approx(start)
    assert all(after <= before * (1 + ROUNDING) for before, after in itertools.pairwise(info.history))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 2.5, 4.0])
def test_jacobi_is_the_paper_s_iteration(p: float) -> None:
    problem = problems.PROBLEMS["random"]()
    y, info = plap.solve(problem.x, problem.graph, p, 0.7, eps=0.05, max_iter=4, method="jacobi")
    eps = 0.05 if p < 2 else None
    omega = min(1.0, 1 / (p - 1)) if p > 1 else 1.0
    expected = plap.propagate(problem.x, problem.graph, p, 0.7, 4, eps=eps, omega=omega)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-11)
    assert info.iterations == 4
    assert info.edge_passes == 5


@pytest.mark.parametrize("mu", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 1.8, 2.0])
def test_the_stronger_descent_theorem(p: float, mu: float) -> None:
    """L(F') ≤ L(F) − mu ‖F' − F‖² for every mu > 0 and 1 ≤ p ≤ 2, with the clamp and its own energy."""
    for seed in range(3):
        graph = problems.random_graph(20, 0.3, seed=seed)
        problem = Problem(problems.features(20, 2, seed=seed), graph, Power(p), mu, None)
        here = problem.at(problem.X)
        for _ in range(20):
            there = problem.at(here.F - here.gradient / here.metric)
            moved = float((there.F - here.F).square().sum())
            assert there.value <= here.value * (1 + ROUNDING) - mu * moved
            here = there


def test_newton_cg_takes_one_step_for_p_2_and_few_for_more() -> None:
    graph = problems.random_graph(60, 0.1, seed=3)
    x = problems.features(60, 4)
    steps = {p: plap.solve(x, graph, p, 0.1, tol=1e-10, method="newton-cg")[1].iterations for p in (2.0, 3.0)}
    assert steps[2.0] == 1
    assert steps[3.0] < 20
    assert steps[3.0] < plap.solve(x, graph, 3.0, 0.1, tol=1e-10)[1].iterations


def test_newton_cg_survives_a_budget_of_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "_MOST_PRODUCTS", 1)
    problem = problems.fixture()
    y, info = plap.solve(problem.x, problem.graph, 2.5, 0.1, tol=1e-10, method="newton-cg")
    assert info.converged
    torch.testing.assert_close(y, problems.rows(problems.FIXTURE[2.5].F_star), atol=1e-8, rtol=0)


@pytest.mark.parametrize("method", ["lbfgs", "anderson", "newton-cg"])
def test_the_others_beat_the_paper_s_iteration(method: str) -> None:
    graph, x = problems.grid(10, 10), problems.features(100, 4)
    passes = {
        name: plap.solve(x, graph, 2.0, 0.05, method=name)[1].edge_passes  # type: ignore[arg-type]
        for name in (method, "jacobi")
    }
    assert 2 * passes[method] < passes["jacobi"]


class Uphill:
    """A method that is wrong at every step."""

    def __init__(self) -> None:
        self.forgot = 0

    def direction(self, here: object) -> torch.Tensor:
        return here.gradient  # type: ignore[attr-defined, no-any-return]

    def learn(self, before: object, after: object) -> None:
        pass

    def forget(self) -> None:
        self.forgot += 1


def test_the_guard_falls_back_on_the_paper_s_step() -> None:
    given = problems.fixture()
    method = Uphill()
    point, history, residual = descend(
        Problem(given.x, given.graph, Power(1.5), 1.0, 1e-3), method, 1e-9, 500
    )
    assert residual <= 1e-9
    assert method.forgot == len(history) - 1
    expected, _ = plap.solve(given.x, given.graph, 1.5, 1.0, tol=1e-11)
    torch.testing.assert_close(point.F, expected, atol=1e-8, rtol=0)
