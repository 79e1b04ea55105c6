from __future__ import annotations

import pickle
from typing import Any

import pytest
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import batch_norm, cross_entropy, layer_norm, relu

import plap
import problems
from plap.errors import InputError
from plap.nn import DeepPGNN

EDGES = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 3]])
GRAPH = plap.Graph.from_edge_index(EDGES, num_nodes=6)


def features() -> Tensor:
    x = problems.features(6, 8, seed=1)
    return torch.where(x > 0.3, x, 0.0)


def make(**changes: Any) -> DeepPGNN:
    torch.manual_seed(0)
    settings = {"num_layers": 3, "p": 1.5, "mu": 0.1, "K": 2, "dropout": 0.0, **changes}
    return DeepPGNN(8, 4, 3, **settings).double()


def by_hand(
    model: DeepPGNN, x: Tensor, norm: str | None, residual: bool, p: float, mu: float, K: int
) -> Tensor:
    """The formula of the docstring, layer after layer, on the dense oracle; norms as at their start."""

    def activated(h: Tensor) -> Tensor:
        if norm == "batch":
            h = batch_norm(h, None, None, training=True)
        if norm == "layer":
            h = layer_norm(h, h.shape[1:])
        return relu(h)

    def layer(h: Tensor, index: int) -> Tensor:
        weights = dict(model.convs[index].named_parameters())
        propagated = plap.propagate(h, GRAPH, p, mu, K, backend="dense")
        return propagated @ weights["lin.weight"].T + weights["lin.bias"]

    h, hidden_units = x, False
    for linear in model.mlp:
        weights = dict(linear.named_parameters())
        h, hidden_units = activated(h @ weights["weight"].T + weights["bias"]), True
    for index in range(len(model.convs) - 1):
        h = activated(layer(h, index)) + (h if residual and hidden_units else 0)
        hidden_units = True
    return layer(h, len(model.convs) - 1)


@pytest.mark.parametrize("norm", ["batch", "layer", None])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("mlp_layers", [0, 1, 2])
def test_is_its_formula(norm: Any, residual: bool, mlp_layers: int) -> None:
    model = make(norm=norm, residual=residual, mlp_layers=mlp_layers)
    expected = by_hand(model, features(), norm, residual, 1.5, 0.1, 2)
    torch.testing.assert_close(model(features(), EDGES), expected)


def test_a_single_layer_is_the_convolution() -> None:
    model = make(num_layers=1)
    torch.testing.assert_close(model(features(), GRAPH), model.convs[0](features(), GRAPH))


def test_features_as_wide_as_the_hidden_layers_are_not_added_to_them() -> None:
    x = features()[:, :4]
    model = DeepPGNN(4, 4, 3, num_layers=2, residual=True, norm=None, dropout=0.0).double()
    plain = DeepPGNN(4, 4, 3, num_layers=2, residual=False, norm=None, dropout=0.0).double()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(x, EDGES), plain(x, EDGES))
    assert model(x.to_sparse_csr(), EDGES).shape == (6, 3)


def test_gradients_are_right_through_all_layers() -> None:
    model = make(residual=True, mlp_layers=1, norm="layer", backend="torch")
    x = features().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model(x, GRAPH), x)
    model = make(residual=True, mlp_layers=1, norm="layer", backend="fused")
    assert torch.autograd.gradcheck(lambda x: model(x, GRAPH), x)


@pytest.mark.parametrize("mlp_layers", [0, 1])
def test_sparse_features_give_the_same(mlp_layers: int) -> None:
    model = make(mlp_layers=mlp_layers).float()
    x = features().float()
    expected = model(x, EDGES)
    for sparse in (x.to_sparse_csr(), x.to_sparse_coo(), scipy.sparse.csr_array(x.numpy())):
        torch.testing.assert_close(model(sparse, EDGES), expected)


def test_edge_weights_and_their_gradients_reach_every_layer() -> None:
    model = make()
    weight = torch.linspace(0.5, 2.0, EDGES.shape[1], dtype=torch.float64, requires_grad=True)
    result = model(features(), EDGES, weight)
    graph = plap.Graph.from_edge_index(EDGES, weight.detach(), 6)
    torch.testing.assert_close(result, model(features(), graph))
    (slope,) = torch.autograd.grad(result.square().sum(), weight)
    assert bool((slope != 0).all())


def test_the_graph_is_built_once_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    model, edges = make(num_layers=5), EDGES.clone()
    expected = model.eval()(features(), edges)

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the graph is built again")

    monkeypatch.setattr(plap.Graph, "from_edge_index", refuse)
    torch.testing.assert_close(model(features(), edges), expected)
    fresh = make(num_layers=5)
    fresh._graph = model._graph
    torch.testing.assert_close(fresh.eval()(features(), edges), expected)


def test_evaluation_is_repeatable_and_training_drops() -> None:
    model = make(dropout=0.5, num_layers=2)
    assert not torch.equal(model(features(), EDGES), model(features(), EDGES))
    model.eval()
    assert torch.equal(model(features(), EDGES), model(features(), EDGES))


def test_reset_draws_anew_and_forgets_the_running_mean() -> None:
    model = make()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model(features(), EDGES)
    assert not torch.equal(model.state_dict()["norms.0.running_mean"], before["norms.0.running_mean"])
    model.reset_parameters()
    after = model.state_dict()
    assert not torch.equal(after["convs.1.lin.weight"], before["convs.1.lin.weight"])
    assert torch.equal(after["norms.0.running_mean"], before["norms.0.running_mean"])


def test_survives_pickling() -> None:
    model = make().eval()
    expected = model(features(), EDGES)
    torch.testing.assert_close(pickle.loads(pickle.dumps(model))(features(), EDGES), expected)


@pytest.mark.parametrize(
    ("model", "widths", "hops", "mu"),
    [
        (DeepPGNN.for_ppi(1.5), [50, 256, 256, 256, 121], 3, 0.01),
        (DeepPGNN.for_ppi(2.5, 512), [50, 512, 512, 512, 121], 3, 0.01),
        (DeepPGNN.for_arxiv(3.0), [128, 256, 256, 40], 6, 0.5),
        (DeepPGNN.for_arxiv_residual(1.0), [128, 256, 256, 256, 256, 256, 40], 12, 0.5),
    ],
)
def test_models_of_the_appendix(model: DeepPGNN, widths: list[int], hops: int, mu: float) -> None:
    linears = [*model.mlp, *(conv.lin for conv in model.convs)]
    assert [linears[0].in_features, *(linear.out_features for linear in linears)] == widths
    assert model.hops == hops
    assert {conv.mu for conv in model.convs} == {mu}
    graph = problems.random_graph(30, 0.2, seed=0)
    assert model(torch.randn(30, widths[0]), graph).shape == (30, widths[-1])


def test_a_model_of_the_appendix_can_be_changed() -> None:
    model = DeepPGNN.for_arxiv_residual(2.0, hidden_channels=16, num_layers=4, norm="layer", residual=False)
    assert len(model.convs) == 4
    assert not model.residual
    assert {type(norm) for norm in model.norms} == {torch.nn.LayerNorm}


def test_learns_a_heterophilic_graph_better_than_its_features() -> None:
    data = plap.data.csbm(phi=-0.75, n=600, f=50, d=10.0, seed=3)
    split = plap.data.split(data, seed=0)
    scores = {}
    for name, graph in (("edges", data.graph), ("none", plap.Graph.from_edges([], num_nodes=600))):
        torch.manual_seed(0)
        model = DeepPGNN(50, 16, 2, num_layers=2, p=2.0, K=2, residual=True, mlp_layers=1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(60):
            optimizer.zero_grad()
            cross_entropy(model(data.x, graph)[split.train], data.y[split.train]).backward()
            optimizer.step()
        right = model.eval()(data.x, graph).argmax(1) == data.y
        scores[name] = right[split.test].float().mean().item()
    assert scores["edges"] > scores["none"] + 0.1, scores


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_layers": 0}, "num_layers must be an integer of 1 or more, not 0"),
        ({"mlp_layers": -1}, "mlp_layers must be an integer of 0 or more, not -1"),
        ({"num_layers": 2.0}, "num_layers must be an integer"),
        ({"norm": "group"}, "norm must be 'batch', 'layer' or None, not 'group'"),
    ],
)
def test_refuses(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make(**changes)
