"""RUNG, Elastic GNN and GCN-Jaccard against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import relu

import plap
import problems
from plap.nn.linear import Features
from plap.nn.robust import elastic_message_passing, feature_jaccard


def objective(F: Tensor, X: Tensor, graph: plap.Graph, lambda1: float, lambda2: float) -> Tensor:
    """What Elastic GNN minimises, with dense matrices."""
    W = torch.from_numpy(graph.to_scipy().toarray()).double()
    degree = W.sum(1) + 1
    A = (W + torch.eye(W.shape[0])) / torch.outer(degree, degree).sqrt()
    i, j = graph.edge_index[:, graph.edges_once()]
    apart = F[i] / degree[i].sqrt()[:, None] - F[j] / degree[j].sqrt()[:, None]
    smooth = (F * (F - A @ F)).sum()
    lengths = (W[i, j] * apart.norm(dim=1)).sum()
    total: Tensor = lambda1 * lengths + lambda2 / 2 * smooth + (F - X).square().sum() / 2
    return total


WEIGHTS = [0.3, 1.0, 2.5, 0.01, 4.0, 1.5]


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(("lambda1", "lambda2"), [(0.5, 0.0), (0.0, 3.0), (3.0, 3.0), (0.2, 1.0)])
def test_elastic_message_passing_reaches_the_minimum(
    lambda1: float, lambda2: float, weights: list[float] | None
) -> None:
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (6, 7)]
    graph = plap.Graph.from_edges(edges, weights, num_nodes=8)
    X = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = elastic_message_passing(X, graph, lambda1, lambda2, K=3000)
    least = objective(found, X, graph, lambda1, lambda2)
    assert torch.equal(found[5], X[5]) or lambda2 > 0  # an isolated node; Ã averages it with itself
    for seed in range(20):
        step = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        assert objective(found + 1e-3 * step, X, graph, lambda1, lambda2) >= least - 1e-9


def test_without_the_l1_norm_a_step_is_one_of_personalised_pagerank() -> None:
    graph, x = problems.grid(3, 4), torch.randn(12, 2, dtype=torch.float64)
    model = plap.nn.baselines.APPNP(2, 4, 2, K=5, alpha=0.25)
    by_pagerank = plap.nn.adjacency.personalised_pagerank(model._adjacency(graph, None, 12), x, 5, 0.25)
    torch.testing.assert_close(elastic_message_passing(x, graph, 0.0, 3.0, K=5), by_pagerank)


def test_gradients_of_elastic_message_passing() -> None:
    graph = problems.grid(2, 3)
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: elastic_message_passing(x, graph, 0.7, 1.0, 4), (x,))


def weighted(weight: Tensor) -> plap.Graph:
    """A path of five nodes and an isolated one, with these weights [4]."""
    ends = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    return plap.Graph.from_edge_index(torch.cat([ends, ends.flip(0)], 1), weight.repeat(2), num_nodes=6)


def test_gradients_of_elastic_message_passing_in_weights() -> None:
    x = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2), requires_grad=True)
    weight = torch.tensor([0.4, 1.0, 2.0, 1e-3], dtype=torch.float64, requires_grad=True)

    def result(x: Tensor, weight: Tensor) -> Tensor:
        return elastic_message_passing(x, weighted(weight), 0.7, 1.0, 4)

    torch.testing.assert_close(result(x, weight), result(x, weight.detach()))
    assert torch.autograd.gradcheck(result, (x, weight))


def test_an_edge_of_weight_almost_0_is_no_edge_but_has_a_gradient() -> None:
    x = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    weight = torch.tensor([1.0, 1.0, 1.0, 1e-9], dtype=torch.float64, requires_grad=True)
    without = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)], num_nodes=6)
    found = elastic_message_passing(x, weighted(weight), 0.7, 0.0, 4)
    torch.testing.assert_close(found, elastic_message_passing(x, without, 0.7, 0.0, 4))
    (slope,) = torch.autograd.grad(found[4].sum(), weight)
    assert slope[3].abs() > 1e-2


def test_a_graph_without_edges() -> None:
    graph, x = plap.Graph.from_edges([], num_nodes=3), torch.randn(3, 4)
    torch.testing.assert_close(elastic_message_passing(x, graph, 1.0, 1.0, 3), x)
    for model in (plap.nn.RUNG(4, 5, 2), plap.nn.ElasticGNN(4, 5, 2), plap.nn.GCNJaccard(4, 5, 2)):
        assert model(x, graph).isfinite().all()


def test_rung_is_an_mlp_and_mcp_message_passing() -> None:
    graph, x = problems.grid(3, 3), torch.randn(9, 4)
    model = plap.nn.RUNG(4, 5, 2, gamma=1.5, mu=0.2, K=3).eval()
    start = model.lin2(relu(model.lin1(x)))
    expected = plap.propagate(start, graph, penalty=plap.penalties.MCP(1.5), mu=0.2, K=3)
    torch.testing.assert_close(model(x, graph), expected)


def test_jaccard_of_dense_and_sparse_features() -> None:
    x = torch.tensor([[1.0, 0, -2, 0], [3, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]])
    pairs = torch.tensor([[0, 0, 2, 3], [1, 2, 3, 3]])
    for features in (x, x.to_sparse_csr()):
        assert feature_jaccard(features, pairs) == pytest.approx([2 / 3, 0, 0, 0])


def test_gcn_jaccard_is_gcn_on_the_edges_that_are_kept() -> None:
    x = torch.tensor([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]])
    graph = plap.Graph.from_edges([(0, 1), (1, 2), (2, 0)])
    model = plap.nn.GCNJaccard(3, 4, 2).eval()
    plain = plap.nn.baselines.GCN(3, 4, 2).eval()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(x, graph), plain(x, plap.Graph.from_edges([(0, 1)], num_nodes=3)))
    assert model.pruned(x, graph) is model.pruned(x, graph)
    x[2, 0] = 1  # changed in place: the graph is judged anew
    assert model.pruned(x, graph).num_edges == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"lambda1": -1}, "lambda1 must be a finite number of at least 0, not -1"),
        ({"lambda1": "3"}, "lambda1 must be a finite number of at least 0, not '3'"),
        ({"lambda2": float("nan")}, "lambda2 must be a finite number of at least 0, not nan"),
        ({"lambda2": -1}, "lambda2 must be a finite number of at least 0, not -1"),
        ({"K": 0}, "K must be an integer of 1 or more, not 0"),
        ({"K": -1}, "K must be an integer of 1 or more, not -1"),
        ({"K": 1.5}, "K must be an integer of 1 or more, not 1.5"),
        ({"dropout": 2}, "dropout must be a number of at least 0 and below 1, not 2"),
    ],
)
def test_elastic_gnn_refuses_parameters_by_name(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        plap.nn.ElasticGNN(2, 4, 3, **options)(torch.ones(9, 2), problems.grid(3, 3))  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [plap.nn.RUNG, plap.nn.GCNJaccard])
def test_dropout_is_refused_by_name(make: type[torch.nn.Module]) -> None:
    with pytest.raises(plap.InputError, match="dropout must be a number"):
        make(2, 4, 3, dropout=2)(torch.ones(9, 2), problems.grid(3, 3))


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (torch.ones(5, 2), "x has 5 rows but graph has 9 nodes"),
        (torch.full((9, 2), torch.nan), r"x\[0, 0\] = nan is not finite"),
        (torch.full((9, 2), torch.nan).to_sparse_csr(), "x contains a value that is not finite"),
        (scipy.sparse.csr_array(np.full((9, 2), np.nan)), "x contains a value that is not finite"),
    ],
    ids=["rows", "dense", "sparse", "scipy"],
)
def test_elastic_gnn_refuses_features_by_name(x: Features, sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        plap.nn.ElasticGNN(2, 4, 3)(x, problems.grid(3, 3))


def test_an_elastic_gnn_that_diverged_is_no_error() -> None:
    model = plap.nn.ElasticGNN(2, 4, 3)
    with torch.no_grad():
        model.lin2.weight.fill_(torch.nan)
    assert model(torch.ones(9, 2), problems.grid(3, 3)).isnan().all()


@pytest.mark.parametrize("threshold", [float("nan"), 2, 1, -0.1, "0.1", None, True])
def test_gcn_jaccard_refuses_a_threshold_by_name(threshold: object) -> None:
    with pytest.raises(plap.InputError, match=f"threshold must be .* below 1, not {threshold!r}"):
        plap.nn.GCNJaccard(2, 4, 3, threshold=threshold)  # type: ignore[arg-type]
