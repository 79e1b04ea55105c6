"""pGNN + GCN and pGNN + JKNet against dense formulas and PyG's layers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import relu
from torch_geometric.nn import APPNP

import problems
from plap import Graph, propagate
from plap.nn import GCNPlusPGNN, JKNetPlusPGNN

P = (1.0, 1.5, 2.0, 2.5)
DIFFICULT = ("isolated_node", "no_edges", "duplicate_rows", "zero_rows", "self_loop")


def dense_aggregation(F: Tensor, graph: Graph, p: float, mu: float) -> Tensor:
    """α D^-1/2 M D^-1/2 by Eq. 11-13, for rows of F that all differ."""
    n = graph.num_nodes
    W = torch.zeros(n, n, dtype=F.dtype)
    W[graph.receivers(), graph.indices.long()] = graph.weight.double()
    D = W.sum(1)
    Y = F / D.sqrt()[:, None]
    distance = W.sqrt() * (Y[:, None] - Y[None]).norm(dim=2)
    M = torch.where(W > 0, W * torch.where(W > 0, distance, 1) ** (p - 2), 0)
    alpha = 1 / (M.sum(1) / D + 2 * mu / p)
    return alpha[:, None] * M / (D[:, None] * D[None]).sqrt()


def loose(model: torch.nn.Module) -> torch.nn.Module:
    """With weights at which hardly any hidden unit is zero everywhere."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.rand(value.shape, generator=generator) - 0.3)
    return model.double()


@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("name", ["fixture", "random", "star"])
def test_gcns_edge_weights_are_the_aggregation_weights(name: str, p: float, K: int) -> None:
    problem = problems.GENERIC[name]()
    graph, x = problem.graph, problem.x
    model = loose(GCNPlusPGNN(x.shape[1], 4, 2, p=p, mu=0.3, K=K)).eval()
    assert isinstance(model, GCNPlusPGNN)
    start = relu(model.lin(x))
    before = propagate(start, graph, p, 0.3, K - 1, backend="dense") if K > 1 else start
    last = propagate(start, graph, p, 0.3, K, backend="dense")
    weights = dense_aggregation(before, graph, p, 0.3) + torch.eye(graph.num_nodes, dtype=x.dtype)
    root = weights.sum(1).rsqrt()
    hidden = relu(model.conv1.lin(last))
    expected = root[:, None] * weights * root @ (hidden @ model.conv2.lin.weight.T) + model.conv2.bias
    torch.testing.assert_close(model(x, graph), expected)


@pytest.mark.parametrize("p", [1.5, 2.0, 2.5])
@pytest.mark.parametrize("kind", [GCNPlusPGNN, JKNetPlusPGNN])
def test_gradients_are_those_of_differences(kind: type[torch.nn.Module], p: float) -> None:
    problem = problems.fixture()
    model = loose(kind(2, 3, 2, p=p, mu=0.3, K=2, dropout=0.0))
    names = [name for name, _ in model.named_parameters()]

    def logits(*values: Tensor) -> Tensor:
        result: Tensor = functional_call(
            model, dict(zip(names, values, strict=True)), (problem.x, problem.graph)
        )
        return result

    values = tuple(value.detach().clone().requires_grad_() for value in model.parameters())
    assert torch.autograd.gradcheck(logits, values, fast_mode=True)


@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("name", ["random", "isolated_node", "no_edges", "zero_rows"])
def test_jknets_layers_are_p_laplacian(name: str, p: float) -> None:
    problem = problems.PROBLEMS[name]()
    graph, x = problem.graph, problem.x
    model = loose(JKNetPlusPGNN(x.shape[1], 4, 2, p=p, mu=0.3, K=2, steps=3, alpha=0.4)).eval()
    assert isinstance(model, JKNetPlusPGNN)
    layers = [relu(model.lin(x))]
    for conv in (model.conv1, model.conv2):
        layers.append(relu(conv.lin(propagate(layers[-1], graph, p, 0.3, 2, backend="dense"))))
    mixed = APPNP(3, 0.4)(model.head.jump(layers[1:]), graph.edge_index, graph.weight)
    torch.testing.assert_close(model(x, graph), model.head.lin(mixed))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.5])
@pytest.mark.parametrize("name", DIFFICULT)
@pytest.mark.parametrize("kind", [GCNPlusPGNN, JKNetPlusPGNN])
def test_gradients_are_finite_where_neighbours_agree(
    kind: type[torch.nn.Module], name: str, p: float
) -> None:
    problem = problems.PROBLEMS[name]()
    x = problem.x.float()
    model = kind(x.shape[1], 4, 2, p=p, mu=0.1, K=2)
    model(x, problem.graph).square().sum().backward()
    for parameter, value in model.named_parameters():
        assert value.grad is not None, parameter
        assert bool(value.grad.isfinite().all()), parameter


@pytest.mark.parametrize("kind", [GCNPlusPGNN, JKNetPlusPGNN])
def test_sparse_features_edge_index_and_dropout(kind: type[torch.nn.Module]) -> None:
    pairs, x = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), problems.features(5, 3).float()
    model = kind(3, 16, 2)
    assert not torch.equal(model(x, pairs), model(x, pairs))
    model.eval()
    expected = model(x, pairs)
    assert torch.equal(model(x, pairs), expected)
    torch.testing.assert_close(model(x.to_sparse_csr(), pairs), expected)
    torch.testing.assert_close(model(x, Graph.from_edge_index(pairs, num_nodes=5)), expected)


def test_a_self_loop_counts_as_gcns_own() -> None:
    """Node 3 has a self-loop and nothing else: no layer changes what it knows."""
    problem = problems.self_loop()
    model = loose(GCNPlusPGNN(3, 4, 2, p=1.5)).eval()
    assert isinstance(model, GCNPlusPGNN)
    hidden = relu(model.conv1.lin(relu(model.lin(problem.x[3]))))
    expected = hidden @ model.conv2.lin.weight.T + model.conv2.bias
    torch.testing.assert_close(model(problem.x, problem.graph)[3], expected)
