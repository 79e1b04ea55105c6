from __future__ import annotations

import itertools
import math

import networkx
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
from plap.solving.methods import ROUNDING
from plap.solving.solver import METHODS

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


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_theorem_1_p_2_is_personalised_pagerank(mu: float) -> None:
    """mu (Δ + mu I)^-1 = D^-½ Π D^½, Π the PageRank of walks that restart with probability mu/(1 + mu)."""
    graph = problems.barbell(4)
    n = graph.num_nodes
    walks = networkx.Graph()
    walks.add_nodes_from(range(n))
    edges = zip(graph.receivers().tolist(), graph.indices.tolist(), graph.weight.tolist(), strict=True)
    walks.add_weighted_edges_from(edges)
    pagerank = np.empty((n, n))
    for start in range(n):
        ranks = networkx.pagerank(
            walks, alpha=1 / (1 + mu), personalization={start: 1}, tol=1e-13, max_iter=2000
        )
        pagerank[:, start] = [ranks[node] for node in range(n)]
    root = np.sqrt(graph.degree.numpy())
    y, info = plap.solve(torch.eye(n, dtype=torch.float64), graph, 2.0, mu, tol=1e-12)
    assert info.converged
    np.testing.assert_allclose(root[:, None] * y.numpy() / root, pagerank, atol=1e-10)


@pytest.mark.parametrize("name", list(problems.PROBLEMS))
@pytest.mark.parametrize("p", problems.P_VALUES)
def test_goes_downhill_to_a_stationary_point(name: str, p: float) -> None:
    problem = problems.PROBLEMS[name]()
    y, info = plap.solve(problem.x, problem.graph, p, 0.1, tol=TOL)
    assert info.converged
    assert info.residual <= TOL
    assert all(after <= before * (1 + ROUNDING) for before, after in itertools.pairwise(info.history))
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


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.5])
def test_scaling_law(p: float) -> None:
    problem = problems.fixture()
    y, _ = plap.solve(problem.x, problem.graph, p, 0.1, tol=1e-9)
    for c in (1e-6, 1e8):
        scaled, info = plap.solve(c * problem.x, problem.graph, p, 0.1 * c ** (p - 2), tol=1e-9)
        assert info.converged
        torch.testing.assert_close(scaled / c, y, atol=1e-8, rtol=0)


@settings(max_examples=80, deadline=None)
@given(
    problem=problems.graphs_with_features(),
    p=st.sampled_from([*problems.P_VALUES, 7.0]),
    method=st.sampled_from(list(METHODS)),
)
def test_never_nan(problem: problems.Problem, p: float, method: str) -> None:
    y, info = plap.solve(problem.x, problem.graph, p, 0.1, max_iter=60, method=method)  # type: ignore[arg-type]
    assert bool(torch.isfinite(y).all())
    assert math.isfinite(info.residual)
    assert all(after <= before * (1 + ROUNDING) for before, after in itertools.pairwise(info.history))


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
    same, info = plap.solve(problems.fixture().x, problems.fixture().graph, 1.5, 0.5, max_iter=0)
    assert torch.equal(same, problems.fixture().x)
    assert not info.converged
    for shape, graph in (((4, 0), problems.fixture().graph), ((0, 3), problems.weighted([], 0))):
        nothing, info = plap.solve(torch.zeros(shape), graph, 1.5, 0.5)
        assert nothing.shape == shape
        assert info.converged


def test_rows_of_any_size_are_solved() -> None:
    problem = problems.fixture()
    y, _ = plap.solve(problem.x, problem.graph, 2.0, 0.1, tol=1e-9)
    for c in (1e-300, 1e300):
        scaled, info = plap.solve(c * problem.x, problem.graph, 2.0, 0.1, tol=1e-9)
        assert info.converged
        torch.testing.assert_close(scaled / c, y, atol=1e-8, rtol=0)


def test_tells_what_it_did() -> None:
    problem = problems.fixture()
    _, info = plap.solve(problem.x, problem.graph, torch.tensor(1.5), np.float32(0.1))  # type: ignore[arg-type]
    assert info.method == "lbfgs"
    assert info.edge_passes >= info.iterations + 2
    assert info.history[-1] >= info.objective


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"p": 0.5}, "p must"),
        ({"p": math.nan}, "p must"),
        ({"p": torch.tensor(0.9)}, "p must be a finite number of at least 1, not 0.9"),
        ({"p": torch.tensor([1.5, 2.0])}, r"p must be one number, not a tensor of shape \[2\]"),
        ({"p": "2"}, "p must be a finite number"),
        ({"p": torch.tensor(1.5, device="meta")}, "p is on meta but x is on cpu"),
        ({"tol": "small"}, "tol must be a positive finite number"),
        ({"mu": None}, "mu must be a positive finite number, not None"),
        ({"mu": torch.tensor(-1.0)}, "mu must be a positive"),
        ({"method": "L-BFGS"}, "method must be one of auto, lbfgs, anderson, jacobi, newton-cg"),
        ({"max_iter": 2.5}, "max_iter must be an integer"),
        ({"x": torch.zeros(4, 2).to_sparse()}, "x must be a dense tensor"),
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
