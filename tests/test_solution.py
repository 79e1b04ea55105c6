from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import plap
import problems
from plap.errors import InputError
from plap.solution import _ROUNDING

TOL = 1e-6


@pytest.mark.parametrize("p", [1.5, 2.0, 2.5, 3.0])
def test_fixture_of_the_note(p: float) -> None:
    problem, expected = problems.fixture(), problems.FIXTURE[p]
    y, info = plap.solve(problem.x, problem.graph, p, problems.FIXTURE_MU, tol=1e-11)
    assert info.converged
    assert info.residual <= 1e-11
    assert expected.L_star is not None
    assert info.objective == pytest.approx(expected.L_star, abs=2e-10)
    if expected.F_star is not None:
        torch.testing.assert_close(y, problems.rows(expected.F_star), atol=1e-9, rtol=0)


@pytest.mark.parametrize("mu", [0.01, 0.1, 10.0])
def test_closed_form_for_p_2(mu: float) -> None:
    graph = problems.random_graph(60, 0.1, seed=3)
    x = problems.features(60, 4)
    W = scipy.sparse.csr_array(
        (graph.weight.numpy(), graph.indices.numpy(), graph.indptr.numpy()), shape=(60, 60)
    )
    root = scipy.sparse.diags_array(1 / np.sqrt(np.maximum(W.sum(1), 1e-300)))
    isolated = scipy.sparse.diags_array((W.sum(1) > 0).astype(float))
    laplacian = isolated - root @ W @ root
    matrix = (laplacian + mu * scipy.sparse.eye_array(60)).tocsc()
    expected = mu * scipy.sparse.linalg.spsolve(matrix, x.numpy())
    y, info = plap.solve(x, graph, 2.0, mu, tol=1e-10)
    assert info.converged
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-8)


@pytest.mark.parametrize("name", list(problems.PROBLEMS))
@pytest.mark.parametrize("p", problems.P_VALUES)
def test_goes_downhill_to_a_stationary_point(name: str, p: float) -> None:
    problem = problems.PROBLEMS[name]()
    y, info = plap.solve(problem.x, problem.graph, p, 0.1, tol=TOL)
    assert info.converged
    assert info.residual <= TOL
    assert all(after <= before * (1 + _ROUNDING) for before, after in itertools.pairwise(info.history))
    assert len(info.history) == info.iterations + 1
    assert info.objective == pytest.approx(
        float(plap.objective(y, problem.x, problem.graph, p, 0.1)), abs=1e-9
    )
    for direction in range(3):
        away = y + 0.2 * problems.features(y.shape[0], y.shape[1], seed=direction)
        assert info.objective <= float(plap.objective(away, problem.x, problem.graph, p, 0.1))


def test_gradient_of_the_objective_vanishes() -> None:
    graph = problems.random_graph(40, 0.2, seed=5)
    x = problems.features(40, 3)
    y, _ = plap.solve(x, graph, 1.5, 1.0, tol=1e-9)
    leaf = y.clone().requires_grad_()
    (slope,) = torch.autograd.grad(plap.objective(leaf, x, graph, 1.5, 1.0), leaf)
    assert float(slope.norm()) < 1e-6


def test_guard_holds_where_the_note_says_damping_alone_fails() -> None:
    graph = problems.weighted([(0, 1, 100.0), (0, 2, 1.0), (1, 3, 1.0)], 4)
    x = torch.tensor([0.0, 0.0, 1.0, -1.0], dtype=torch.float64)
    y, info = plap.solve(x, graph, 3.0, 0.01)
    assert info.converged
    assert y.shape == x.shape
    assert all(after <= before * (1 + _ROUNDING) for before, after in itertools.pairwise(info.history))


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.5])
def test_scaling_law(p: float) -> None:
    problem = problems.fixture()
    y, _ = plap.solve(problem.x, problem.graph, p, 0.1, tol=1e-9)
    for c in (1e-6, 1e8):
        scaled, info = plap.solve(c * problem.x, problem.graph, p, 0.1 * c ** (p - 2), tol=1e-9)
        assert info.converged
        torch.testing.assert_close(scaled / c, y, atol=1e-8, rtol=0)


@settings(max_examples=60, deadline=None)
@given(problem=problems.graphs_with_features(), p=st.sampled_from([*problems.P_VALUES, 7.0]))
def test_never_nan(problem: problems.Problem, p: float) -> None:
    y, info = plap.solve(problem.x, problem.graph, p, 0.1, max_iter=60)
    assert bool(torch.isfinite(y).all())
    assert math.isfinite(info.residual)
    assert all(after <= before * (1 + _ROUNDING) for before, after in itertools.pairwise(info.history))


def test_says_when_it_gave_up() -> None:
    problem = problems.fixture()
    y, info = plap.solve(problem.x, problem.graph, 1.5, 0.1, max_iter=2)
    assert not info.converged
    assert info.iterations == 2
    assert info.residual > TOL
    assert info.objective < problems.FIXTURE[1.5].L_X
    assert bool(torch.isfinite(y).all())


def test_float32_comes_back_as_float32_and_right() -> None:
    problem = problems.fixture()
    y, info = plap.solve(problem.x.float(), problem.graph, 1.5, 0.1)
    assert y.dtype == torch.float32
    assert info.converged
    torch.testing.assert_close(y.double(), problems.rows(problems.FIXTURE[1.5].F_star), atol=3e-5, rtol=0)


def test_what_needs_no_step() -> None:
    problem = problems.no_edges()
    y, info = plap.solve(problem.x, problem.graph, 1.0, 0.5)
    assert torch.equal(y, problem.x)
    assert (info.iterations, info.converged) == (0, True)
    zeros, info = plap.solve(torch.zeros(4, 2), problems.fixture().graph, 1.5, 0.5)
    assert torch.equal(zeros, torch.zeros(4, 2))
    assert info.converged


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"p": 0.5}, "p must"),
        ({"p": math.nan}, "p must"),
        ({"mu": 0.0}, "mu must"),
        ({"tol": -1.0}, "tol must"),
        ({"eps": 0.0}, "eps must"),
        ({"max_iter": -1}, "max_iter"),
        ({"x": torch.zeros(3, 2)}, "x must have shape"),
        ({"x": torch.full((4, 2), math.nan)}, "is not finite"),
        ({"x": torch.zeros(4, 2, dtype=torch.int64)}, "x must be a float32"),
        ({"graph": "cora"}, "graph must be"),
    ],
)
def test_refuses(change: dict[str, object], word: str) -> None:
    arguments = {"x": problems.fixture().x, "graph": problems.fixture().graph, "p": 1.5, "mu": 0.1}
    with pytest.raises(InputError, match=word):
        plap.solve(**(arguments | change))  # type: ignore[arg-type]
