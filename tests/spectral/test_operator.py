"""The operator of plap.spectral is that of plap.calculus."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import plap
import problems
from plap.spectral.operator import EdgeOperator, check_p, eigenpair, signed_power, unit
from problems import GENERIC, PROBLEMS, Problem

every_problem = pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)


@every_problem
@pytest.mark.parametrize("p", [1.2, 1.5, 2.0, 3.0])
def test_it_is_the_calculus(make: Callable[[], Problem], p: float) -> None:
    problem = make()
    graph, x = problem.graph, problem.x[:, :1]
    operator, u = EdgeOperator(graph), x[:, 0].numpy()
    energy = float(plap.energy(x, graph, p))
    assert operator.quotient(u, p) * (np.abs(u) ** p).sum() == pytest.approx(energy)
    # the calculus cuts differences that are rounding, and below p = 2 a power blows them up
    if p >= 2 or make in GENERIC.values():
        np.testing.assert_allclose(operator.apply(u, p), plap.p_laplacian(x, graph, p)[:, 0], atol=1e-12)


@every_problem
def test_row_sums_are_quotients_of_indicators(make: Callable[[], Problem]) -> None:
    graph = make().graph
    operator = EdgeOperator(graph)
    for p in (1.0, 1.5, 3.0):
        np.testing.assert_allclose(operator.row_sums(p), operator.quotient(np.eye(graph.num_nodes), p))


@pytest.mark.parametrize("p", [1.0, 1.1, 2.0, 4.0])
def test_units_have_norm_one_at_any_scale(p: float) -> None:
    u = np.array([[1e-200, 3e200, 0.0], [-2e-200, 1e199, 0.0]])
    v = unit(u, p)
    np.testing.assert_allclose((np.abs(v) ** p).sum(axis=0), [1, 1, 0])
    np.testing.assert_allclose(v[1, :2] / v[0, :2], u[1, :2] / u[0, :2])


def test_residual_is_zero_for_eigenvectors_only() -> None:
    operator = EdgeOperator(problems.path(2))
    for p in (1.3, 2.0, 3.0):
        exact = eigenpair(operator, np.array([-2.0, 2.0]), p, 1e-12)
        assert exact.converged
        assert exact.value == pytest.approx(2 ** (p - 1))
        assert exact.vector[0] == pytest.approx(2 ** (-1 / p))
        assert not eigenpair(operator, np.array([-2.0, 1.0]), p, 1e-3).converged


def test_signed_power_inverts_itself() -> None:
    x = np.array([-3.0, -0.1, 0.0, 0.5, 7.0])
    np.testing.assert_allclose(signed_power(signed_power(x, 0.3), 1 / 0.3), x)


@pytest.mark.parametrize("p", [0.9, float("nan"), float("inf"), True, "2", None])
def test_refuses_other_p(p: object) -> None:
    with pytest.raises(plap.InputError, match="p must be"):
        check_p(p)  # type: ignore[arg-type]


def test_takes_only_graphs() -> None:
    with pytest.raises(plap.InputError, match=r"plap\.Graph"):
        EdgeOperator(torch.eye(3))  # type: ignore[arg-type]


def test_detaches_weights_that_are_learnt() -> None:
    weight = torch.ones(2, requires_grad=True)
    graph = plap.Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), weight)
    np.testing.assert_allclose(EdgeOperator(graph).laplacian.diagonal(), 1)
