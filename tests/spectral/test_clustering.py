"""Clusters by the second p-eigenvector: better cuts for smaller p, and none better where all can be tried."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

import plap
import problems
import spectral_graphs
from plap.graph import Graph
from plap.spectral import cheeger_cut, spectral_clustering
from plap.spectral.operator import EdgeOperator
from plap.spectral.second import best_threshold


def best_cut(graph: Graph) -> float:
    """The smallest Cheeger cut over all bisections."""
    n = graph.num_nodes
    return min(
        cheeger_cut(graph, [0, *inside]) for inside in itertools.product([0, 1], repeat=n - 1) if any(inside)
    )


def agreement(labels: np.ndarray, truth: np.ndarray) -> float:
    same = float((labels == truth).mean())
    return max(same, 1 - same)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0])
def test_barbell_is_cut_at_its_bar(p: float) -> None:
    graph = problems.barbell(4)
    found = spectral_clustering(graph, p=p)
    assert found.labels.tolist() == [0] * 4 + [1] * 4
    assert found.cuts[0] == pytest.approx(best_cut(graph))
    assert found.cuts[0] == pytest.approx(cheeger_cut(graph, found.labels))


def test_cut_shrinks_to_the_best_as_p_goes_to_1() -> None:
    graph = problems.random_graph(10, 0.35, seed=22)
    cuts = [spectral_clustering(graph, p=p).cuts[0] for p in (2.0, 1.6, 1.3, 1.1)]
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(cuts))
    best = best_cut(graph)
    assert cuts[0] > 1.02 * best
    assert cuts[-1] == pytest.approx(best)


def test_two_moons_come_apart_as_p_goes_to_1() -> None:
    graph, moon = spectral_graphs.two_moons(200, noise=0.15, seed=3)
    found = [spectral_clustering(graph, p=p) for p in (2.0, 1.5, 1.2)]
    cuts = [clustering.cuts[0] for clustering in found]
    assert cuts[1] < 0.7 * cuts[0]
    assert cuts[2] <= cuts[1] * (1 + 1e-9)
    assert agreement(found[0].labels, moon) < 0.9
    assert agreement(found[-1].labels, moon) > 0.95


def test_three_cliques() -> None:
    ring = nx.ring_of_cliques(3, 5)
    found = spectral_clustering(Graph.from_networkx(ring), 3, p=1.3)
    assert found.labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert len(found.cuts) == 2


def test_a_threshold_never_parts_equals() -> None:
    """The bar of the barbell, the best cut of all, is between two nodes of one level here."""
    graph = problems.barbell(3)
    inside, cut = best_threshold(EdgeOperator(graph), np.array([0.0, 0, 0, 0, 1, 1]))
    assert inside.tolist() == [False] * 4 + [True] * 2
    assert cut == pytest.approx(cheeger_cut(graph, inside))


def test_components_cost_nothing() -> None:
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (5, 6), (6, 7), (7, 5), (5, 3)]
    graph = Graph.from_edges(edges, num_nodes=8)
    two = spectral_clustering(graph, 2)
    assert two.labels.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    assert two.cuts == (0.0,)
    three = spectral_clustering(graph, 3)
    assert three.labels.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]


def test_as_many_clusters_as_nodes() -> None:
    graph = problems.path(4)
    assert spectral_clustering(graph, 4).labels.tolist() == [0, 1, 2, 3]
    assert spectral_clustering(graph, 1).labels.tolist() == [0, 0, 0, 0]


def test_refuses_what_has_no_answer() -> None:
    graph = Graph.from_edges([(0, 1), (2, 3), (4, 5)])
    with pytest.raises(plap.InputError, match="3 components, more than the 2 clusters"):
        spectral_clustering(graph)
    with pytest.raises(plap.InputError, match="at most the 6 nodes"):
        spectral_clustering(graph, 7)
    with pytest.raises(plap.InputError, match="clusters must be an integer"):
        spectral_clustering(graph, 2.5)  # type: ignore[arg-type]
    with pytest.raises(plap.InputError, match="both sides"):
        cheeger_cut(graph, [0] * 6)
    with pytest.raises(plap.InputError, match=r"shape \[6\]"):
        cheeger_cut(graph, [True, False])
