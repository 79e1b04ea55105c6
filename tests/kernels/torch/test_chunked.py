"""Plain PyTorch in chunks: the same numbers whatever the chunks, in the memory that was promised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import problems
from allocations import READS_BACK, Allocations
from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.budget import Shape, Way
from plap.kernels.torch import autograd_ops
from plap.kernels.torch.backend import TORCH, ways
from plap.kernels.torch.chunked import op
from plap.kernels.torch.chunked.chunks import chunks
from plap.penalties import BUILT_IN, Penalty, Power
from problems import P_VALUES, PROBLEMS, Problem

Operator = Callable[[Tensor, Graph, Tensor, Tensor], Tensor]


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def in_chunks(
    size: int, every: int, K: int, omega: float = 1.0, eps: float | None = None
) -> Operator:  # fmt: skip
    return lambda x, graph, p, mu: op.propagate(x, graph, Power(p), mu, K, omega, eps, Way(every, size, 0))


def values_and_gradients(operator: Operator, problem: Problem, p: Tensor, mu: Tensor) -> Iterator[Tensor]:
    x = torch.stack([problem.x * (1 + run) for run in range(len(p))]).requires_grad_()
    weight = problem.graph.weight.clone().requires_grad_()
    p, mu = p.clone().requires_grad_(), mu.clone().requires_grad_()
    result = operator(x, problems.per_entry_weight(problem.graph, weight), p, mu)
    cotangent = problems.features(result.numel(), 1, seed=5).reshape(result.shape)
    yield result.detach()
    yield from torch.autograd.grad(result, [x, weight, p, mu], cotangent)


@pytest.mark.parametrize(("omega", "eps"), [(1.0, None), (0.6, None), (1.0, 0.5)])
@pytest.mark.parametrize(("size", "every"), [(1, 1), (2, 2), (3, 1), (5, 3)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_cut_anywhere_give_what_autograd_gives(
    name: str, size: int, every: int, omega: float, eps: float | None
) -> None:
    p, mu, K = numbers(*P_VALUES), torch.linspace(0.1, 1.0, len(P_VALUES), dtype=torch.float64), 4
    got = values_and_gradients(in_chunks(size, every, K, omega, eps), PROBLEMS[name](), p, mu)

    def expected(x: Tensor, graph: Graph, p: Tensor, mu: Tensor) -> Tensor:
        return autograd_ops.propagate(x, graph, Power(p), mu, K, omega, eps)

    for result, wanted in zip(got, values_and_gradients(expected, PROBLEMS[name](), p, mu), strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-9, atol=1e-9)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    problem=problems.graphs_with_features(),
    p=st.sampled_from(P_VALUES),
    size=st.integers(1, 7),
    every=st.integers(1, 3),
)
def test_values_and_gradients_are_finite_in_float32(
    problem: Problem, p: float, size: int, every: int
) -> None:
    x = problem.x.float()[None].requires_grad_()
    weight = problem.graph.weight.float().requires_grad_()
    graph = problems.per_entry_weight(problem.graph, weight)
    settings = (torch.tensor([p], requires_grad=True), torch.tensor([0.1], requires_grad=True))
    result = in_chunks(size, every, K=4)(x, graph, *settings)
    assert torch.isfinite(result).all()
    for slope in torch.autograd.grad(result.mean(), [x, weight, *settings]):
        assert torch.isfinite(slope).all()


@given(problem=problems.graphs_with_features(), size=st.integers(1, 9))
def test_chunks_are_a_partition_and_know_their_rows(problem: Problem, size: int) -> None:
    graph = problem.graph
    entries: list[int] = []
    receivers: list[int] = []
    for chunk in chunks(graph.indptr, graph.num_entries, size):
        assert chunk.end - chunk.first <= size
        assert chunk.continues == bool(graph.indptr[chunk.top] < chunk.first)
        entries += range(chunk.first, chunk.end)
        receivers += (chunk.top + chunk.receivers(graph.indptr)).tolist()
    assert entries == list(range(graph.num_entries))
    assert receivers == graph.receivers().tolist()


def test_chunks_are_found_once_a_graph_and_die_with_it() -> None:
    graph = problems.random_graph(20, 0.5, seed=1)
    first = chunks(graph.indptr, graph.num_entries, 7)
    assert chunks(graph.indptr, graph.num_entries, 7) is first
    same_structure = replace(graph, weight=2 * graph.weight)
    assert chunks(same_structure.indptr, graph.num_entries, 7) is first
    assert chunks(graph.indptr, graph.num_entries, 8) is not first


def test_one_chunk_is_found_without_reading_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU reading waits for the device, and each piece of a training is a new graph."""
    graph = problems.random_graph(20, 0.2, seed=1)

    def refuse(self: Tensor) -> Tensor:
        raise AssertionError("a copy to the host")

    monkeypatch.setattr(Tensor, "cpu", refuse)
    for size in (graph.num_entries, 10 * graph.num_entries):
        assert chunks(graph.indptr, graph.num_entries, size) == ((0, graph.num_entries, 0, 20, False),)
    assert chunks(torch.zeros(4, dtype=torch.int64), 0, size=5) == ()
    with pytest.raises(AssertionError, match="a copy"):
        chunks(graph.indptr, graph.num_entries, graph.num_entries - 1)


@pytest.fixture(scope="module")
def large() -> Graph:
    """A graph of several chunks, with a hub that joins every node."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 1500, (2, 3000), generator=generator)
    hub = torch.stack([torch.zeros(1499, dtype=torch.int64), torch.arange(1, 1500)])
    return Graph.from_edge_index(torch.cat([edges, hub], dim=1), torch.ones(4499, dtype=torch.float64), 1500)


def watched(
    graph: Graph,
    way: Way,
    device: str,
    *,
    runs: int,
    channels: int,
    K: int,
    dtype: torch.dtype,
    training: bool,
    penalty: type[Penalty] = Power,
) -> tuple[Allocations, int]:
    """What forward and backward allocate, and the bytes of the result and the gradients among it."""
    graph = graph.to(device)
    like = torch.empty(runs, graph.num_nodes, channels, dtype=dtype, device=device)
    x, G = torch.randn_like(like).requires_grad_(training), torch.randn_like(like)
    weight = graph.weight.clone().requires_grad_(training)
    p = torch.full((runs,), 1.5, dtype=dtype, device=device).requires_grad_(training)
    mu = torch.full((runs,), 0.1, dtype=dtype, device=device).requires_grad_(training)
    graph = replace(graph, weight=weight)
    with Allocations(x, G, weight, p, mu, graph.indptr, graph.indices, graph.degree) as seen:
        results = [op.propagate(x, graph, penalty(p), mu, K, 0.9, None, way)]
        if training:
            results += torch.autograd.grad(results[0], [x, weight, p, mu], G)
    return seen, sum(result.untyped_storage().nbytes() for result in results)


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("runs", "channels", "K"), [(1, 256, 3), (1, 1, 9), (3, 16, 2), (1, 5, 1)])
def test_no_way_takes_more_than_it_says(
    large: Graph, runs: int, channels: int, K: int, dtype: torch.dtype, training: bool
) -> None:
    shape = Shape(runs, large.num_nodes, channels, large.num_entries, K, dtype.itemsize)
    found = ways(shape, training=training)
    assert found[-1].size == min(way.size for way in found)
    for way in {found[0], found[-1]}:
        seen, ends = watched(
            large, way, "cpu", runs=runs, channels=channels, K=K, dtype=dtype, training=training
        )
        assert seen.peak - ends <= way.size
        assert not seen.operations & READS_BACK


@pytest.mark.parametrize("penalty", BUILT_IN, ids=lambda penalty: penalty.__name__)
def test_no_penalty_takes_more_than_its_way_says(large: Graph, penalty: type[Penalty]) -> None:
    """With one channel, what a step computes of edges counts most."""
    shape = Shape(1, large.num_nodes, 1, large.num_entries, 2, 8)
    (way,) = {*ways(shape, training=True)[-1:]}
    seen, ends = watched(
        large, way, "cpu", runs=1, channels=1, K=2, dtype=torch.float64, training=True, penalty=penalty
    )
    assert seen.peak - ends <= way.size


@pytest.mark.parametrize("channels", [16, 256])
def test_the_promise_is_not_idle(large: Graph, channels: int) -> None:
    shape = Shape(1, large.num_nodes, channels, large.num_entries, 4, 4)
    found = ways(shape, training=True)
    for way in (found[0], found[-1]):
        seen, _ = watched(
            large, way, "cpu", runs=1, channels=channels, K=4, dtype=torch.float32, training=True
        )
        assert seen.peak > 0.6 * way.size


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_nothing_of_size_edges_times_channels_exists(large: Graph, device: str) -> None:
    channels = 256
    shape = Shape(1, large.num_nodes, channels, large.num_entries, 4, 4)
    leanest = ways(shape, training=True)[-1]
    assert leanest.chunk < (large.indptr[1:] - large.indptr[:-1]).max()  # the hub goes over several chunks
    seen, _ = watched(
        large, leanest, device, runs=1, channels=channels, K=4, dtype=torch.float32, training=True
    )
    of_nodes = large.num_nodes * channels
    assert seen.largest <= max(of_nodes, large.num_entries, 2 * leanest.chunk * channels)
    assert seen.largest < large.num_entries * channels / 4
    assert seen.devices == {device}
    by_autograd = Allocations()
    with by_autograd:
        x = torch.randn(1, large.num_nodes, channels, device=device)
        autograd_ops.propagate(
            x, large.to(device), Power(torch.ones(1, device=device)), torch.ones(1, device=device), 1
        )
    assert by_autograd.largest == large.num_entries * channels  # so the watch sees what it should


def test_cotangents_of_any_layout(large: Graph) -> None:
    x = problems.features(large.num_nodes, 6, seed=1).T.contiguous().T[None].requires_grad_()
    assert not x.is_contiguous()
    result = TORCH.propagate(x, large, Power(numbers(1.5)), numbers(0.1), 2)
    (got,) = torch.autograd.grad(result.sum(), x)
    expected = autograd_ops.propagate(x, large, Power(numbers(1.5)), numbers(0.1), 2)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(got, torch.autograd.grad(expected.sum(), x)[0])


@pytest.mark.parametrize("wanted", range(4))
def test_one_gradient_alone_is_what_it_is_among_all(wanted: int) -> None:
    problem = problems.fixture()

    def slopes(which: list[int]) -> list[Tensor]:
        inputs = [problem.x[None].clone(), problem.graph.weight.clone(), numbers(1.5), numbers(0.1)]
        for k in which:
            inputs[k].requires_grad_()
        x, weight, p, mu = inputs
        result = TORCH.propagate(x, problems.per_entry_weight(problem.graph, weight), Power(p), mu, 3)
        return list(torch.autograd.grad(result.square().sum(), [inputs[k] for k in which]))

    torch.testing.assert_close(slopes([wanted])[0], slopes([0, 1, 2, 3])[wanted])


def test_a_graph_is_backpropagated_through_twice() -> None:
    problem = problems.fixture()
    x = problem.x[None].clone().requires_grad_()
    result = TORCH.propagate(x, problem.graph, Power(numbers(1.5)), numbers(0.1), 3)
    first, second = (torch.autograd.grad(result.sum(), x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_second_derivatives_when_p_depends_on_x() -> None:
    problem = problems.random_graph(5, 0.6, seed=2)

    def run(x: Tensor) -> Tensor:
        p = 1.5 + 0.3 * x.mean().tanh()
        return TORCH.propagate(x, problem, Power(p[None]), numbers(0.3), 2)

    x = problems.features(5, 2)[None].requires_grad_()
    once, twice = (
        torch.autograd.grad(run(x).square().sum(), x, create_graph=again)[0] for again in (False, True)
    )
    torch.testing.assert_close(twice, once)
    assert torch.autograd.gradgradcheck(run, x, fast_mode=True)


def test_batched_cotangents_and_functional_derivatives() -> None:
    graph, x = problems.random_graph(8, 0.5, seed=3), problems.features(8, 3)[None].requires_grad_()

    def run(x: Tensor) -> Tensor:
        return TORCH.propagate(x, graph, Power(numbers(1.5)), numbers(0.3), 2)

    result = run(x)
    cotangents = problems.features(3 * result.numel(), 1).reshape(3, *result.shape)
    (together,) = torch.autograd.grad(result, x, cotangents, is_grads_batched=True, retain_graph=True)
    for cotangent, got in zip(cotangents, together, strict=True):
        (alone,) = torch.autograd.grad(result, x, cotangent, retain_graph=True)
        torch.testing.assert_close(got, alone)
        torch.testing.assert_close(torch.func.vjp(run, x.detach())[1](cotangent)[0], alone)
    tangent = torch.func.jvp(run, (x.detach(),), (cotangents[0],))[1]
    expected = (torch.func.jacrev(run)(x.detach()) * cotangents[0]).sum((3, 4, 5))
    torch.testing.assert_close(tangent, expected)


def test_second_derivatives_within_a_budget_are_refused() -> None:
    graph, x = problems.random_graph(8, 0.5, seed=3), problems.features(8, 3)[None].requires_grad_()
    result = TORCH.propagate(x, graph, Power(numbers(1.5)), numbers(0.3), 2, budget=2**20)
    with pytest.raises(InputError, match="memory_budget cannot be kept for second derivatives"):
        torch.autograd.grad(result.sum(), x, create_graph=True)


def test_autocast_changes_nothing(large: Graph) -> None:
    x = problems.features(large.num_nodes, 16).float()[None].requires_grad_()

    def both() -> tuple[Tensor, Tensor]:
        result = TORCH.propagate(x, large, Power(numbers(1.5)), numbers(0.1), 2)
        return result, torch.autograd.grad(result.square().sum(), x)[0]

    expected = both()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for got, wanted in zip(both(), expected, strict=True):
            assert torch.equal(got, wanted)


def test_float32_features_learn_float64_weights() -> None:
    graph = problems.random_graph(12, 0.5, seed=4)
    slopes: list[Tensor] = []
    for dtype in (torch.float32, torch.float64):
        weight = graph.weight.clone().requires_grad_()
        x = problems.features(12, 4).to(dtype)[None]
        result = TORCH.propagate(
            x, problems.per_entry_weight(graph, weight), Power(numbers(1.5)), numbers(0.5), 2
        )
        slopes += torch.autograd.grad(result.square().sum(), weight)
    assert slopes[0].dtype == torch.float64
    torch.testing.assert_close(slopes[0], slopes[1], rtol=0, atol=1e-4 * slopes[1].abs().max().item())
