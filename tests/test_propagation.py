"""The public operator: what it refuses, which backend it takes, how it behaves inside PyTorch's machinery."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

import plap
import problems
import textbook
from allocations import Allocations
from plap.kernels.fused import calling
from plap.penalties import MCP, Huber, Penalty, Power, Welsch


@pytest.fixture
def graph() -> plap.Graph:
    return problems.random_graph(30, 0.2, seed=1, weighted=True)


@pytest.fixture
def x(graph: plap.Graph) -> Tensor:
    return problems.features(graph.num_nodes, 5, seed=2)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"p": 0.9}, "p must be a finite number of at least 1"),
        ({"p": float("nan")}, "p must be a finite number of at least 1"),
        ({"p": "2"}, "p must be a finite number"),
        ({"p": torch.tensor([1.0, 2.0])}, r"p must be a number or have shape \[1\]"),
        ({"p": torch.tensor(0.5)}, "p must be a finite number of at least 1, not 0.5"),
        ({"mu": 0.0}, "mu must be a positive finite number"),
        ({"mu": -1.0}, "mu must be a positive finite number"),
        ({"mu": float("inf")}, "mu must be a positive finite number"),
        ({"K": 0}, "K must be an integer of 1 or more"),
        ({"K": 2.5}, "K must be an integer"),
        ({"K": True}, "K must be an integer"),
        ({"omega": 0.0}, "omega must lie between 0 and 2"),
        ({"omega": "1"}, "omega must lie between 0 and 2, not '1'"),
        ({"omega": None}, "omega must lie between 0 and 2, not None"),
        ({"omega": torch.ones(2)}, "omega must lie between 0 and 2"),
        ({"eps": -1.0}, "eps must be positive"),
        ({"eps": "1"}, "eps must be positive, .* not '1'"),
        ({"eps": True}, "eps must be positive, .* not True"),
        ({"eps": torch.ones(2)}, "eps must be positive"),
        ({"unit": torch.tensor(0.0)}, "unit must be a positive finite number, not 0"),
        ({"unit": torch.tensor(-1.0)}, "unit must be a positive finite number, not -1"),
        (
            {"unit": torch.tensor(-1.0), "p": None, "penalty": MCP(1.0)},
            "unit must be a positive finite number",
        ),
        ({"unit": torch.ones(3)}, r"unit must be a number or have shape \[1\], not \[3\]"),
        ({"eps": 1e-200}, "eps must be positive, finite and its square a normal"),
        ({"variant": "other"}, "variant must be one of"),
        ({"detach_weights": "no"}, "detach_weights must be"),
        ({"backend": "cuda"}, "backend must be one of"),
        ({"variant": "published", "backend": "fused"}, "variant 'published' needs backend 'torch'"),
        ({"memory_budget": "4 elephants"}, "memory_budget must be bytes or text"),
        ({"memory_budget": 1000}, "memory_budget is too small: 2 steps on 30 nodes × 5 channels"),
        ({"memory_budget": 1000, "backend": "torch"}, "memory_budget is too small"),
        ({"memory_budget": "1GB", "backend": "dense"}, "memory_budget cannot be kept by backend 'dense'"),
        ({"memory_budget": "1GB", "variant": "published"}, "cannot be kept by variant 'published'"),
    ],
)
def test_refuses_by_name(x: Tensor, graph: plap.Graph, changed: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {"p": 1.5, "mu": 0.1, "K": 2} | changed
    with pytest.raises(ValueError, match=sentence):
        plap.propagate(x, graph, **arguments)


def test_refuses_features_that_do_not_fit(x: Tensor, graph: plap.Graph) -> None:
    with pytest.raises(ValueError, match="x has 29 rows but graph has 30 nodes"):
        plap.propagate(x[1:], graph, 1.5, 0.1)
    with pytest.raises(
        ValueError, match=r"x must have shape \[N, C\] or \[R, N, C\] with R and C positive, not \[5\]"
    ):
        plap.propagate(x[0], graph, 1.5, 0.1)
    with pytest.raises(ValueError, match=r"x must be float32 or float64, not torch\.int64"):
        plap.propagate(x.long(), graph, 1.5, 0.1)
    x[3, 1] = float("nan")
    with pytest.raises(ValueError, match=r"x\[3, 1\] = nan is not finite"):
        plap.propagate(x, graph, 1.5, 0.1)
    with pytest.raises(ValueError, match=r"graph must be a plap\.Graph, not Tensor"):
        plap.propagate(x, graph.edge_index, 1.5, 0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("channels", [1, 3, 8, 16, 24, 33, 64, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_auto_is_fused_and_fused_is_dense(graph: plap.Graph, channels: int, dtype: torch.dtype) -> None:
    x = problems.features(graph.num_nodes, channels, seed=3).to(dtype)
    result = plap.propagate(x, graph, 1.5, 0.1, 4)
    assert torch.equal(result, plap.propagate(x, graph, 1.5, 0.1, 4, backend="fused"))
    expected = plap.propagate(x.double(), graph, 1.5, 0.1, 4, backend="dense")
    tolerance = 1e-12 if dtype == torch.float64 else 2e-4  # the step is not Lipschitz near equal rows
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("wide", "channels"),
    [pytest.param(False, channels, id=f"int32-{channels}") for channels in (5, 16, 33, 100)]
    + [pytest.param(True, 16, id="int64-16")]
    + [pytest.param(True, k, id=f"int64-{k}", marks=pytest.mark.long) for k in (5, 33, 100)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_gradients_for_every_width(
    graph: plap.Graph, channels: int, wide: bool, dtype: torch.dtype
) -> None:
    if wide:
        graph = replace(graph, indptr=graph.indptr.long(), indices=graph.indices.long())
    x = problems.features(2 * graph.num_nodes, channels, seed=3).reshape(2, graph.num_nodes, channels)
    cotangent = problems.features(x.numel(), 1, seed=4).reshape(x.shape)
    slopes = []
    for backend, kind in (("fused", dtype), ("dense", torch.float64)):
        weight = graph.weight.clone().requires_grad_()
        leaf = x.to(kind).requires_grad_()
        p = torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True)
        mu = torch.tensor([0.1, 1.0], dtype=torch.float64, requires_grad=True)
        on = problems.per_entry_weight(graph, weight)
        result = plap.propagate(leaf, on, p, mu, 3, omega=0.9, backend=backend)
        slopes.append(torch.autograd.grad(result, [leaf, weight, p, mu], cotangent.to(kind)))
    tolerance = 1e-9 if dtype == torch.float64 else 1e-4
    for got, wanted in zip(*slopes, strict=True):
        scale = wanted.abs().max().item()
        torch.testing.assert_close(got.double(), wanted.double(), rtol=0, atol=tolerance * scale)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("call", [plap.propagate, plap.solve, plap.energy])
def test_a_refusal_does_not_warn(call: Any, graph: plap.Graph, x: Tensor) -> None:
    x[1, 2] = torch.nan
    arguments = (1.5,) if call is plap.energy else (1.5, 0.1)
    with pytest.raises(plap.InputError, match=r"\[1, 2\] = nan is not finite"):
        call(x.requires_grad_() * 1, graph, *arguments)


@pytest.mark.parametrize("mu", [1.0, 100.0])
def test_float32_slopes_of_a_strong_anchor_do_not_cancel(graph: plap.Graph, x: Tensor, mu: float) -> None:
    slopes = []
    for kind in (torch.float32, torch.float64):
        weight = graph.weight.clone().requires_grad_()
        m = torch.tensor(mu, dtype=torch.float64, requires_grad=True)
        backend: Literal["fused", "dense"] = "fused" if kind == torch.float32 else "dense"
        result = plap.propagate(
            x.to(kind), problems.per_entry_weight(graph, weight), 1.0, m, 1, backend=backend
        )
        slopes.append(torch.autograd.grad(result.square().sum(), [weight, m]))
    for got, wanted in zip(*slopes, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-4 * wanted.abs().max().item())


@pytest.mark.parametrize(("p", "scale"), [(4.0, 1e16), (1.0, 1e-31)])
def test_float64_has_room_for_extreme_features(graph: plap.Graph, x: Tensor, p: float, scale: float) -> None:
    result = plap.propagate(x * scale, graph, p, 0.1, 2)
    expected = plap.propagate(x * scale, graph, p, 0.1, 2, backend="dense")
    torch.testing.assert_close(result / scale, expected / scale, rtol=1e-7, atol=1e-7)


def test_a_vanishing_mu_keeps_equal_rows() -> None:
    graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    for rows in (torch.zeros(3, 2), torch.tensor([[1.0, 2.0], [2.0**0.5, 8.0**0.5], [1.0, 2.0]])):
        assert torch.isfinite(plap.propagate(rows, graph, 1.5, 1e-42, 1)).all()


def test_runs_take_their_own_p_and_mu(x: Tensor, graph: plap.Graph) -> None:
    p, mu = torch.tensor([1.0, 2.0, 2.5]), torch.tensor([0.1, 1.0, 0.3])
    runs = torch.stack([x, 2 * x, -x])
    together = plap.propagate(runs, graph, p, mu, 3)
    for r in range(3):
        alone = plap.propagate(runs[r], graph, float(p[r]), float(mu[r]), 3)
        torch.testing.assert_close(together[r], alone, rtol=1e-6, atol=1e-6)


def test_empty_and_edgeless_graphs() -> None:
    nothing = plap.Graph.from_edges([], num_nodes=0)
    assert plap.propagate(torch.zeros(0, 4), nothing, 1.5, 0.1).shape == (0, 4)
    lonely = plap.Graph.from_edges([], num_nodes=3)
    x = torch.randn(3, 4, requires_grad=True)
    result = plap.propagate(x, lonely, 1.5, 0.1, 3, omega=0.5)
    assert torch.equal(result, x)
    result.sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))  # type: ignore[arg-type]


def test_learnable_p_leaves_2(x: Tensor, graph: plap.Graph) -> None:
    p = torch.tensor(2.0, requires_grad=True)
    plap.propagate(x.float(), graph, p, 0.1, 2).square().sum().backward()
    assert p.grad is not None
    assert abs(p.grad.item()) > 1e-3


def test_published_variant_differs_from_the_paper(x: Tensor, graph: plap.Graph) -> None:
    paper = plap.propagate(x, graph, 1.5, 0.1, 2)
    published = plap.propagate(x, graph, 1.5, 0.1, 2, variant="published")
    assert (paper - published).abs().max() > 1e-2


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiles_as_one_graph(x: Tensor, graph: plap.Graph, backend: str) -> None:
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor needs a C++ compiler")

    def loss(x: Tensor, p: float) -> Tensor:
        return plap.propagate(x.relu(), graph, p, 0.1, 3).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    for p in (1.5, 2.5, 1.2):
        eager, traced = x.clone().requires_grad_(), x.clone().requires_grad_()
        loss(eager, p).backward()
        compiled(traced, p).backward()
        torch.testing.assert_close(traced.grad, eager.grad)


def test_vmap_over_features_and_parameters(x: Tensor, graph: plap.Graph) -> None:
    batch = torch.stack([x, 2 * x, 3 * x])
    over_x = torch.func.vmap(lambda one: plap.propagate(one, graph, 1.5, 0.1, 2))(batch)
    torch.testing.assert_close(over_x, plap.propagate(batch, graph, 1.5, 0.1, 2))
    mu = torch.tensor([0.1, 0.5, 2.0], dtype=torch.float64)
    over_mu = torch.func.vmap(lambda m: plap.propagate(x, graph, 1.5, m, 2))(mu)
    for value, result in zip(mu, over_mu, strict=True):
        torch.testing.assert_close(result, plap.propagate(x, graph, 1.5, value, 2))


def test_gradients_go_through_vmap(x: Tensor, graph: plap.Graph) -> None:
    mu = torch.tensor([0.1, 0.5], dtype=torch.float64, requires_grad=True)
    runs = torch.stack([x, 2 * x]).requires_grad_()
    together = torch.func.vmap(lambda one, m: plap.propagate(one, graph, 1.5, m, 2))(runs, mu)
    expected = plap.propagate(runs, graph, 1.5, mu, 2)
    for got, wanted in zip(
        torch.autograd.grad(together.square().sum(), [runs, mu]),
        torch.autograd.grad(expected.square().sum(), [runs, mu]),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)
        assert wanted.abs().max() > 1e-3


def test_functional_derivatives_are_refused_not_wrong(x: Tensor, graph: plap.Graph) -> None:
    def loss(x: Tensor) -> Tensor:
        return plap.propagate(x, graph, 1.5, 0.1, 2).sum()

    with pytest.raises(NotImplementedError, match="use backend='torch'"):
        torch.func.grad(loss)(x)
    with pytest.raises(NotImplementedError, match="use backend='torch'"):
        torch.func.jvp(loss, (x,), (x,))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="backend='torch'"):
        loss(torch.autograd.forward_ad.make_dual(x, x))


def test_batched_cotangents(x: Tensor, graph: plap.Graph) -> None:
    leaf = x.clone().requires_grad_()
    result = plap.propagate(leaf, graph, 1.5, 0.1, 2)
    cotangents = torch.randn(3, *result.shape, dtype=x.dtype)
    (together,) = torch.autograd.grad(result, leaf, cotangents, is_grads_batched=True, retain_graph=True)
    for one, expected in zip(cotangents, together, strict=True):
        (alone,) = torch.autograd.grad(result, leaf, one, retain_graph=True)
        torch.testing.assert_close(alone, expected)


def test_second_derivative_through_fused_is_refused_and_through_torch_exists(
    x: Tensor, graph: plap.Graph
) -> None:
    leaf = x.clone().requires_grad_()
    for backend in ("fused", "torch"):
        loss = plap.propagate(leaf, graph, 1.5, 0.1, 2, backend=backend).square().sum()
        (slope,) = torch.autograd.grad(loss, leaf, create_graph=True)
        if backend == "fused":
            with pytest.raises(NotImplementedError, match="second derivatives do not exist for the fused"):
                slope.square().sum().backward()
        else:
            slope.square().sum().backward()
            assert leaf.grad is not None


@pytest.mark.parametrize(
    "penalty", [*map(Power, (1.0, 1.3, 1.5, 2.0, 2.5)), Huber(0.5), MCP(2.0), Welsch(1.0)]
)
def test_same_bits_whatever_the_threads(penalty: Penalty, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = problems.random_graph(400, 0.1, seed=4, weighted=True)
    x = problems.features(400, 16, seed=5).float()

    def both() -> tuple[Tensor, Tensor]:
        leaf = x.clone().requires_grad_()
        result = plap.propagate(leaf, graph, penalty=penalty, mu=0.1, K=4)
        result.square().sum().backward()
        assert leaf.grad is not None
        return result.detach(), leaf.grad

    expected = both()
    monkeypatch.setattr(calling, "count", lambda work, grain: 2)
    for got, wanted in zip(both(), expected, strict=True):
        assert torch.equal(got, wanted)
    monkeypatch.setattr(calling, "_openmp_fork", lambda: None)
    for got, wanted in zip(both(), expected, strict=True):
        assert torch.equal(got, wanted)


def test_edge_weights_learn_through_graph_construction() -> None:
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 2, 3, 0]])
    weight = torch.tensor([1.0, 2.0, 0.5, 1.5], dtype=torch.float64, requires_grad=True)
    x = problems.features(4, 3, seed=6)

    def result(w: Tensor) -> Tensor:
        return plap.propagate(x, plap.Graph.from_edge_index(edge_index, w), 1.5, 0.1, 2)

    assert torch.autograd.gradcheck(result, (weight,))


def test_a_budget_is_kept_in_one_compiled_graph_and_refused_where_it_cannot_be(
    x: Tensor, graph: plap.Graph
) -> None:
    budget = plap.memory_needed(graph.num_nodes, graph.num_entries, 5, 6, dtype=x.dtype).least

    def loss(x: Tensor) -> Tensor:
        return plap.propagate(x.relu(), graph, 1.5, 0.1, 6, memory_budget=budget).square().sum()

    eager, traced = x.clone().requires_grad_(), x.clone().requires_grad_()
    loss(eager).backward()
    torch.compile(loss, fullgraph=True, backend="aot_eager")(traced).backward()
    torch.testing.assert_close(traced.grad, eager.grad)
    for backend in ("fused", "torch"):
        batched = partial(plap.propagate, graph=graph, p=1.5, mu=0.1, backend=backend, memory_budget="1GB")
        with pytest.raises(plap.InputError, match=r"memory_budget cannot be kept .*under torch\.func"):
            torch.func.vmap(batched)(x[None])


def test_batched_cotangents_of_recomputed_steps(x: Tensor, graph: plap.Graph) -> None:
    budget = plap.memory_needed(graph.num_nodes, graph.num_entries, 5, 6, dtype=x.dtype).least
    leaf = x.clone().requires_grad_()
    result = plap.propagate(leaf, graph, 1.5, 0.1, 6, memory_budget=budget)
    cotangents = torch.randn(3, *result.shape, dtype=x.dtype)
    (together,) = torch.autograd.grad(result, leaf, cotangents, is_grads_batched=True, retain_graph=True)
    for one, expected in zip(cotangents, together, strict=True):
        (alone,) = torch.autograd.grad(result, leaf, one, retain_graph=True)
        torch.testing.assert_close(alone, expected)


def test_nothing_leaves_the_device_of_x(graph: plap.Graph) -> None:
    """On the meta device no number can be read, and what is made elsewhere shows."""
    weight = graph.weight.to("meta").requires_grad_()
    on = replace(graph.to("meta"), weight=weight)
    x = torch.empty(2, graph.num_nodes, 5, device="meta", requires_grad=True)
    p = torch.empty(2, device="meta", requires_grad=True)
    with Allocations() as seen:
        result = plap.propagate(x, on, p, 0.1, 4, omega=0.9, eps=0.1, memory_budget="1GB")
        slopes = torch.autograd.grad(result.sum(), [x, weight, p])
        plap.aggregation_weights(x.detach(), graph.to("meta"), 1.5, 0.1)
    assert seen.devices == {"meta"}
    assert [slope.shape for slope in slopes] == [x.shape, weight.shape, p.shape]


def test_meta_device_goes_through_the_torch_backend(graph: plap.Graph, x: Tensor) -> None:
    assert plap.propagate(x.to("meta"), graph.to("meta"), 1.5, 0.1, 2).shape == x.shape
    with pytest.raises(ValueError, match="p is on meta but x is on cpu"):
        plap.propagate(x, graph, torch.tensor(1.5, device="meta"), 0.1, 2)
    with pytest.raises(ValueError, match="x is on meta but graph is on cpu"):
        plap.propagate(x.to("meta"), graph, 1.5, 0.1, 2)


def test_importing_plap_imports_nothing_slow() -> None:
    script = (
        "import sys, plap; "
        "slow = ('numba', 'torch_geometric', 'torch._dynamo', 'polars', 'sklearn', 'matplotlib'); "
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_yardstick_of_the_benchmark_computes_the_same(x: Tensor, graph: plap.Graph) -> None:
    expected = plap.propagate(x, graph, 1.5, 0.1, 4)
    torch.testing.assert_close(textbook.propagate(x, graph.edge_index, graph.weight, 1.5, 0.1, 4), expected)
