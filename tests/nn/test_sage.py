"""GraphSAGE against its dense formula and against PyG's layers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import relu
from torch_geometric.nn import SAGEConv

import problems
import tiny_training as tiny
from plap import Graph
from plap.insight import node_embeddings
from plap.nn.adjacency import mean_adjacency, neighbour_means
from plap.nn.baselines import SAGE
from plap.training import RunConfig, train_runs
from plap.training.inputs import make_inputs

EDGES = [(0, 1, 2.0), (1, 2, 0.5), (2, 3, 1.0), (0, 3, 3.0), (3, 4, 0.25)]
WEIGHTED = problems.weighted(EDGES, 6)  # node 5 has no neighbour
LOOPED = problems.weighted([*EDGES, (2, 2, 4.0)], 6, keep_loops=True)
UNWEIGHTED = Graph.from_edge_index(WEIGHTED.edge_index, num_nodes=6)
GRAPHS = pytest.mark.parametrize(
    "graph", [WEIGHTED, LOOPED, UNWEIGHTED], ids=["weighted", "looped", "unweighted"]
)


def features() -> Tensor:
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x * (x.abs() > 0.5)


def dense_means(graph: Graph) -> Tensor:
    """Means over the edges of each node, one by one."""
    M = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    for i in range(graph.num_nodes):
        entries = range(int(graph.indptr[i]), int(graph.indptr[i + 1]))
        total = sum(float(graph.weight[e]) for e in entries)
        for e in entries:
            M[i, int(graph.indices[e])] = float(graph.weight[e]) / total
    return M


def dense_formula(model: SAGE, x: Tensor, M: Tensor) -> Tensor:
    hidden = relu(x @ model.own1.weight.T + M @ x @ model.neighbours1.weight.T + model.own1.bias)
    return hidden @ model.own2.weight.T + M @ hidden @ model.neighbours2.weight.T + model.own2.bias


@GRAPHS
@pytest.mark.parametrize("sparse", [False, True])
def test_dense_formula(graph: Graph, sparse: bool) -> None:
    x, model = features(), SAGE(4, 3, 2).double().eval()
    expected = dense_formula(model, x, dense_means(graph))
    assert bool((dense_means(graph)[5] == 0).all())
    torch.testing.assert_close(model(x.to_sparse_csr() if sparse else x, graph), expected)


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients(sparse: bool) -> None:
    x, model = features(), SAGE(4, 3, 2).double().eval()
    given = x.to_sparse_csr() if sparse else x
    names, values = zip(*model.state_dict().items(), strict=True)

    def logits(*weights: Tensor) -> Tensor:
        result: Tensor = functional_call(model, dict(zip(names, weights, strict=True)), (given, LOOPED))
        return result

    weights = tuple(value.clone().requires_grad_() for value in values)
    assert torch.autograd.gradcheck(logits, weights)


def test_gradients_in_features_and_weights_of_edges() -> None:
    model = SAGE(4, 3, 2).double().eval()
    once = torch.tensor([edge[:2] for edge in EDGES]).T
    weight = torch.tensor([edge[2] for edge in EDGES], dtype=torch.float64, requires_grad=True)

    def logits(x: Tensor, weight: Tensor) -> Tensor:
        result: Tensor = model(x, once, weight)
        return result

    x = features().requires_grad_()
    torch.testing.assert_close(logits(x, weight), model(x, WEIGHTED))
    assert torch.autograd.gradcheck(logits, (x, weight))


def test_it_is_pygs() -> None:
    x, model = features(), SAGE(4, 3, 2).double().eval()
    first, second = SAGEConv(4, 3, aggr="mean").double(), SAGEConv(3, 2, aggr="mean").double()
    for conv, own, neighbours in (
        (first, model.own1, model.neighbours1),
        (second, model.own2, model.neighbours2),
    ):
        conv.load_state_dict(
            {"lin_l.weight": neighbours.weight, "lin_l.bias": own.bias, "lin_r.weight": own.weight}
        )
    edges = UNWEIGHTED.edge_index
    torch.testing.assert_close(model(x, UNWEIGHTED), second(relu(first(x, edges)), edges))


def test_it_starts_as_pygs_does() -> None:
    mine, theirs = SAGE(40, 300, 2), SAGEConv(40, 300)
    for a, b in (
        (mine.own1.weight, theirs.lin_r.weight),
        (mine.neighbours1.weight, theirs.lin_l.weight),
        (mine.own1.bias, theirs.lin_l.bias),
    ):
        assert float(a.detach().abs().max()) == pytest.approx(float(b.detach().abs().max()), rel=0.05)
        assert float(a.detach().std()) == pytest.approx(float(b.detach().std()), rel=0.1)


@GRAPHS
def test_the_matrix_of_means(graph: Graph) -> None:
    torch.testing.assert_close(torch.from_numpy(mean_adjacency(graph).toarray()), dense_means(graph))
    torch.testing.assert_close(neighbour_means(graph).to_dense(), dense_means(graph))


def test_gradients_of_stacked_means() -> None:
    """The matrix is not symmetric, so that its transpose must be the one of the backward pass."""
    inputs = make_inputs(LOOPED, features(), torch.float64, adjacency=False, means=True)
    x = torch.randn(3, 6, 2, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(inputs.mean_of_neighbours(x), dense_means(LOOPED) @ x)
    assert torch.autograd.gradcheck(inputs.mean_of_neighbours, (x,))


def test_it_trains_beside_a_model_with_another_matrix() -> None:
    data = tiny.data()
    split = tiny.masks(data.y)
    configs = [RunConfig(model, max_epochs=4) for model in ("gcn", "sage")]
    together = train_runs(data.graph, data.x, data.y, configs, split)
    for config, result in zip(configs, together, strict=True):
        (alone,) = train_runs(data.graph, data.x, data.y, [config], split)
        assert torch.equal(alone.logits, result.logits)


def test_embeddings_are_what_the_last_layer_sees() -> None:
    x, model = features(), SAGE(4, 3, 2).double().eval()
    weights = torch.cat([model.own2.weight, model.neighbours2.weight], dim=1)
    embeddings = node_embeddings(model, x, WEIGHTED)
    torch.testing.assert_close(embeddings @ weights.T + model.own2.bias, model(x, WEIGHTED))
