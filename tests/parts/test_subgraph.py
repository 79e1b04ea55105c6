from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

import plap
import problems
from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.dense import weight_matrix
from plap.nn import baselines
from plap.parts import induced, with_halo

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}


def matrix(graph: Graph) -> torch.Tensor:
    return weight_matrix(graph, torch.float64)


@given(problems.graphs_with_features(), st.data())
def test_induced_is_the_matrix_of_its_rows_and_columns(
    problem: problems.Problem, data: st.DataObject
) -> None:
    graph = problem.graph
    nodes = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), min_size=1, unique=True))
    piece = induced(graph, nodes)
    assert piece.nodes.tolist() == sorted(nodes)
    assert bool(piece.core.all())
    expected = matrix(graph)[piece.nodes][:, piece.nodes]
    assert torch.equal(matrix(piece.graph), expected)
    torch.testing.assert_close(piece.graph.degree, expected.sum(1))
    assert (
        piece.graph.digest
        == Graph.from_scipy(scipy.sparse.coo_array(expected.numpy()), self_loops="keep").digest
    )
    assert piece.graph.num_self_loops == int((expected.diagonal() > 0).sum())


@given(problems.graphs_with_features(), st.integers(0, 4), st.data())
def test_a_halo_is_all_within_its_hops_with_the_degrees_of_the_whole(
    problem: problems.Problem, hops: int, data: st.DataObject
) -> None:
    graph = problem.graph
    nodes = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), min_size=1, unique=True))
    piece = with_halo(graph, nodes, hops)
    whole = networkx.from_numpy_array(matrix(graph).numpy())
    near = set(networkx.multi_source_dijkstra_path_length(whole, set(nodes), hops, weight=None))
    assert piece.nodes.tolist() == sorted(near)
    assert piece.core_nodes.tolist() == sorted(nodes)
    torch.testing.assert_close(piece.graph.degree, graph.degree[piece.nodes], **EXACT)
    inside = matrix(graph)[piece.nodes][:, piece.nodes]
    outside = matrix(piece.graph)
    torch.testing.assert_close(
        outside - outside.diagonal().diag(), inside - inside.diagonal().diag(), **EXACT
    )


@given(problems.graphs_with_features(), st.integers(1, 4), st.data())
def test_without_loops_at_the_rim_a_halo_is_induced_and_whole_up_to_the_last_hop(
    problem: problems.Problem, hops: int, data: st.DataObject
) -> None:
    graph = problem.graph
    nodes = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), min_size=1, unique=True))
    piece = with_halo(graph, nodes, hops, rim_loops=False)
    closed = with_halo(graph, nodes, hops)
    assert torch.equal(piece.nodes, closed.nodes)
    assert torch.equal(piece.core, closed.core)
    assert torch.equal(matrix(piece.graph), matrix(induced(graph, piece.nodes).graph))
    before = torch.isin(piece.nodes, with_halo(graph, nodes, hops - 1).nodes)
    torch.testing.assert_close(piece.graph.degree[before], graph.degree[piece.nodes[before]], **EXACT)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 2.5, 4.0])
@pytest.mark.parametrize("backend", ["fused", "torch", "dense"])
def test_propagation_on_core_and_halo_is_exact(p: float, backend: Any) -> None:
    graph, K = problems.random_graph(200, 0.015, seed=3), 3
    x = problems.features(200, 3)
    whole = plap.propagate(x, graph, p, 0.1, K, backend=backend)
    core = torch.arange(0, 200, 25)
    piece = with_halo(graph, core, K)
    assert 8 < piece.graph.num_nodes < 200
    part = plap.propagate(piece.rows(x), piece.graph, p, 0.1, K, backend=backend)
    torch.testing.assert_close(part[piece.core], whole[core], **EXACT)
    short = with_halo(graph, core, K - 1)
    part = plap.propagate(short.rows(x), short.graph, p, 0.1, K, backend=backend)
    assert float((part[short.core] - whole[core]).abs().max()) > 1e-6


def test_exact_also_with_a_clamp_damping_and_kept_self_loops() -> None:
    edges = problems.random_graph(100, 0.03, seed=4).edge_index.T.numpy()
    loops = np.repeat(np.arange(0, 100, 3)[:, None], 2, axis=1)
    graph = Graph.from_edges(np.concatenate([edges, loops]), num_nodes=100, self_loops="keep")
    x = problems.features(100, 3)
    options: dict[str, Any] = {"p": 1.5, "mu": 0.1, "K": 2, "eps": 0.3, "omega": 0.7}
    whole = plap.propagate(x, graph, **options)
    piece = with_halo(graph, [5, 6, 50], 2)
    torch.testing.assert_close(
        plap.propagate(piece.rows(x), piece.graph, **options)[piece.core], whole[[5, 6, 50]], **EXACT
    )


def test_a_whole_deep_model_is_exact_on_its_hops() -> None:
    graph = problems.grid(12, 12)
    x = problems.features(144, 5)
    torch.manual_seed(0)
    model = plap.nn.DeepPGNN(5, 8, 3, num_layers=2, p=1.5, K=2, residual=True, mlp_layers=1).double()
    model(x, graph)
    model.eval()
    piece = with_halo(graph, [0, 70], model.hops)
    assert piece.graph.num_nodes < 144
    torch.testing.assert_close(
        model(piece.rows(x), piece.graph)[piece.core], model(x, graph)[[0, 70]], **EXACT
    )


def test_a_model_that_adds_self_loops_needs_one_hop_more() -> None:
    graph = problems.grid(12, 12)
    x = problems.features(144, 5)
    model = baselines.GCN(5, 8, 3).double().eval()
    piece = with_halo(graph, [0, 70], 3)
    torch.testing.assert_close(
        model(piece.rows(x), piece.graph)[piece.core], model(x, graph)[[0, 70]], **EXACT
    )


def test_rows_of_everything_that_has_rows() -> None:
    piece = induced(problems.path(6), [4, 1, 3])
    x = torch.where(problems.features(6, 4) > 0, problems.features(6, 4), 0).float()
    expected = x[[1, 3, 4]]
    assert torch.equal(piece.rows(x), expected)
    assert torch.equal(piece.rows(x.to_sparse_csr()).to_dense(), expected)
    assert piece.rows(x.to_sparse_csr()).layout == torch.sparse_csr
    assert torch.equal(piece.rows(x.to_sparse_coo()).to_dense(), expected)
    for form in (scipy.sparse.csr_array, scipy.sparse.coo_matrix):
        np.testing.assert_array_equal(piece.rows(form(x.numpy())).toarray(), expected.numpy())
    np.testing.assert_array_equal(piece.rows(x.numpy()), expected.numpy())
    assert piece.rows(torch.arange(6)).tolist() == [1, 3, 4]
    assert piece.rows(torch.arange(6) > 3).tolist() == [False, False, True]
    empty = torch.sparse_csr_tensor(torch.zeros(7, dtype=torch.int64), [], [], (6, 4))
    assert piece.rows(empty).shape == (3, 4)


def test_sparse_rows_train_a_model() -> None:
    piece = induced(problems.grid(), range(6))
    x = torch.where(problems.features(12, 4) > 0, 1.0, 0.0)
    model = plap.nn.PGNN(4, 8, 2).eval()
    torch.testing.assert_close(
        model(piece.rows(x.to_sparse_csr()), piece.graph), model(piece.rows(x), piece.graph)
    )


def test_a_mask_names_nodes_too() -> None:
    graph = problems.path(4)
    assert induced(graph, torch.tensor([True, False, True, True])).nodes.tolist() == [0, 2, 3]
    assert with_halo(graph, np.array([True, False, False, False]), 1).nodes.tolist() == [0, 1]


def test_weights_keep_their_type_and_their_gradient() -> None:
    weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 3]]), weight)
    induced(graph, [1, 2, 3]).graph.weight.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [0.0, 2.0, 2.0]
    assert with_halo(graph, [0], 1).graph.weight.dtype == torch.float32


def test_refuses() -> None:
    graph = problems.path(4)
    cases: list[tuple[Any, str]] = [
        ([0, 4], "nodes contains 4, but the graph has the nodes 0 to 3"),
        ([-1, 2], "nodes contains -1"),
        ([1, 2, 1], "nodes contains 1 twice"),
        ([], "at least one node"),
        ([0.5], "nodes must be integers"),
        ("ab", "nodes must be integers or a mask, not str"),
        ([[0], [1, 2]], "nodes must be integers or a mask, not list"),
        ([[0, 1]], "nodes must be integers"),
        (torch.ones(3, dtype=torch.bool), r"a mask of nodes must have shape \[4\], not \[3\]"),
    ]
    for nodes, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            induced(graph, nodes)
        with pytest.raises(InputError, match=sentence):
            with_halo(graph, nodes, 1)
    with pytest.raises(InputError, match="hops must be an integer of 0 or more, not -1"):
        with_halo(graph, [0], -1)
    with pytest.raises(InputError, match="graph must be a"):
        with_halo(graph.edge_index, [0], 1)  # type: ignore[arg-type]
