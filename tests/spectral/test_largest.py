"""The largest p-eigenpair against closed forms, and the bounds of Theorem 7 around it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plap
import problems
import spectral_graphs
from plap.graph import Graph
from plap.spectral import eigenvalue_bounds, largest_eigenpair
from plap.spectral.largest import _climb
from plap.spectral.operator import EdgeOperator, unit

every_p = pytest.mark.parametrize("p", [1.05, 1.2, 1.5, 2.0, 2.5, 3.0, 6.0])


@every_p
def test_star(p: float) -> None:
    pair = largest_eigenpair(problems.star(7), p)
    assert pair.converged
    assert pair.value == pytest.approx(spectral_graphs.star_largest(7, p), abs=1e-10)


@every_p
@pytest.mark.parametrize("n", [4, 6])
def test_complete(p: float, n: int) -> None:
    pair = largest_eigenpair(problems.complete(n), p)
    assert pair.value == pytest.approx(spectral_graphs.complete_values(n, p)[-1], abs=1e-10)


@every_p
@pytest.mark.parametrize(
    ("graph", "degree"), [(spectral_graphs.cycle(8), 2), (spectral_graphs.hypercube(3), 3)]
)
def test_regular_bipartite_graphs_attain_the_bound(graph: Graph, degree: int, p: float) -> None:
    pair = largest_eigenpair(graph, p)
    expected = spectral_graphs.regular_bipartite_largest(degree, p)
    assert pair.value == pytest.approx(expected, abs=1e-10)
    bounds = eigenvalue_bounds(graph, p, pair.vector)
    assert bounds.local == pytest.approx(expected)
    if p <= 2:
        assert bounds.power_mean == pytest.approx(expected)


@pytest.mark.parametrize("p", [1.2, 1.4])
def test_no_node_leads_higher(p: float) -> None:
    graph = problems.random_graph(30, 0.1, seed=5, weighted=False)
    operator = EdgeOperator(graph)
    starts = np.eye(30)[:, np.flatnonzero(operator.degree)]
    ends = operator.quotient(_climb(operator, starts, p, 1e-11, 2000), p)
    assert ends.max() > ends.min() * (1 + 1e-3)
    assert largest_eigenpair(graph, p).value >= ends.max() * (1 - 1e-9)


def test_p_1_is_a_node() -> None:
    graph = problems.star(7)
    pair = largest_eigenpair(graph, 1)
    assert pair.value == pytest.approx(np.sqrt(7))
    assert pair.vector.tolist() == [1] + [0] * 7
    assert largest_eigenpair(graph, 1.001).value == pytest.approx(pair.value, abs=5e-3)


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 12), st.integers(0, 100), st.sampled_from([1.02, 1.1, 1.5, 1.9, 2.5, 3.0]))
def test_no_step_lowers_the_quotient(n: int, seed: int, p: float) -> None:
    operator = EdgeOperator(problems.random_graph(n, 0.6, seed))
    u = np.random.default_rng(seed).standard_normal((n, 3))
    if operator.B.shape[0]:
        before = operator.quotient(u, p)
        after = operator.quotient(_climb(operator, unit(u, p), p, 0, 1), p)
        assert (after >= before * (1 - 1e-12)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 12), st.integers(0, 100), st.sampled_from([1.02, 1.2, 1.5, 2.0, 2.5, 3.0]))
def test_bounds_hold_and_are_in_order(n: int, seed: int, p: float) -> None:
    graph = problems.random_graph(n, 0.5, seed)
    if graph.num_edges == 0:
        return
    pair = largest_eigenpair(graph, p)
    of_all = eigenvalue_bounds(graph, p)
    for bounds in (eigenvalue_bounds(graph, p, pair.vector), of_all):
        assert pair.value <= bounds.local * (1 + 1e-9)
        assert bounds.local <= bounds.power_mean * (1 + 1e-12)
        assert bounds.power_mean <= bounds.paper * (1 + 1e-12)
    assert pair.value >= EdgeOperator(graph).row_sums(p).max() - 1e-12


def test_power_mean_bound_is_continuous_at_2_and_the_papers_is_not() -> None:
    graph = problems.star(7)
    below, at = eigenvalue_bounds(graph, 2 - 1e-9), eigenvalue_bounds(graph, 2)
    assert below.power_mean == pytest.approx(at.power_mean, abs=1e-6)
    assert below.paper == pytest.approx(2 * np.sqrt(7), abs=1e-6)
    assert at.paper == 2


def test_the_papers_bound_for_p_1_is_false() -> None:
    graph = problems.star(7)
    pair = largest_eigenpair(graph, 1)
    bounds = eigenvalue_bounds(graph, 1, pair.vector)
    assert bounds.paper == 1 < pair.value
    assert bounds.local == pytest.approx(pair.value)
    leaf = np.eye(8)[3]
    assert eigenvalue_bounds(graph, 1, leaf).local == 1
    # where centre and leaves differ from 0, the smallest of their bounds counts
    assert eigenvalue_bounds(graph, 1, np.ones(8)).node != 0


def test_weights_times_a_constant_change_nothing() -> None:
    graph = problems.random_graph(9, 0.5, 3)
    pair = largest_eigenpair(graph, 1.5)
    other = largest_eigenpair(graph.with_weight(1000 * graph.weight), 1.5)
    assert other.value == pytest.approx(pair.value, abs=1e-10)


def test_components_and_isolated_nodes_do_not_disturb() -> None:
    edges = [(0, k) for k in range(1, 8)] + [(8, 9)]
    graph = Graph.from_edges(edges, num_nodes=11)
    assert largest_eigenpair(graph, 1.2).value == pytest.approx(spectral_graphs.star_largest(7, 1.2))
    assert largest_eigenpair(graph, 3).value == pytest.approx(4)


def test_refuses_a_graph_without_edges() -> None:
    for function in (largest_eigenpair, eigenvalue_bounds):
        with pytest.raises(plap.InputError, match="no edge"):
            function(Graph.from_edges([], num_nodes=3), 1.5)
    with pytest.raises(plap.InputError, match="8 finite numbers"):
        eigenvalue_bounds(problems.star(7), 1.5, np.ones(3))
