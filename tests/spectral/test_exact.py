"""Spectra of Δ_2 in closed form, multiplicities over components, and Lanczos against dense."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import plap
import problems
import spectral_graphs
from plap.graph import Graph
from plap.spectral import spectrum
from plap.spectral.operator import EdgeOperator

CLOSED_FORMS = {
    "path": (problems.path(9), 1 - np.cos(np.pi * np.arange(9) / 8)),
    "star": (problems.star(6), np.array([0, 1, 1, 1, 1, 1, 2])),
    "complete": (problems.complete(7), np.array([0] + [7 / 6] * 6)),
    "cycle": (spectral_graphs.cycle(9), 1 - np.cos(2 * np.pi * np.arange(9) / 9)),
    "torus": (
        spectral_graphs.torus(4, 5),
        1 - np.add.outer(np.cos(np.pi * np.arange(4) / 2), np.cos(2 * np.pi * np.arange(5) / 5)).ravel() / 2,
    ),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms(name: str) -> None:
    graph, expected = CLOSED_FORMS[name]
    found = spectrum(graph)
    np.testing.assert_allclose(found.values, np.sort(expected), atol=1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(graph.num_nodes), atol=1e-12)
    laplacian = EdgeOperator(graph).laplacian
    np.testing.assert_allclose(laplacian @ found.vectors, found.vectors * found.values, atol=1e-12)


@pytest.mark.parametrize("graph", [nx.barbell_graph(4, 2), nx.grid_2d_graph(4, 6)], ids=["barbell", "grid"])
def test_networkx_agrees(graph: nx.Graph) -> None:
    expected = np.sort(np.linalg.eigvalsh(nx.normalized_laplacian_matrix(graph).toarray()))
    np.testing.assert_allclose(spectrum(Graph.from_networkx(graph)).values, expected, atol=1e-12)


@pytest.mark.parametrize("which", ["smallest", "largest"])
@pytest.mark.parametrize(
    "make", [lambda: problems.random_graph(700, 0.01, 1), lambda: spectral_graphs.torus(20, 30)]
)
def test_either_end_of_a_large_graph(make: object, which: str) -> None:
    graph = make()  # type: ignore[operator]
    dense = np.linalg.eigvalsh(EdgeOperator(graph).laplacian.toarray())
    some = spectrum(graph, k=9, which=which)  # type: ignore[arg-type]
    expected = dense[:9] if which == "smallest" else dense[-9:]
    np.testing.assert_allclose(some.values, expected, atol=1e-9)
    laplacian = EdgeOperator(graph).laplacian
    np.testing.assert_allclose(laplacian @ some.vectors, some.vectors * some.values, atol=1e-7)
    np.testing.assert_allclose(some.vectors.T @ some.vectors, np.eye(9), atol=1e-7)


def test_gaps_too_small_for_products_alone() -> None:
    n = 1500
    some = spectrum(problems.path(n), k=4)
    np.testing.assert_allclose(some.values, 1 - np.cos(np.pi * np.arange(4) / (n - 1)), atol=1e-12)


def test_shared_eigenvalues_are_found_as_often_as_they_are_there() -> None:
    """Lanczos from one vector sees each only once; the components are solved one by one."""
    triangles = [(3 * k + i, 3 * k + j) for k in range(200) for i, j in ((0, 1), (1, 2), (2, 0))]
    graph = Graph.from_edges(triangles, num_nodes=610)
    np.testing.assert_allclose(spectrum(graph, k=215).values, [0] * 210 + [1.5] * 5, atol=1e-12)
    np.testing.assert_allclose(spectrum(graph, k=7, which="largest").values, [1.5] * 7)


def test_small_cases() -> None:
    assert spectrum(Graph.from_edges([], num_nodes=3)).values.tolist() == [0, 0, 0]
    assert spectrum(Graph.from_edges([], num_nodes=0)).vectors.shape == (0, 0)


def test_a_self_loop_counts_in_the_degree_only() -> None:
    graph = problems.weighted([(0, 1, 1.0), (0, 0, 1.0)], 2, keep_loops=True)
    np.testing.assert_allclose(spectrum(graph).values, [0, 1.5], atol=1e-12)


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(plap.InputError, match="at most the 5 nodes"):
        spectrum(problems.path(5), k=6)
    with pytest.raises(plap.InputError, match="k must be an integer"):
        spectrum(problems.path(5), k=0)
    with pytest.raises(plap.InputError, match="smallest, largest"):
        spectrum(problems.path(5), k=1, which="SM")  # type: ignore[arg-type]
    with pytest.raises(plap.InputError, match="ask for k"):
        spectrum(Graph.from_edges([], num_nodes=20_000))
