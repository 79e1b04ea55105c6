"""Graphs from SciPy, PyTorch, NetworkX and PyG."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.edge_index import EdgeIndex

from plap import Graph, InputError
from problems import entries_of


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_scipy_formats(form: str, make: Callable[..., scipy.sparse.csr_array]) -> None:
    dense = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 5.0]])
    graph = Graph.from_scipy(make(dense).asformat(form))
    assert entries_of(graph) == {(0, 1): 2, (1, 0): 2, (1, 2): 3, (2, 1): 3, (0, 2): 1, (2, 0): 1}
    assert graph.weight.dtype == torch.float64
    assert graph.info.self_loops == 1


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32, np.longdouble])
def test_scipy_value_types(dtype: type) -> None:
    graph = Graph.from_scipy(scipy.sparse.coo_array(np.array([[0, 1], [1, 0]], dtype=dtype)))
    assert graph.weight.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_scipy_entries_of_one_place_are_summed_and_zeros_are_no_edges(form: str) -> None:
    values, row, column = [1.0, 1.0, 1.0, 1.0, 0.0, 2.0, -2.0], [0, 0, 0, 1, 0, 1, 1], [1, 1, 1, 2, 2, 0, 0]
    stored = scipy.sparse.coo_array((values, (row, column)), shape=(3, 3)).asformat(form)
    assert entries_of(Graph.from_scipy(stored)) == {(0, 1): 3, (1, 0): 3, (1, 2): 1, (2, 1): 1}


@pytest.mark.parametrize("form", ["coo", "csr"])
def test_the_callers_matrix_stays_as_it_is(form: str) -> None:
    stored: Any
    if form == "csr":  # with a repeated entry and a zero, in no order
        stored = scipy.sparse.csr_array(([1.0, 0.0, 1.0], [1, 0, 1], [0, 3, 3]), shape=(2, 2))
    else:
        stored = scipy.sparse.coo_array(([1.0, 0.0, 1.0], ([0, 0, 0], [1, 0, 1])), shape=(2, 2))
    assert entries_of(Graph.from_scipy(stored)) == {(0, 1): 2, (1, 0): 2}
    assert stored.data.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_zeros_of_a_torch_matrix_are_no_edges_and_the_rest_keeps_its_gradient(layout: torch.layout) -> None:
    places = torch.tensor([[0, 0, 1], [1, 2, 2]])
    weight = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    matrix = torch.sparse_coo_tensor(places, weight, (3, 3)).to_sparse(layout=layout)
    graph = Graph.from_torch_sparse(matrix)
    assert entries_of(graph) == {(0, 1): 2, (1, 0): 2, (1, 2): 3, (2, 1): 3}
    graph.weight.sum().backward()
    assert weight.grad is not None
    assert weight.grad.to_dense().tolist() == [2.0, 0.0, 2.0]


def test_edge_weights_of_pairs_keep_their_gradient() -> None:
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    Graph.from_edges([(0, 1), (1, 2)], weight).weight.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0, 2.0]
    assert Graph.from_edges([(0, 1)], torch.tensor([2])).weight.dtype == torch.float32


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_torch_sparse_layouts(layout: torch.layout) -> None:
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    graph = Graph.from_torch_sparse(dense.to_sparse(layout=layout), symmetrize="mean")
    assert entries_of(graph) == {(0, 1): 2.5, (1, 0): 2.5}


def test_an_undirected_networkx_graph_is_undirected() -> None:
    graph = Graph.from_networkx(networkx.path_graph(3), symmetrize="error")
    assert not graph.info.symmetrized
    assert graph.num_edges == 2


def test_networkx_kinds() -> None:
    plain = networkx.Graph([("a", "b", {"weight": 4.0}), ("b", "c")])
    plain.add_node("alone")
    graph = Graph.from_networkx(plain)
    assert entries_of(graph) == {(0, 1): 4.0, (1, 0): 4.0, (1, 2): 1.0, (2, 1): 1.0}
    assert graph.num_nodes == 4
    assert set(Graph.from_networkx(plain, weight=None).weight.tolist()) == {1.0}
    directed = networkx.DiGraph(
        [("a", "b", {"cost": 4.0}), ("b", "a", {"cost": 2.0}), ("b", "c", {"cost": 6.0})]
    )
    mean = Graph.from_networkx(directed, "cost", symmetrize="mean")
    assert entries_of(mean) == {(0, 1): 3.0, (1, 0): 3.0, (1, 2): 6.0, (2, 1): 6.0}
    multi = networkx.MultiGraph([(0, 1, {"weight": 1.0}), (0, 1, {"weight": 5.0}), (1, 1, {"weight": 2.0})])
    summed = Graph.from_networkx(multi, symmetrize="sum")
    assert entries_of(summed) == {(0, 1): 6.0, (1, 0): 6.0}
    assert (summed.info.duplicates, summed.info.self_loops) == (2, 1)  # each direction of the double edge


def test_pyg_data() -> None:
    index = torch.tensor([[0, 1], [1, 2]])
    graph = Graph.from_pyg(Data(edge_index=index, num_nodes=5))
    assert (graph.num_nodes, graph.num_edges) == (5, 2)
    weighted = Graph.from_pyg(Data(edge_index=index, edge_weight=torch.tensor([2.0, 3.0]), num_nodes=3))
    assert weighted.weight.tolist() == [2, 2, 3, 3]
    assert Graph.from_edge_index(EdgeIndex([[0, 1], [1, 2]]), num_nodes=5).digest == graph.digest
    with pytest.raises(InputError, match="edge_index is missing"):
        Graph.from_pyg(Data(num_nodes=3))
