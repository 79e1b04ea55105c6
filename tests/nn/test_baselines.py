"""The baselines against PyG's layers with the same weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import relu
from torch_geometric.nn import APPNP, GCNConv, SGConv

from plap import Graph
from plap.nn import baselines
from plap.nn.linear import sparse_product

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 3, 4, 4], [1, 0, 2, 1, 3, 2, 3, 0, 4, 2]])
WEIGHTED = torch.tensor([2.0, 2.0, 0.5, 0.5, 1.0, 1.0, 3.0, 3.0])


def graphs() -> list[Any]:
    plain = Graph.from_edge_index(EDGES[:, :8], num_nodes=6)  # nodes 4 and 5 have no edge
    weighted = Graph.from_edge_index(EDGES[:, :8], WEIGHTED, num_nodes=5)
    loop = Graph.from_edge_index(EDGES, num_nodes=5, self_loops="keep")
    return [
        pytest.param(plain, id="plain"),
        pytest.param(weighted, id="weighted"),
        pytest.param(loop, id="loop"),
    ]


@pytest.fixture(params=graphs())
def graph(request: pytest.FixtureRequest) -> Graph:
    result: Graph = request.param
    return result


def features(graph: Graph) -> Tensor:
    return torch.randn(graph.num_nodes, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_gcn(graph: Graph) -> None:
    x, model = features(graph), baselines.GCN(4, 3, 2).double().eval()
    first, second = GCNConv(4, 3).double(), GCNConv(3, 2).double()
    for conv, linear in ((first, model.lin1), (second, model.lin2)):
        conv.load_state_dict({"lin.weight": linear.weight, "bias": linear.bias + 0.25})
        torch.nn.init.constant_(linear.bias, 0.25)
    expected = second(
        relu(first(x, graph.edge_index, graph.weight.double())), graph.edge_index, graph.weight.double()
    )
    torch.testing.assert_close(model(x, graph), expected)


def test_gcn_starts_as_pygs_does() -> None:
    mine = torch.cat([baselines.GCN(40, 30, 2).lin1.weight.flatten() for _ in range(5)])
    theirs = torch.cat([GCNConv(40, 30).lin.weight.flatten() for _ in range(5)])
    assert float(mine.abs().max()) == pytest.approx(float(theirs.abs().max()), rel=0.01)
    assert float(mine.std()) == pytest.approx(float(theirs.std()), rel=0.05)
    assert bool((baselines.GCN(40, 30, 2).lin1.bias == 0).all())


def test_sgc(graph: Graph) -> None:
    x, model = features(graph), baselines.SGC(4, 2, K=3).double()
    conv = SGConv(4, 2, K=3).double()
    conv.load_state_dict({"lin.weight": model.lin.weight, "lin.bias": model.lin.bias})
    torch.testing.assert_close(model(x, graph), conv(x, graph.edge_index, graph.weight.double()))


def test_appnp(graph: Graph) -> None:
    x, model = features(graph), baselines.APPNP(4, 3, 2, K=5, alpha=0.3).double().eval()
    start = model.lin2(relu(model.lin1(x)))
    torch.testing.assert_close(model(x, graph), APPNP(5, 0.3)(start, graph.edge_index, graph.weight.double()))


def test_gprgnn_with_its_first_coefficients_is_appnp(graph: Graph) -> None:
    x = features(graph)
    gpr = baselines.GPRGNN(4, 3, 2, K=5, alpha=0.3).double().eval()
    appnp = baselines.APPNP(4, 3, 2, K=5, alpha=0.3).double().eval()
    appnp.load_state_dict({name: value for name, value in gpr.state_dict().items() if name != "gamma"})
    torch.testing.assert_close(gpr(x, graph), appnp(x, graph), rtol=1e-6, atol=1e-6)


def test_gprgnns_coefficients_weigh_the_powers_of_the_adjacency(graph: Graph) -> None:
    x, model = features(graph), baselines.GPRGNN(4, 3, 2, K=2).double().eval()
    with torch.no_grad():
        model.gamma.copy_(torch.tensor([0.5, -2.0, 3.0]))
    A = torch.from_numpy(baselines.normalized_adjacency(graph).toarray())
    start = model.lin2(relu(model.lin1(x)))
    torch.testing.assert_close(model(x, graph), 0.5 * start - 2 * A @ start + 3 * A @ A @ start)


def test_mlp_ignores_the_edges() -> None:
    x, model = torch.randn(5, 4), baselines.MLP(4, 3, 2).eval()
    assert torch.equal(model(x), model(x, EDGES))


@pytest.mark.parametrize("sparse", [False, True])
def test_sparse_features_and_edge_index(sparse: bool) -> None:
    x = torch.eye(5, 4)
    graph = Graph.from_edge_index(EDGES, num_nodes=5)
    for model in (
        baselines.GCN(4, 3, 2),
        baselines.SAGE(4, 3, 2),
        baselines.SGC(4, 2),
        baselines.APPNP(4, 3, 2),
        baselines.GPRGNN(4, 3, 2),
    ):
        model.eval()
        torch.testing.assert_close(model(x.to_sparse_csr() if sparse else x, EDGES), model(x, graph))


def test_another_graph_is_noticed() -> None:
    x, model = torch.randn(5, 4), baselines.SGC(4, 2)
    first = model(x, EDGES)
    assert not torch.allclose(model(x, EDGES[:, :4]), first)
    torch.testing.assert_close(model(x, EDGES), first)


def test_gradients_in_the_entries_of_a_sparse_matrix() -> None:
    rows, columns = torch.tensor([[0, 2, 0, 1, 0], [1, 3, 1, 0, 0]])  # one entry twice, a row without any
    values = torch.tensor([0.5, 2.0, -1.0, 3.0, 0.1], dtype=torch.float64, requires_grad=True)
    matrix = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)

    def product(values: Tensor, matrix: Tensor) -> Tensor:
        sparse = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (4, 4), check_invariants=False)
        return sparse_product(sparse, matrix)

    dense = torch.zeros(4, 4, dtype=torch.float64).index_put((rows, columns), values, accumulate=True)
    torch.testing.assert_close(product(values, matrix), dense @ matrix)
    assert torch.autograd.gradcheck(product, (values, matrix))


def test_gradients_in_weights_need_no_dense_matrix() -> None:
    n = 300_000  # [n, n] would be 360 GB
    ends = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    weight = torch.ones(2 * (n - 1), requires_grad=True)
    graph = Graph.from_edge_index(torch.cat([ends, ends.flip(0)], 1), weight, num_nodes=n)
    baselines.GCN(2, 2, 2)(torch.randn(n, 2), graph).square().sum().backward()
    assert weight.grad is not None
    assert bool((weight.grad != 0).any())
