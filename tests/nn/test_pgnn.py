from __future__ import annotations

import pickle
from typing import Any

import pytest
import scipy.sparse
import torch
from torch.nn.functional import cross_entropy, relu

import plap
import plap.nn
import problems
from plap.nn import PGNN, FeatureLinear

EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])


def features() -> torch.Tensor:
    x = problems.features(5, 8, seed=1).float()
    return torch.where(x > 0.5, x, 0.0)


def test_is_equations_16_to_18() -> None:
    model = PGNN(8, 4, 3, p=1.5, mu=0.1, K=3).eval()
    x = features()
    graph = plap.Graph.from_edge_index(EDGES, num_nodes=5)
    hidden = relu(x @ model.lin.weight.T + model.lin.bias)
    expected = plap.propagate(hidden, graph, 1.5, 0.1, 3) @ model.conv.lin.weight.T + model.conv.lin.bias
    torch.testing.assert_close(model(x, EDGES), expected)


def test_dropout_only_in_training() -> None:
    model = PGNN(8, 32, 3, dropout=0.5)
    x = features()
    assert not torch.equal(model(x, EDGES), model(x, EDGES))
    model.eval()
    assert torch.equal(model(x, EDGES), model(x, EDGES))


@pytest.mark.parametrize("form", ["csr", "coo", "scipy", "scipy64"])
def test_sparse_features_give_the_same_values_and_gradients(form: str) -> None:
    x = features()
    forms: dict[str, Any] = {
        "csr": x.to_sparse_csr,
        "coo": x.to_sparse_coo,
        "scipy": lambda: scipy.sparse.csr_array(x.numpy()),
        "scipy64": lambda: scipy.sparse.coo_matrix(x.double().numpy()),
    }
    sparse = forms[form]()
    model = PGNN(8, 4, 3, dropout=0.0)
    target = torch.tensor([0, 1, 2, 0, 1])
    slopes = []
    for given in (x, sparse, sparse):
        model.zero_grad()
        loss = cross_entropy(model(given, EDGES), target)
        loss.backward()
        slopes.append([loss.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    for dense, first, again in zip(*slopes, strict=True):
        torch.testing.assert_close(first, dense)
        torch.testing.assert_close(again, dense)


def test_sparse_features_changed_in_place_are_seen() -> None:
    x = features().to_sparse_csr()
    layer = FeatureLinear(8, 2)
    before = layer(x)
    x.values().mul_(2)
    torch.testing.assert_close(layer(x) - layer.bias, 2 * (before - layer.bias))


def test_scipy_features_changed_in_place_are_seen_forward_and_backward() -> None:
    matrix = scipy.sparse.csr_array(features().numpy())
    layer = FeatureLinear(8, 2, bias=False)
    seen = []
    for _ in range(2):
        layer.zero_grad()
        result = layer(matrix)
        result.sum().backward()
        assert layer.weight.grad is not None
        seen.append((result.detach(), layer.weight.grad.clone()))
        matrix.data *= 2
    torch.testing.assert_close(seen[1][0], 2 * seen[0][0])
    torch.testing.assert_close(seen[1][1], 2 * seen[0][1])


def test_one_matrix_serves_layers_of_either_precision() -> None:
    matrix = scipy.sparse.csr_array([[0.1, 0.2]])
    for dtype in (torch.float32, torch.float64):
        layer = FeatureLinear(2, 1, bias=False, dtype=dtype)
        torch.nn.init.ones_(layer.weight)
        expected = torch.tensor([[0.1, 0.2]], dtype=torch.float64).to(dtype).sum()
        assert layer(matrix).dtype == dtype
        torch.testing.assert_close(
            layer(matrix).squeeze(), expected, rtol=1e-15 if dtype == torch.float64 else 1e-6, atol=0
        )


def test_survives_pickling_after_use_and_inference_mode() -> None:
    model = PGNN(8, 4, 3, dropout=0.0)
    x = features()
    expected = model(x.to_sparse_csr(), EDGES)
    again = pickle.loads(pickle.dumps(model))
    torch.testing.assert_close(again(x, EDGES), expected)
    with torch.inference_mode():
        torch.testing.assert_close(model(x.clone().to_sparse_csr(), EDGES.clone()), expected)


def test_compiles_whole_with_a_graph_and_in_parts_with_an_edge_index() -> None:
    model = PGNN(8, 4, 3).eval()
    graph, x = plap.Graph.from_edge_index(EDGES, num_nodes=5), features()
    expected = model(x, graph)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(x, graph), expected)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, backend="aot_eager")(x, EDGES), expected)
    torch.testing.assert_close(torch.compile(model, backend="aot_eager")(x.to_sparse_csr(), EDGES), expected)


def test_autocast_propagates_in_float32() -> None:
    model = PGNN(8, 4, 3).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = model(features(), EDGES)
    torch.testing.assert_close(result.float(), model(features(), EDGES), rtol=0.05, atol=0.05)


def test_features_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="features have 8 columns, not 7"):
        FeatureLinear(7, 2)(features().to_sparse_csr())


def test_learns_a_heterophilic_graph_better_than_its_features() -> None:
    data = plap.data.csbm(phi=-0.75, n=600, f=50, d=10.0, seed=3)
    split = plap.data.split(data, seed=0)
    scores = {}
    for name, graph in (("edges", data.graph), ("none", plap.Graph.from_edges([], num_nodes=600))):
        torch.manual_seed(0)
        model = PGNN(data.x.shape[1], 16, 2, p=2.0, mu=0.1, K=4)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(100):
            optimizer.zero_grad()
            cross_entropy(model(data.x, graph)[split.train], data.y[split.train]).backward()
            optimizer.step()
        model.eval()
        right = model(data.x, graph).argmax(1) == data.y
        scores[name] = right[split.test].float().mean().item()
    assert scores["edges"] > scores["none"] + 0.1, scores
