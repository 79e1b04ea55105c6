"""One walk over the edges against a dense formula that autograd differentiates."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import plap
import problems
from plap.penalties import Power
from plap.solving import problem as incidence
from plap.solving.problem import Problem

MU = 0.3
P_AND_EPS = [
    (1.0, 0.4),
    (1.0, 1e-3),
    (1.5, 0.4),
    (1.5, 1e-3),
    (2.0, None),
    (2.5, None),
    (3.0, None),
    (4.0, None),
]


def dense_value(F: Tensor, problem: problems.Problem, p: float, eps: float | None) -> Tensor:
    """S_p(F) + mu ‖F − X‖² over all pairs of nodes, with Huber's rule below eps."""
    graph = problem.graph
    W = torch.zeros(len(F), len(F), dtype=torch.float64)
    W[graph.receivers(), graph.indices.long()] = graph.weight.double()
    W.fill_diagonal_(0)
    scaled = F * torch.where(graph.degree > 0, graph.degree, 1).rsqrt()[:, None]
    i, j = W.nonzero(as_tuple=True)
    t = W[i, j].sqrt() * (scaled[i] - scaled[j]).norm(dim=1)
    each = t**p
    if eps is not None:
        each = torch.where(t < eps, p / 2 * eps ** (p - 2) * t**2 + (1 - p / 2) * eps**p, each)
    value: Tensor = 0.5 * each.sum() + MU * (F - problem.x).square().sum()
    return value


def nearby(problem: problems.Problem) -> Tensor:
    nodes, channels = problem.x.shape
    return problem.x + 0.3 * problems.features(nodes, channels, seed=9)


@pytest.mark.parametrize("name", list(problems.PROBLEMS))
@pytest.mark.parametrize(("p", "eps"), P_AND_EPS)
def test_value_and_gradient(name: str, p: float, eps: float | None) -> None:
    given = problems.PROBLEMS[name]()
    problem = Problem(given.x, given.graph, Power(p), MU, eps)
    F = nearby(given).requires_grad_()
    value = dense_value(F, given, p, eps)
    (gradient,) = torch.autograd.grad(value, F)
    point = problem.at(F.detach())
    assert point.value == pytest.approx(value.item(), rel=1e-12)
    torch.testing.assert_close(point.gradient, gradient, rtol=0, atol=1e-11)
    exact = float(plap.objective(F.detach(), given.x, given.graph, p, MU))
    assert point.value - point.excess == pytest.approx(exact, rel=1e-12)
    assert point.excess >= 0
    assert (point.excess > 0) == (point.value > exact * (1 + 1e-12))


@pytest.mark.parametrize("name", ["fixture", "random", "grid", "isolated_node", "no_edges", "self_loop"])
@pytest.mark.parametrize(("p", "eps"), P_AND_EPS)
def test_hessian_is_that_of_the_dense_value(name: str, p: float, eps: float | None) -> None:
    given = problems.PROBLEMS[name]()
    problem = Problem(given.x, given.graph, Power(p), MU, eps)
    F = nearby(given)
    expected = torch.autograd.functional.hessian(lambda f: dense_value(f, given, p, eps), F)
    size = F.numel()
    basis = torch.eye(size, dtype=torch.float64).reshape(size, *F.shape)
    H = torch.stack([problem.hessian_product(F, v).reshape(-1) for v in basis])
    torch.testing.assert_close(H, expected.reshape(size, size), rtol=0, atol=1e-9)
    torch.testing.assert_close(H, H.T, rtol=0, atol=1e-11)
    assert float(torch.linalg.eigvalsh(H).min()) >= 2 * MU - 1e-9


@pytest.mark.parametrize("p", problems.P_VALUES)
def test_metric_is_that_of_the_paper_s_step(p: float) -> None:
    given = problems.PROBLEMS["random"]()
    point = Problem(given.x, given.graph, Power(p), MU, 1e-9).at(given.x)
    step = plap.propagate(given.x, given.graph, p, MU, 1, backend="dense") - given.x
    torch.testing.assert_close(-point.gradient / point.metric, step, rtol=0, atol=1e-12)


@pytest.mark.parametrize("p", [1.2, 2.5])
def test_blocks_and_sparse_matrices_change_nothing(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = problems.random_graph(40, 0.3, seed=7)
    X, v = problems.features(40, 3, seed=1), problems.features(40, 3, seed=2)
    whole = Problem(X, graph, Power(p), MU, None)
    assert len(whole.incidence.blocks) == 1
    monkeypatch.setattr(incidence, "_BLOCK", 1)
    monkeypatch.setattr(incidence, "_DENSE", 0)
    parts = Problem(X, graph, Power(p), MU, None)
    assert len(parts.incidence.blocks) > 2
    assert parts.incidence.blocks[0].matrix.layout == torch.sparse_csr
    F = X + v
    one, other = whole.at(F), parts.at(F)
    assert one.value == pytest.approx(other.value, rel=1e-14)
    assert whole.eps == pytest.approx(parts.eps, rel=1e-14)
    torch.testing.assert_close(one.gradient, other.gradient, rtol=0, atol=1e-12)
    torch.testing.assert_close(one.metric, other.metric)
    torch.testing.assert_close(whole.hessian_product(F, v), parts.hessian_product(F, v), rtol=0, atol=1e-12)


def test_counts_its_walks() -> None:
    given = problems.fixture()
    problem = Problem(given.x, given.graph, Power(1.5), MU, None)
    assert problem.edge_passes == 1
    problem.at(given.x)
    problem.hessian_product(given.x, given.x)
    assert problem.edge_passes == 3
    assert Problem(given.x, given.graph, Power(1.5), MU, 0.1).edge_passes == 0
    assert Problem(given.x, given.graph, Power(2.5), MU, None).edge_passes == 0
