"""What people do with every module: other types of numbers, inference mode, resets, gradients of weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


RESETTABLE: dict[str, Make] = MODELS | {
    "mlp": lambda: baselines.MLP(6, 5, 3),
    "deep-gat": lambda: baselines.DeepGAT(6, 5, 3),
}


@pytest.mark.parametrize("name", RESETTABLE)
def test_weights_are_drawn_anew_as_in_the_beginning(name: str) -> None:
    torch.manual_seed(1)
    model: Any = RESETTABLE[name]()
    start = {key: value.clone() for key, value in model.state_dict().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    model.reset_parameters()
    for key, value in model.state_dict().items():
        if len(start[key].unique()) < start[key].numel():  # such as biases of zero
            assert torch.equal(value, start[key]), key
        elif key == "gamma":
            assert torch.equal(value, start[key])
        else:
            assert not torch.equal(value, start[key]), key
            ratio = float(value.abs().mean() / start[key].abs().mean())
            assert value.numel() < 5 or 0.3 < ratio < 3, key


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


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (X.numpy(), "x must be a tensor or a SciPy sparse matrix, not ndarray"),
        (X.tolist(), "x must be a tensor or a SciPy sparse matrix, not list"),
        (X[:, 0], r"x must have shape \[N, F\], not \[8\]"),
        (X[:5], "x has 5 rows but graph has 8 nodes"),
        (scipy.sparse.csr_array(X[:5].numpy()), "x has 5 rows but graph has 8 nodes"),
    ],
    ids=["array", "list", "vector", "rows", "sparse rows"],
)
def test_features_that_do_not_fit_are_refused_by_name(name: str, wrong: Any, sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        made(name)(wrong, plap.Graph.from_edge_index(EDGES))


@pytest.mark.parametrize("wrong", [X.numpy(), X.tolist()], ids=["array", "list"])
@pytest.mark.parametrize("make", [lambda: baselines.MLP(6, 5, 3), lambda: nn.FeatureLinear(6, 3)])
def test_layers_without_a_graph_refuse_features_by_name(make: Make, wrong: Any) -> None:
    with pytest.raises(plap.InputError, match="x must be a tensor or a SciPy sparse matrix, not"):
        make()(wrong)


LAPLACIAN = ["pgnn", "deep", "deep+mlp", "gcn+pgnn", "jknet+pgnn", "rung"]
REFUSE_LOST_FEATURES = [*LAPLACIAN, "elastic", "jaccard"]


def with_front(name: str) -> torch.nn.Module:
    return nn.DeepPGNN(6, 5, 3, norm=None, mlp_layers=1) if name == "deep+mlp" else made(name)


@pytest.mark.parametrize("name", REFUSE_LOST_FEATURES)
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_the_feature_that_is_not_finite_is_named(name: str, value: float) -> None:
    x = X.clone()
    x[3, 5] = value
    with pytest.raises(plap.InputError, match=rf"^x\[3, 5\] = {value} is not finite$"):
        with_front(name)(x, EDGES)


@pytest.mark.parametrize("name", sorted({*REFUSE_LOST_FEATURES} - {"deep"}))
@pytest.mark.parametrize("kind", ["csr", "scipy"])
def test_a_sparse_feature_that_is_not_finite_is_refused(name: str, kind: str) -> None:
    x = X.clone()
    x[3, 5] = torch.nan
    given = x.to_sparse_csr() if kind == "csr" else scipy.sparse.csr_array(x.numpy())
    with pytest.raises(plap.InputError, match="x contains a value that is not finite"):
        with_front(name)(given, EDGES)


@pytest.mark.parametrize("name", LAPLACIAN)
def test_a_model_that_diverged_does_not_blame_the_features(name: str) -> None:
    model = with_front(name)
    with torch.no_grad():
        next(iter(model.parameters())).fill_(torch.nan)
    with pytest.raises(plap.InputError, match="hidden features are not finite, though x is: training may"):
        model(X, EDGES)


@pytest.mark.parametrize("name", ["elastic", "jaccard"])
def test_a_model_to_compare_with_that_diverged_is_no_error(name: str) -> None:
    model = made(name)
    with torch.no_grad():
        next(iter(model.parameters())).fill_(torch.nan)
    assert model(X, EDGES).isnan().all()


def test_large_hidden_features_whose_sum_overflows_are_finite() -> None:
    model = made("pgnn").eval()
    assert model(3e37 * X, EDGES).shape == (8, 3)


@pytest.mark.parametrize("name", ["rung", "elastic", "jaccard", "gcn"])
def test_compiles_in_parts(name: str) -> None:
    """What is remembered of a graph must be made by the first call, so nothing may be called before."""
    for edges in (EDGES.clone(), plap.Graph.from_edge_index(EDGES)):
        torch._dynamo.reset()
        model = made(name).eval()
        found = torch.compile(model, backend="eager")(X.clone(), edges)
        torch.testing.assert_close(found, model(X, edges))


@pytest.mark.parametrize("make", [nn.PLaplacianConv, lambda *a, **k: nn.PGNN(4, *a, **k), nn.DeepPGNN])
@pytest.mark.parametrize(
    "flag", ["bias", "concat", "cached", "detach_weights", "learn_p", "learn_mu", "learn_gamma"]
)
def test_flags_are_true_or_false(make: Callable[..., torch.nn.Module], flag: str) -> None:
    sizes = (6, 5, 3) if make is nn.DeepPGNN else (6, 3)
    with pytest.raises(plap.InputError, match=f"^{flag} must be True or False, not 'no'$"):
        make(*sizes, **{flag: "no"})


@pytest.mark.parametrize("flag", ["residual", "prenorm", "tied"])
def test_flags_of_deep_networks_are_true_or_false(flag: str) -> None:
    with pytest.raises(plap.InputError, match=f"^{flag} must be True or False, not 'no'$"):
        nn.DeepPGNN(6, 5, 3, **{flag: "no"})  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda: nn.PLaplacianConv(6, 3), lambda: nn.PGNN(6, 5, 3)])
def test_the_flag_of_a_call_is_true_or_false(make: Make) -> None:
    with pytest.raises(plap.InputError, match="return_aggregation_weights must be True or False, not 'no'"):
        make()(X, EDGES, return_aggregation_weights="no")


@pytest.mark.parametrize("name", ["pgnn", "deep", "rung", "gcn+pgnn", "elastic", "jaccard", "gcn"])
def test_the_backward_pass_may_be_in_the_autocast_block(name: str) -> None:
    x = scipy.sparse.csr_array(X.numpy()) if name in ("pgnn", "deep", "rung", "gcn+pgnn") else X
    model = made(name).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(x, EDGES).float().square().sum().backward()
    found = [parameter.grad for parameter in model.parameters()]
    assert all(slope is None or bool(torch.isfinite(slope).all()) for slope in found)
    assert any(slope is not None and bool((slope != 0).any()) for slope in found)


def test_the_oracle_is_exact_under_autocast() -> None:
    graph = plap.Graph.from_edge_index(EDGES)
    expected = plap.propagate(X, graph, p=1.5, mu=0.3, backend="dense")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = plap.propagate(X, graph, p=1.5, mu=0.3, backend="dense")
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
