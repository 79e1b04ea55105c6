from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric import EdgeIndex

import plap
import plap.nn
import problems
from plap.nn import PLaplacianConv

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 0, 0]])


@pytest.fixture
def x() -> Tensor:
    return problems.features(5, 6, seed=0).float()


def test_is_propagation_then_a_linear_map(x: Tensor) -> None:
    conv = PLaplacianConv(6, 3, p=1.5, mu=0.1, K=3)
    graph = plap.Graph.from_edge_index(EDGES, num_nodes=5)
    assert torch.equal(conv(x, EDGES), conv.lin(plap.propagate(x, graph, 1.5, 0.1, 3)))


def test_maps_its_input_beside_what_came_of_it(x: Tensor) -> None:
    conv = PLaplacianConv(6, 3, p=1.5, mu=0.1, K=3, concat=True)
    graph = plap.Graph.from_edge_index(EDGES, num_nodes=5)
    own, others = conv.lin.weight.split(6, 1)
    expected = x @ own.T + plap.propagate(x, graph, 1.5, 0.1, 3) @ others.T + conv.lin.bias
    torch.testing.assert_close(conv(x, EDGES), expected)


def test_takes_every_form_of_graph(x: Tensor) -> None:
    conv = PLaplacianConv(6, 3)
    expected = conv(x, EDGES)
    matrix = torch.zeros(5, 5)
    matrix[EDGES[0], EDGES[1]] = 1.0
    forms = [
        plap.Graph.from_edge_index(EDGES, num_nodes=5),
        EdgeIndex(EDGES, sparse_size=(5, 5)),
        EDGES.int(),
        matrix.to_sparse_csr(),
        matrix.to_sparse_coo(),
    ]
    for form in forms:
        assert torch.equal(conv(x, form), expected), type(form)


def test_takes_sparse_features(x: Tensor) -> None:
    conv = PLaplacianConv(6, 3)
    expected = conv(x, EDGES)
    assert torch.equal(conv(x.to_sparse_csr(), EDGES), expected)
    assert torch.equal(conv(scipy.sparse.csr_array(x.numpy()), EDGES), expected)
    with pytest.raises(ValueError, match="x must be a tensor or a SciPy sparse matrix, not list"):
        conv(x.tolist(), EDGES)


def test_weights_count_and_learn(x: Tensor) -> None:
    conv = PLaplacianConv(6, 3, p=1.5, mu=0.1)
    weight = torch.tensor([1.0, 1.0, 2.0, 2.0, 0.5, 0.5], requires_grad=True)
    result = conv(x, EDGES, weight)
    assert not torch.allclose(result, conv(x, EDGES))
    result.square().sum().backward()
    assert weight.grad is not None
    assert weight.grad.abs().sum() > 0


def test_the_cache_follows_changes(x: Tensor) -> None:
    conv, fresh = PLaplacianConv(6, 3), PLaplacianConv(6, 3, cached=False)
    fresh.load_state_dict(conv.state_dict())
    edges = EDGES.clone()
    weight = torch.ones(6)
    assert torch.equal(conv(x, edges), fresh(x, edges))
    edges[0, 0], edges[1, 0] = 4, 2
    assert torch.equal(conv(x, edges), fresh(x, edges))
    assert torch.equal(conv(x, edges, weight), fresh(x, edges, weight))
    weight[2] = 7.0
    assert torch.equal(conv(x, edges, weight), fresh(x, edges, weight))
    assert torch.equal(conv(x, edges), fresh(x, edges))
    more = torch.cat([x, x])
    assert torch.equal(conv(more, edges), fresh(more, edges))


def test_the_cache_spares_the_work(x: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    conv = PLaplacianConv(6, 3)
    conv(x, EDGES)
    monkeypatch.setattr(plap.Graph, "from_edge_index", None)
    conv(x, EDGES)
    with pytest.raises(TypeError):
        conv(x, EDGES.clone())


def test_aggregation_weights_are_those_of_the_last_step(x: Tensor) -> None:
    conv = PLaplacianConv(6, 3, p=1.5, mu=0.1, K=2)
    out, (edge_index, weight) = conv(x, EDGES, return_aggregation_weights=True)
    assert torch.equal(out, conv(x, EDGES))
    graph = plap.Graph.from_edge_index(EDGES, num_nodes=5)
    assert torch.equal(edge_index, graph.edge_index)
    before = plap.propagate(x, graph, 1.5, 0.1, 1)
    pulled = torch.zeros_like(before).index_add(0, edge_index[1], weight[:, None] * before[edge_index[0]])
    after = plap.propagate(x, graph, 1.5, 0.1, 2)
    held = (after - pulled) / x  # β_i, the same in every channel
    torch.testing.assert_close(held, held[:, :1].expand_as(held), rtol=1e-3, atol=1e-3)


def test_learned_p_and_mu_start_where_asked_and_move(x: Tensor) -> None:
    conv = PLaplacianConv(6, 3, p=1.7, mu=0.3, learn_p=True, learn_mu=True)

    def now() -> tuple[float, float]:
        with torch.no_grad():
            return float(conv.p), float(conv.mu)

    assert now() == pytest.approx((1.7, 0.3), abs=1e-6)
    assert repr(conv) == "PLaplacianConv(6, 3, p=1.7 learned, mu=0.3 learned, K=4)"
    optimizer = torch.optim.SGD(conv.parameters(), lr=0.1)
    conv(x, EDGES).square().sum().backward()
    optimizer.step()
    assert now()[0] != pytest.approx(1.7, abs=1e-6)
    assert now()[1] != pytest.approx(0.3, abs=1e-6)
    conv.reset_parameters()
    assert now() == pytest.approx((1.7, 0.3), abs=1e-6)


def test_refuses_what_has_no_meaning(x: Tensor) -> None:
    with pytest.raises(ValueError, match="p must lie between 1 and 3 to be learned"):
        PLaplacianConv(6, 3, p=1.0, learn_p=True)
    conv = PLaplacianConv(6, 3)
    graph = plap.Graph.from_edge_index(EDGES, num_nodes=5)
    with pytest.raises(ValueError, match=r"edge_weight must not be given with a plap\.Graph"):
        conv(x, graph, torch.ones(6))
    with pytest.raises(ValueError, match=r"edge_index must be a tensor or a plap\.Graph, not list"):
        conv(x, [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="out of range"):
        conv(x[:3], EDGES)
    with pytest.raises(ValueError, match="the sparse matrix has 4 rows but x has 5"):
        conv(x, torch.eye(4).to_sparse_csr())
    with pytest.raises(ValueError, match=r"x must have shape \[N, F\], not \[5\]"):
        conv(x[:, 0], graph)
    with pytest.raises(ValueError, match="x must be a tensor or a SciPy sparse matrix, not list"):
        conv(x.tolist(), graph)


def test_runs_axis_and_state_dict(x: Tensor) -> None:
    conv = PLaplacianConv(6, 3, p=2.5)
    runs = torch.stack([x, -x])
    torch.testing.assert_close(conv(runs, EDGES)[1], conv(-x, EDGES))
    assert set(conv.state_dict()) == {"lin.weight", "lin.bias"}
    assert math.prod(conv(runs, EDGES).shape) == 2 * 5 * 3


def test_the_budget_reaches_the_operator(x: Tensor) -> None:
    with pytest.raises(ValueError, match="memory_budget must be bytes or text"):
        PLaplacianConv(6, 3, memory_budget="4G")
    for model in (PLaplacianConv(6, 3, memory_budget=100), plap.nn.PGNN(6, 4, 3, memory_budget=100)):
        with pytest.raises(ValueError, match="memory_budget is too small: 4 steps on 5 nodes"):
            model(x, EDGES)
    roomy, free = PLaplacianConv(6, 3, memory_budget="1MB"), PLaplacianConv(6, 3)
    free.load_state_dict(roomy.state_dict())
    assert torch.equal(roomy(x, EDGES), free(x, EDGES))


def test_runs_on_the_device_it_is_on(x: Tensor) -> None:
    graph = plap.Graph.from_edge_index(EDGES, num_nodes=5).to("meta")
    model = plap.nn.PGNN(6, 4, 3, learn_p=True, learn_mu=True).to("meta")
    model(x.to("meta"), graph).sum().backward()
    slopes = [parameter.grad for parameter in model.parameters()]
    assert [None if slope is None else slope.device.type for slope in slopes] == ["meta"] * 6


def test_takes_a_penalty_and_learns_its_parameter() -> None:
    graph = problems.random_graph(12, 0.4, seed=1)
    x = problems.features(12, 3).float()
    conv = plap.nn.PLaplacianConv(3, 2, penalty=plap.penalties.MCP(1.5), mu=0.2, K=3, learn_gamma=True)
    assert repr(conv) == "PLaplacianConv(3, 2, penalty=MCP(gamma=1.5) learned, mu=0.2, K=3)"
    out, (_, weights) = conv(x, graph, return_aggregation_weights=True)
    expected = plap.propagate(x, graph, penalty=plap.penalties.MCP(1.5), mu=0.2, K=3)
    torch.testing.assert_close(out, conv.lin(expected))
    assert weights.shape == (graph.num_entries,)
    out.square().sum().backward()
    slopes = {name: parameter.grad for name, parameter in conv.named_parameters()}
    assert slopes["_raw_gamma"] is not None
    assert slopes["_raw_gamma"].abs() > 1e-6
    model = plap.nn.PGNN(3, 4, 2, penalty=plap.penalties.Huber(0.5), mu=0.2, detach_weights=True)
    model(x, graph).sum().backward()
    assert "penalty=Huber(gamma=0.5)" in repr(model)


def test_a_learned_parameter_stays_above_the_least_it_may_be() -> None:
    conv = plap.nn.PLaplacianConv(3, 2, penalty=plap.penalties.Power(1.2), mu=0.2, K=3, learn_gamma=True)
    assert float(conv.penalty.parameter) == pytest.approx(1.2)
    with torch.no_grad():
        conv._raw_gamma.fill_(-40.0)  # type: ignore[union-attr]
    assert float(conv.penalty.parameter) == pytest.approx(1.0)
    conv(problems.features(12, 3).float(), problems.random_graph(12, 0.4, seed=1)).sum().backward()
    with pytest.raises(plap.InputError, match=r"p must be greater than 1 to be learned, not 1\.0"):
        plap.nn.PLaplacianConv(3, 2, penalty=plap.penalties.Power(1.0), learn_gamma=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"penalty": plap.penalties.MCP(1.0), "learn_p": True}, "learn_p needs the power penalty"),
        ({"learn_gamma": True}, "learn_gamma needs penalty"),
        ({"penalty": "mcp"}, "penalty must be a penalty of a number"),
        (
            {"penalty": plap.penalties.MCP(1.0), "learn_gamma": True, "detach_weights": True},
            "learn_gamma needs the gradient of the edge weights, which detach_weights leaves out",
        ),
        ({"p": 1.5, "learn_p": True, "detach_weights": True}, "learn_p needs the gradient"),
        ({"p": "1.5", "learn_p": True}, "p must be a"),
        ({"mu": None, "learn_mu": True}, "mu must be a"),
        ({"mu": 0.0}, "mu must be a positive finite number"),
        ({"K": 0}, "K must be an integer of 1 or more, not 0"),
        ({"K": "4"}, "K must be an integer of 1 or more, not '4'"),
        ({"omega": 2.0}, "omega must be a number above 0 and below 2, not 2.0"),
        ({"backend": "fast"}, "backend must be one of auto, .*, not 'fast'"),
        ({"backend": None}, "backend must be a name or a plap.kernels.backend.Backend, not None"),
    ],
)
def test_refuses_options_at_once(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        plap.nn.PLaplacianConv(3, 2, **options)


@pytest.mark.parametrize("kind", ["PLaplacianConv", "PGNN", "DeepPGNN", "GCNPlusPGNN", "JKNetPlusPGNN"])
def test_sizes_are_integers_that_are_known(kind: str) -> None:
    hidden = {} if kind == "PLaplacianConv" else {"hidden_channels": 4}
    sizes: dict[str, Any] = {"in_channels": 3, "out_channels": 2, **hidden}
    make = getattr(plap.nn, kind)
    make(**{**sizes, "in_channels": np.int64(3)})
    for name in sizes:
        with pytest.raises(plap.InputError, match=f"^{name} must be given: sizes of -1, which PyG infers"):
            make(**{**sizes, name: -1})
        for wrong in (5.0, "3", None, True):
            with pytest.raises(plap.InputError, match=f"^{name} must be an integer of . or more, not"):
                make(**{**sizes, name: wrong})


def test_p_is_that_of_the_penalty() -> None:
    conv = plap.nn.PLaplacianConv(3, 2, penalty=plap.penalties.Power(2.5))
    assert float(conv.p) == 2.5
    assert not hasattr(plap.nn.PLaplacianConv(3, 2, penalty=plap.penalties.MCP(2.0)), "p")


def test_scipy_features_take_the_type_of_the_layer() -> None:
    graph = problems.random_graph(12, 0.4, seed=1)
    x = problems.features(12, 3)
    conv = plap.nn.PLaplacianConv(3, 2).double()
    torch.testing.assert_close(conv(scipy.sparse.csr_array(x.numpy()), graph), conv(x, graph), rtol=0, atol=0)
