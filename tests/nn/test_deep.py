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


def test_a_block_normalises_its_input_and_sees_it_beside_its_neighbours() -> None:
    """What the docstring says of prenorm, concat and a linear output, block after block."""
    model: Any = make(norm="layer", prenorm=True, concat=True, residual=True, mlp_layers=1, output="linear")
    h = relu(model.mlp[0](features()))
    for conv in model.convs:
        u = layer_norm(h, h.shape[1:])
        beside = torch.cat([u, plap.propagate(u, GRAPH, 1.5, 0.1, 2, backend="dense")], 1)
        h = h + relu(beside @ conv.lin.weight.T + conv.lin.bias)
    torch.testing.assert_close(model(features(), GRAPH), model.lin(layer_norm(h, h.shape[1:])))


@pytest.mark.parametrize("output", ["linear", "max", "cat"])
def test_jumping_knowledge_sees_every_layer(output: Any) -> None:
    model: Any = make(norm=None, output=output, mlp_layers=1)
    h, states = relu(model.mlp[0](features())), []
    for conv in model.convs:
        h = relu(conv(h, GRAPH))
        states.append(h)
    seen = {"linear": h, "max": torch.stack(states).amax(0), "cat": torch.cat(states, 1)}[output]
    torch.testing.assert_close(model(features(), GRAPH), model.lin(seen))


def test_one_layer_without_norm_and_residual_is_the_papers_pgnn() -> None:
    paper = plap.nn.PGNN(8, 4, 3, p=1.5, mu=0.1, K=4, dropout=0.5).double()
    model = make(num_layers=1, mlp_layers=1, norm=None, K=4, dropout=0.5)
    places = {"lin.": "mlp.0.", "conv.": "convs.0."}
    state = {next(to + k.removeprefix(of) for of, to in places.items() if k.startswith(of)): v
             for k, v in paper.state_dict().items()}  # fmt: skip
    model.load_state_dict(state)
    results = []
    for module in (paper, model):
        module.train()
        torch.manual_seed(1)
        results.append(module(features(), GRAPH))
    assert torch.equal(*results)
    assert torch.equal(paper.eval()(features(), GRAPH), model.eval()(features(), GRAPH))


@pytest.mark.parametrize("num_layers", [2, 4])
def test_steps_without_a_pull_to_the_input_are_graph_convolutions(num_layers: int) -> None:
    """K = 1, p = 2, μ → 0: H' = ReLU(D^-1/2 W D^-1/2 H Θ), as in GCN without its self-loops."""
    ring = problems.random_graph(8, 0.6, seed=3)
    model: Any = make(num_layers=num_layers, p=2.0, K=1, mu=1e-13, norm=None)
    W = torch.from_numpy(ring.to_scipy().toarray())
    root = W.sum(1).rsqrt()
    h = x = problems.features(8, 8, seed=1)
    for index, conv in enumerate(model.convs):
        h = conv.lin(root[:, None] * W @ (root[:, None] * h))
        h = h if index == num_layers - 1 else relu(h)
    torch.testing.assert_close(model(x, ring), h)


def test_each_layer_may_have_its_own_p_mu_and_K() -> None:
    model: Any = make(p=(1.0, 2.0, 2.5), mu=(0.1, 1.0, 10.0), K=(1, 2, 4), norm=None)
    h = features()
    for p, mu, K, conv in zip((1.0, 2.0, 2.5), (0.1, 1.0, 10.0), (1, 2, 4), model.convs, strict=True):
        z = conv.lin(plap.propagate(h, GRAPH, p, mu, K, backend="dense"))
        h = relu(z)
    torch.testing.assert_close(model(features(), GRAPH), z)
    assert model.hops == 7


def test_penalties_of_one_layer_or_of_all() -> None:
    mcp, huber = plap.penalties.MCP(3.0), plap.penalties.Huber(1.0)
    assert [type(conv.penalty).__name__ for conv in make(p=None, penalty=mcp).convs] == ["MCP"] * 3
    mixed = make(p=None, penalty=(mcp, huber, None), norm=None)
    with pytest.raises(InputError, match="p and penalty cannot both be given"):
        make(penalty=mcp)
    assert [type(conv.penalty).__name__ for conv in mixed.convs] == ["MCP", "Huber", "Power"]
    assert bool(mixed(features(), GRAPH).isfinite().all())


@pytest.mark.parametrize(("tied", "count"), [(True, 1), (False, 3)])
def test_learned_values_of_each_layer_or_of_all(tied: bool, count: int) -> None:
    model: Any = make(learn_p=True, learn_mu=True, tied=tied)
    assert len({id(conv._raw_p) for conv in model.convs}) == count
    assert sum(name.endswith("_raw_mu") for name, _ in model.named_parameters()) == count
    model(features(), GRAPH).square().sum().backward()
    assert all(bool(conv._raw_p.grad != 0) and bool(conv._raw_mu.grad != 0) for conv in model.convs)
    other = make(learn_p=True, learn_mu=True, tied=tied)
    other.load_state_dict(model.state_dict())


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
        ({"output": "mean"}, "output must be one of layer, linear, max, cat, not 'mean'"),
        ({"p": (1.5, 2.0)}, "p has 2 values for 3 layers: give one, or one per layer"),
        ({"K": "1.5"}, "K must be an integer of 1 or more, not '1.5'"),
        ({"norm": "group"}, "norm must be 'batch', 'layer' or None, not 'group'"),
    ],
)
def test_refuses(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make(**changes)


def test_tied_layers_have_one_value_each() -> None:
    with pytest.raises(plap.InputError, match="tied layers share p, so it must be one value, not"):
        plap.nn.DeepPGNN(8, 6, 3, num_layers=3, p=(1.2, 1.5, 2.5), learn_p=True, tied=True)
