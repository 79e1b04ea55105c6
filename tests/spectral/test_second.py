"""The second p-eigenpair against closed forms, identities and other starts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plap
import problems
import spectral_graphs
from plap.graph import Graph
from plap.spectral import cheeger_cut, eigenpair_branches, second_eigenpair, spectrum
from plap.spectral.operator import EdgeOperator, signed_power
from plap.spectral.second import _quasi_newton, _reweighted, lowered, shifted

every_p = pytest.mark.parametrize("p", [1.1, 1.3, 1.7, 2.0, 2.5, 3.0])


@every_p
def test_complete(p: float) -> None:
    pair = second_eigenpair(problems.complete(6), p)
    assert pair.converged
    assert pair.value == pytest.approx(spectral_graphs.complete_values(6, p)[0], abs=1e-10)


@every_p
def test_star_and_edge(p: float) -> None:
    assert second_eigenpair(problems.star(7), p).value == pytest.approx(1, abs=1e-9)
    assert second_eigenpair(problems.path(2), p).value == pytest.approx(2 ** (p - 1))


@every_p
@pytest.mark.parametrize("make", [problems.path, problems.barbell, problems.grid])
def test_is_an_eigenpair_balanced_against_the_constant(make: object, p: float) -> None:
    graph = make()  # type: ignore[operator]
    pair = second_eigenpair(graph, p)
    assert pair.converged
    u = pair.vector
    assert (np.abs(u) ** p).sum() == pytest.approx(1)
    assert abs(graph.degree.sqrt().numpy() @ signed_power(u, p - 1)) < 1e-9
    if p >= 1.3:
        residual = EdgeOperator(graph).apply(u, p) - pair.value * signed_power(u, p - 1)
        assert np.abs(residual).max() < 1e-4


@pytest.mark.parametrize("p", [1.2, 1.5, 2.5, 3.0])
def test_is_the_first_branch(p: float) -> None:
    graph = problems.path(8)
    branch = eigenpair_branches(graph, p).branches[1]
    assert branch.arrived
    assert second_eigenpair(graph, p).value == pytest.approx(branch.pair.value, rel=1e-9)


@pytest.mark.parametrize("p", [1.2, 1.5, 3.0])
def test_random_starts_lead_to_the_same(p: float) -> None:
    graph = problems.random_graph(12, 0.35, seed=3)
    operator = EdgeOperator(graph)
    starts = np.random.default_rng(0).standard_normal((8, 12))
    reached = [operator.quotient(lowered(operator, u, p, 1e-9, 100), p) for u in starts]
    assert second_eigenpair(graph, p).value == pytest.approx(min(reached), rel=1e-7)


def test_near_1_the_best_cut_leads_lower_than_any_vector() -> None:
    graph, p = problems.random_graph(12, 0.35, seed=3), 1.1
    operator, root = EdgeOperator(graph), graph.degree.sqrt().numpy()
    sets = (np.array([0, *inside]) for inside in itertools.product([0, 1], repeat=11) if any(inside))
    best = min(sets, key=lambda inside: cheeger_cut(graph, inside))
    expected = operator.quotient(lowered(operator, best * root, p, 1e-9, 100), p)
    u = spectrum(graph, k=2).vectors[:, 1]
    for q in np.arange(1.9, 1.05, -0.1):
        u = lowered(operator, u, q, 1e-9, 100)
    assert operator.quotient(u, p) > 1.02 * expected
    assert second_eigenpair(graph, p).value == pytest.approx(expected, rel=1e-7)


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 10), st.integers(0, 100), st.sampled_from([1.1, 1.5, 1.9]))
def test_no_descent_rises(n: int, seed: int, p: float) -> None:
    operator = EdgeOperator(problems.complete(n))
    u = np.random.default_rng(seed).standard_normal(n)
    start = float(operator.quotient(shifted(operator, u, p), p))
    for below in (_reweighted(operator, u, p, 1e-9, 50), _quasi_newton(operator, u, p, 50)):
        assert float(operator.quotient(below, p)) <= start * (1 + 1e-12)


@pytest.mark.parametrize("p", [1.2, 1.5])
def test_all_ways_to_solve_find_the_same(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = problems.grid(5, 6)
    value = second_eigenpair(graph, p, starts=1).value
    monkeypatch.setattr("plap.spectral.second._SMALL", 0)
    monkeypatch.setattr("plap.spectral.second._DENSE", 0)
    assert second_eigenpair(graph, p, starts=1).value == pytest.approx(value, rel=1e-6)
    monkeypatch.setattr("plap.spectral.second._DIRECT", 0)
    assert second_eigenpair(graph, p, starts=1).value == pytest.approx(value, rel=1e-5)


def test_goes_to_the_cheeger_constant() -> None:
    graph = problems.barbell(4)
    best = cheeger_cut(graph, np.arange(8) < 4)
    gaps = [abs(second_eigenpair(graph, p).value - best) for p in (1.8, 1.4, 1.2, 1.1, 1.05)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.06 * best


def test_scale_of_weights_and_numbering_do_not_matter() -> None:
    graph = problems.random_graph(10, 0.5, 3)
    pair = second_eigenpair(graph, 1.3)
    assert second_eigenpair(graph.with_weight(1e6 * graph.weight), 1.3).value == pytest.approx(pair.value)
    order = np.random.default_rng(0).permutation(10)
    edges = order[graph.edge_index.numpy().T]
    renumbered = Graph.from_edges(edges, graph.weight.numpy(), 10)
    other = second_eigenpair(renumbered, 1.3)
    assert other.value == pytest.approx(pair.value)
    np.testing.assert_allclose(np.abs(other.vector[order]), np.abs(pair.vector), atol=1e-6)


@pytest.mark.parametrize("p", [1.2, 1.7, 2.5])
def test_weights_of_very_different_size(p: float) -> None:
    """The light edge is the cut; without it the ends would be constant on each side."""
    graph = problems.weighted([(0, 1, 1.0), (1, 2, 1e-12), (2, 3, 1.0)], 4)
    pair = second_eigenpair(graph, p)
    np.testing.assert_array_equal(np.sign(pair.vector), np.sign(pair.vector[0]) * np.array([1, 1, -1, -1]))
    assert pair.value == pytest.approx((2 * 1e-6) ** p / 4, rel=1e-3)
    steep = problems.weighted([(0, 1, 1e-8), (1, 2, 1.0), (2, 3, 1e8)], 4)
    assert second_eigenpair(steep, p).residual < 1e-4


def test_refuses_what_has_no_second_pair() -> None:
    with pytest.raises(plap.InputError, match="4 nodes in 2 components"):
        second_eigenpair(Graph.from_edges([(0, 1), (2, 3)]), 1.5)
    with pytest.raises(plap.InputError, match="connected graph of two nodes or more"):
        second_eigenpair(Graph.from_edges([], num_nodes=1), 1.5)
    with pytest.raises(plap.InputError, match="p must be a finite number above 1, not 1"):
        second_eigenpair(problems.path(4), 1)
    with pytest.raises(plap.InputError, match="starts"):
        second_eigenpair(problems.path(4), 1.5, starts=0)
