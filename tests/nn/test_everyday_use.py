"""What people do with every module: other types of numbers, inference mode, gradients of edge weights."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import scipy.sparse
import torch

import plap
from plap import nn
from plap.nn import baselines

Make = Callable[[], torch.nn.Module]

MODELS: dict[str, Make] = {
    "pgnn": lambda: nn.PGNN(6, 5, 3),
    "deep": lambda: nn.DeepPGNN(6, 5, 3, num_layers=2, norm="layer"),
    "gcn+pgnn": lambda: nn.GCNPlusPGNN(6, 5, 3),
    "jknet+pgnn": lambda: nn.JKNetPlusPGNN(6, 8, 3),
    "rung": lambda: nn.RUNG(6, 5, 3, K=4),
    "elastic": lambda: nn.ElasticGNN(6, 5, 3, K=3),
    "jaccard": lambda: nn.GCNJaccard(6, 5, 3),
    "gcn": lambda: baselines.GCN(6, 5, 3),
    "sage": lambda: baselines.SAGE(6, 5, 3),
    "sgc": lambda: baselines.SGC(6, 3),
    "appnp": lambda: baselines.APPNP(6, 5, 3),
    "gprgnn": lambda: baselines.GPRGNN(6, 5, 3),
    "jknet": lambda: baselines.JKNet(6, 8, 3),
    "gat": lambda: baselines.GAT(6, 5, 3),
}
WITHOUT_WEIGHTS = {"gat"}
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 2], [1, 2, 3, 4, 5, 6, 7, 4, 6]])
X = torch.rand(8, 6, generator=torch.Generator().manual_seed(0))


def made(name: str) -> torch.nn.Module:
    torch.manual_seed(1)
    return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sparse", [False, True])
def test_training_goes_on_after_an_evaluation_in_inference_mode(name: str, sparse: bool) -> None:
    model = made(name)
    x = scipy.sparse.csr_matrix(X.numpy()) if sparse else X
    graph = plap.Graph.from_edge_index(EDGES)
    for edges in (EDGES, graph):
        with torch.inference_mode():
            seen = model.eval()(x, edges)
        model.train()(x, edges).sum().backward()
        torch.testing.assert_close(seen.clone(), model.eval()(x, edges).detach())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_weights_and_features(name: str, dtype: torch.dtype) -> None:
    expected = made(name).eval()(X, EDGES)
    model = made(name).to(dtype).eval()
    found = model(X.to(dtype), EDGES)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)
    model(X.to(dtype), EDGES).sum().backward()


@pytest.mark.parametrize("name", MODELS)
def test_autocast(name: str) -> None:
    model = made(name).eval()
    expected = model(X, EDGES)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(X, EDGES)
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)
    found.float().sum().backward()


@pytest.mark.parametrize("name", sorted({*MODELS} - WITHOUT_WEIGHTS))
def test_gradients_of_edge_weights_are_those_of_differences(name: str) -> None:
    """RUNG's weights are constants in training, on purpose; an attack asks for the whole gradient."""
    model = made(name).double().eval()
    if name == "rung":
        assert model.detach_weights
        model.detach_weights = False  # type: ignore[assignment]
    x = X.double()
    weight = torch.linspace(0.5, 1.5, EDGES.shape[1], dtype=torch.float64, requires_grad=True)
    slopes = torch.linspace(-1, 1, 3, dtype=torch.float64)

    def value(weight: torch.Tensor) -> torch.Tensor:
        total: torch.Tensor = (model(x, EDGES, weight) * slopes).sum()
        return total

    (found,) = torch.autograd.grad(value(weight), weight)
    with torch.no_grad():
        steps = 1e-6 * torch.eye(weight.numel(), dtype=torch.float64)
        expected = torch.stack([(value(weight + step) - value(weight - step)) / 2e-6 for step in steps])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)
    assert found.abs().max() > 1e-4


@pytest.mark.parametrize("name", ["pgnn", "gcn", "jaccard"])
def test_a_sparse_adjacency_that_requires_gradients_gets_them_every_time(name: str) -> None:
    model = made(name).eval()
    both = torch.cat([EDGES, EDGES.flip(0)], 1)
    adjacency = torch.sparse_coo_tensor(both, torch.ones(both.shape[1]), (8, 8)).coalesce().requires_grad_()
    with torch.no_grad():
        model(X, adjacency)
    for _ in range(2):
        adjacency.grad = None
        model(X, adjacency).square().sum().backward()
        assert adjacency.grad is not None
        assert adjacency.grad.to_dense().abs().max() > 0


@pytest.mark.parametrize("kind", ["lil", "dok", "csr"])
def test_sparse_features_that_were_changed_in_place_are_seen(kind: str) -> None:
    model = made("pgnn").eval()
    x = scipy.sparse.csr_matrix(X.numpy()).asformat(kind)
    before = model(x, EDGES)
    x[0, 0] = 9.0
    assert not torch.equal(model(x, EDGES), before)
    torch.testing.assert_close(model(x, EDGES), model(torch.from_numpy(x.toarray()), EDGES))


def test_csr_features_that_require_gradients_get_them() -> None:
    x = X.to_sparse_csr().requires_grad_()
    made("pgnn").eval()(x, EDGES).square().sum().backward()
    dense = X.clone().requires_grad_()
    made("pgnn").eval()(dense, EDGES).square().sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad.to_dense(), dense.grad)
