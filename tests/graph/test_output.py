"""What a graph gives to others: edges, parts of itself, and itself as other libraries have it."""

from __future__ import annotations

import sys
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import problems
from plap import Graph, InputError
from plap.graph import check_graph
from plap.kernels.dense import weight_matrix
from problems import PROBLEMS, Problem, entries_of

GRAPHS = [make().graph for make in PROBLEMS.values()]
FORMS = pytest.mark.parametrize("graph", GRAPHS, ids=list(PROBLEMS))


def dense(graph: Graph) -> torch.Tensor:
    return weight_matrix(graph, torch.float64)


@FORMS
@pytest.mark.parametrize("triangle", ["lower", "upper"])
def test_edges_once_are_one_triangle_of_the_matrix(graph: Graph, triangle: Any) -> None:
    once = graph.edges_once(triangle)
    source, receiver = graph.edge_index[:, once]
    below, above = (source, receiver) if triangle == "lower" else (receiver, source)
    assert bool((below < above).all())
    expected = dense(graph).tril(-1) if triangle == "lower" else dense(graph).triu(1)
    found = torch.zeros_like(expected).index_put((receiver, source), graph.weight[once].double())
    assert torch.equal(found, expected)
    assert once.shape[0] == graph.num_edges - graph.num_self_loops
    assert bool((once.diff() > 0).all())


def test_edges_once_refuses_another_triangle() -> None:
    with pytest.raises(InputError, match="triangle must be one of lower, upper, not 'both'"):
        problems.path(3).edges_once("both")  # type: ignore[arg-type]


@FORMS
def test_reverse_entries_swap_the_two_ends(graph: Graph) -> None:
    reverse = graph.reverse_entries()
    assert torch.equal(graph.edge_index[:, reverse], graph.edge_index.flip(0))
    assert torch.equal(reverse[reverse], torch.arange(graph.num_entries))
    assert torch.equal(graph.weight[reverse], graph.weight)


@settings(deadline=None)
@given(problems.graphs_with_features(), st.data())
def test_a_subgraph_is_the_matrix_of_its_rows_and_columns(problem: Problem, data: st.DataObject) -> None:
    graph = problem.graph
    nodes = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), min_size=1, unique=True))
    chosen = sorted(nodes)
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
    mask[nodes] = True
    piece = graph.cut_out(nodes)
    whole = dense(graph)
    assert piece.nodes.tolist() == chosen
    assert torch.equal(dense(piece.graph), whole[chosen][:, chosen])
    torch.testing.assert_close(piece.lost, whole[chosen][:, ~mask].sum(1))
    torch.testing.assert_close(piece.graph.degree + piece.lost, graph.degree[chosen])
    assert graph.subgraph(mask).digest == graph.subgraph(np.array(nodes)).digest == piece.graph.digest


def test_gradients_flow_into_a_subgraph() -> None:
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), weight)
    graph.subgraph([0, 1]).degree.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0, 0.0]


@FORMS
def test_scipy_and_back(graph: Graph) -> None:
    matrix = graph.to_scipy()
    np.testing.assert_array_equal(matrix.toarray(), dense(graph).numpy())
    assert Graph.from_scipy(matrix, self_loops="keep").digest == graph.digest
    ones = graph.to_scipy(weighted=False, dtype=np.int8)
    assert ones.dtype == np.int8
    np.testing.assert_array_equal(ones.toarray(), dense(graph).numpy() > 0)
    assert graph.to_scipy(dtype=np.float64).dtype == np.float64


def test_a_scipy_copy_can_be_changed_and_the_graph_stays() -> None:
    graph = problems.grid(3, 3)
    before = graph.digest
    matrix = graph.to_scipy()
    matrix.data[:] = 7
    matrix.indices[:] = 0
    assert graph.digest == before
    assert np.shares_memory(graph.to_scipy(copy=False).data, graph.weight.numpy())


@FORMS
def test_pyg_and_back(graph: Graph) -> None:
    data = graph.to_pyg(y=torch.arange(graph.num_nodes))
    assert data.num_nodes == graph.num_nodes
    assert torch.equal(data.y, torch.arange(graph.num_nodes))
    assert Graph.from_pyg(data, symmetrize="error", self_loops="keep").digest == graph.digest


@FORMS
def test_networkx_and_back(graph: Graph) -> None:
    other = graph.to_networkx()
    assert list(other) == list(range(graph.num_nodes))
    assert other.number_of_edges() == graph.num_edges
    back = Graph.from_networkx(other, symmetrize="error", self_loops="keep")
    assert entries_of(back) == entries_of(graph)


def test_without_networkx_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    path = networkx.path_graph(3)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(
        InputError, match=r"Graph.from_networkx needs .* networkx: pip install 'plap\[networkx\]'"
    ):
        Graph.from_networkx(path)
    with pytest.raises(
        InputError, match=r"Graph.to_networkx needs .* networkx: pip install 'plap\[networkx\]'"
    ):
        problems.path(3).to_networkx()


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(InputError, match=r"graph must be a networkx.Graph, not list"):
        Graph.from_networkx([(0, 1)])
    with pytest.raises(InputError, match=r"graph must be a plap\.Graph, not Graph"):
        check_graph(networkx.path_graph(3))
    assert check_graph(GRAPHS[0]) is GRAPHS[0]
