from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.utils import homophily as pyg_homophily

from plap.data import GraphData, homophily
from plap.data.measures import MEASURES
from plap.errors import InputError
from plap.graph import Graph

Real = Callable[..., GraphData]

PAPER = {
    "cora": 0.825,
    "citeseer": 0.717,
    "pubmed": 0.792,
    "computers": 0.802,
    "photo": 0.849,
    "cs": 0.832,
    "physics": 0.915,
    "chameleon": 0.247,
    "squirrel": 0.216,
    "actor": 0.221,
    "wisconsin": 0.150,
    "texas": 0.097,
    "cornell-2021": 0.386,
}
"""The last column of the paper's table "Statistics of datasets"."""

PLATONOV = {
    "cora": (0.81, 0.83, 0.77, 0.77, 0.59),
    "citeseer": (0.74, 0.72, 0.63, 0.67, 0.45),
    "pubmed": (0.80, 0.79, 0.66, 0.69, 0.41),
    "minesweeper": (0.68, 0.68, 0.01, 0.01, 0.00),
}
"""Edge, node, class-insensitive, adjusted, label informativeness, as Platonov et al. (2023) print them."""


@pytest.mark.parametrize(("name", "value"), PAPER.items())
def test_the_paper_table(name: str, value: float, real: Real) -> None:
    data = real(name, largest_component=name in ("computers", "photo"))
    assert f"{homophily(data, measure='paper'):.3f}" == f"{value:.3f}"


@pytest.mark.parametrize(("name", "values"), PLATONOV.items())
def test_other_measures_as_published(name: str, values: tuple[float, ...], real: Real) -> None:
    found = [f"{homophily(real(name), measure=measure):.2f}" for measure in MEASURES if measure != "paper"]
    assert found == [f"{value:.2f}" for value in values]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, Tensor]:
    """A ring (so that no node is isolated) with chords, and labels in which two classes are neighbours."""
    nodes = draw(st.integers(4, 15))
    every = [(i, j) for j in range(nodes) for i in range(j)]
    chords = draw(st.lists(st.sampled_from(every), max_size=20))
    y = draw(st.lists(st.integers(0, 3), min_size=nodes - 2, max_size=nodes - 2))
    ring = [(k, (k + 1) % nodes) for k in range(nodes)]
    return Graph.from_edges(ring + chords), torch.tensor([0, 1, *y])


@given(graphs())
def test_against_pyg_where_it_agrees_on_the_definition(problem: tuple[Graph, Tensor]) -> None:
    graph, y = problem
    for measure in ("edge", "node"):
        expected = pyg_homophily(graph.edge_index, y, method=measure)
        assert homophily(graph, y, measure=measure) == pytest.approx(expected, abs=1e-6)
    dense = torch.tensor([sorted(set(y.tolist())).index(label) for label in y.tolist()])
    expected = pyg_homophily(graph.edge_index, dense, method="edge_insensitive")
    assert homophily(graph, y, measure="class_insensitive") == pytest.approx(expected, abs=1e-6)


@given(graphs())
def test_against_their_definition_edge_by_edge(problem: tuple[Graph, Tensor]) -> None:
    graph, y = problem
    edges = [(int(y[i]), int(y[j])) for i, j in graph.edge_index.T]
    share = {k: sum(a == k for a, _ in edges) / len(edges) for k in set(y.tolist())}
    edge = sum(a == b for a, b in edges) / len(edges)
    expected = sum(value**2 for value in share.values())
    assert homophily(graph, y, measure="adjusted") == pytest.approx((edge - expected) / (1 - expected))
    information = sum(
        (count := edges.count(pair) / len(edges)) * math.log(count / (share[pair[0]] * share[pair[1]]))
        for pair in set(edges)
    )
    entropy = -sum(value * math.log(value) for value in share.values())
    found = homophily(graph, y, measure="label_informativeness")
    assert found == pytest.approx(information / entropy, abs=1e-12)


@given(graphs())
def test_names_of_classes_do_not_matter(problem: tuple[Graph, Tensor]) -> None:
    graph, y = problem
    for measure in MEASURES:
        assert homophily(graph, y, measure=measure) == pytest.approx(homophily(graph, 7 - y, measure=measure))


def test_perfect_homophily_and_heterophily() -> None:
    pairs = Graph.from_edges([(0, 1), (2, 3)])
    equal, unequal = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    assert [homophily(pairs, equal, measure=m) for m in MEASURES] == pytest.approx([1, 1, 1, 1, 1, 1])
    assert [homophily(pairs, unequal, measure=m) for m in MEASURES] == pytest.approx([0, 0, 0, -1, 1, 0])


def test_paper_follows_the_published_direction_without_self_loops() -> None:
    directed = torch.tensor([[0, 0, 1, 2], [1, 2, 1, 0]])
    data = GraphData(
        "three",
        Graph.from_edge_index(directed),
        torch.ones(3, 1),
        torch.tensor([0, 0, 1]),
        directed_edge_index=directed,
    )
    # Node 0 points to 1 and 2: 1/2; node 2 to 0: 0; node 1 only to itself: not counted.
    assert homophily(data, measure="paper") == pytest.approx(0.25)
    assert homophily(data, measure="node") == pytest.approx(0.5)


def test_unknown_labels_and_isolated_nodes_count_as_absent() -> None:
    small = Graph.from_edges([(0, 1), (1, 2)])
    large = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)], num_nodes=5)
    y = torch.tensor([0, 0, 1])
    for measure in MEASURES:
        expected = homophily(small, y, measure=measure)
        assert homophily(large, torch.cat([y, torch.tensor([-1, -1])]), measure=measure) == expected


@pytest.mark.parametrize(
    ("y", "measure", "sentence"),
    [
        (torch.tensor([0, 1]), "entropy", "measure must be one of edge, node"),
        (torch.tensor([0]), "edge", r"integer labels of shape \[2\]"),
        (torch.tensor([0.0, 1.0]), "edge", "integer labels"),
        (torch.tensor([[1], [0]]), "edge", "one class per node"),
        (torch.tensor([-1, 0]), "edge", "no edge joins two nodes with known labels"),
        (torch.tensor([0, 0]), "adjusted", "of one class"),
        (torch.tensor([0, 0]), "class_insensitive", "of one class"),
        (torch.tensor([0, 0]), "label_informativeness", "of one class"),
        (None, "edge", "needs its labels"),
        (np.array([0, 1]), "edge", "y must be a tensor, not ndarray"),
    ],
)
def test_what_is_undefined_is_refused(y: Tensor | None, measure: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        homophily(Graph.from_edges([(0, 1)]), y, measure=measure)


def test_edges_alone_are_no_graph() -> None:
    with pytest.raises(InputError, match=r"data must be a plap.Graph or a GraphData, not Tensor"):
        homophily(torch.tensor([[0], [1]]), torch.tensor([0, 1]))  # type: ignore[arg-type]
