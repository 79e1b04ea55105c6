"""The attention of many runs at once is PyG's layer, run by run."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GATConv

import problems
from plap import Graph
from plap.nn import stacked_attention
from plap.nn.gat import edges_with_loops
from plap.nn.stacked_attention import (
    Neighbours,
    attend,
    log_lengths,
    neighbours_alone,
    neighbours_and_self,
    weighted_sums,
)

GRAPHS = {
    "random": problems.random_graph(9, 0.4, seed=1),
    "no edge": Graph.from_edges(torch.empty(0, 2, dtype=torch.int64), num_nodes=3),
    "star": Graph.from_edges([(0, k) for k in range(1, 20)]),
}


def arguments(neighbours: Neighbours, runs: int, heads: int, channels: int) -> tuple[Tensor, Tensor, Tensor]:
    nodes, entries = neighbours.indptr.shape[0] - 1, neighbours.indices.shape[0]
    draws = torch.Generator().manual_seed(4)
    shapes = (runs, nodes, heads, channels), (runs, nodes, 2 * heads), (runs, entries, heads)
    x, scores, mask = (torch.randn(shape, dtype=torch.float64, generator=draws) for shape in shapes)
    return x.requires_grad_(), scores.requires_grad_(), (mask > 0).double() * 2


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize(("heads", "channels"), [(1, 3), (3, 8), (8, 8), (9, 8), (2, 20)])
@pytest.mark.parametrize("dropped", [False, True])
def test_loops_and_gathered_rows_agree(
    graph: Graph, heads: int, channels: int, dropped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbours = neighbours_and_self(graph)
    x, scores, mask = arguments(neighbours, 3, heads, channels)
    compiled = attend(neighbours, x, scores, mask if dropped else None)
    monkeypatch.setattr(stacked_attention, "compiled_for", lambda device: False)
    gathered = attend(neighbours, x, scores, mask if dropped else None)
    torch.testing.assert_close(compiled, gathered)
    cotangent = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).reshape(x.shape)
    slopes = [torch.autograd.grad(result, (x, scores), cotangent) for result in (compiled, gathered)]
    for mine, theirs in zip(*slopes, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_gradients_by_differences() -> None:
    neighbours = neighbours_and_self(GRAPHS["random"])
    x, scores, mask = arguments(neighbours, 2, 2, 3)
    assert torch.autograd.gradcheck(lambda a, b: attend(neighbours, a, b, mask), (x, scores))


def test_every_run_is_pygs_layer() -> None:
    graph = problems.random_graph(9, 0.4, seed=3)
    neighbours = neighbours_and_self(graph)
    x, _, _ = arguments(neighbours, 2, 3, 4)
    for run in range(2):
        layer = GATConv(12, 4, heads=3, add_self_loops=False, bias=False).double()
        layer.lin = torch.nn.Identity()
        expected = layer(x[run].flatten(1), edges_with_loops(graph)).reshape(9, 3, 4)
        scores = torch.cat([(x[run] * part).sum(2) for part in (layer.att_src, layer.att_dst)], 1)
        torch.testing.assert_close(attend(neighbours, x[run : run + 1], scores[None])[0], expected)


def test_threads_change_nothing() -> None:
    graph = problems.random_graph(400, 0.1, seed=5)
    neighbours = neighbours_and_self(graph)
    x, scores, mask = arguments(neighbours, 1, 8, 8)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            value = attend(neighbours, x, scores, mask)
            results.append([value, *torch.autograd.grad(value.square().sum(), (x, scores))])
    finally:
        torch.set_num_threads(before)
    for one, three in zip(*results, strict=True):
        assert torch.equal(one, three)


def test_large_scores_do_not_overflow() -> None:
    neighbours = neighbours_and_self(GRAPHS["star"])
    x, scores, _ = arguments(neighbours, 1, 2, 3)
    assert attend(neighbours, x.float(), 1e4 * scores.float()).isfinite().all()


def test_self_loops_of_the_graph_are_there_once() -> None:
    edges = [(0, 1, 1.0), (1, 2, 1.0)]
    plain, looped = (problems.weighted([*edges, *more], 3, keep_loops=True) for more in ([], [(1, 1, 2.0)]))
    assert looped.num_self_loops == 1
    for one, other in zip(neighbours_and_self(plain), neighbours_and_self(looped), strict=True):
        assert torch.equal(one, other)


def test_second_derivatives_are_refused() -> None:
    neighbours = neighbours_and_self(GRAPHS["star"])
    x, scores, _ = arguments(neighbours, 1, 1, 2)
    (slope,) = torch.autograd.grad(attend(neighbours, x, scores).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("channels", [3, 16])
def test_weighted_sums_are_products_with_matrices(
    graph: Graph, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbours = neighbours_alone(graph)
    x, weights, _ = arguments(neighbours, 2, 1, channels)
    x = x.detach().squeeze(2).requires_grad_()
    weights = torch.linspace(-1, 2, 2 * graph.num_entries, dtype=x.dtype).reshape(2, -1).requires_grad_()
    A = x.new_zeros(2, graph.num_nodes, graph.num_nodes)
    A = A.index_put((torch.tensor([[0], [1]]), neighbours.receivers, neighbours.indices), weights)
    results = [weighted_sums(neighbours, x, weights), torch.bmm(A, x)]
    monkeypatch.setattr(stacked_attention, "compiled_for", lambda device: False)
    results.append(weighted_sums(neighbours, x, weights))
    slopes = [torch.autograd.grad(result.square().sum(), (x, weights)) for result in results]
    for result, slope in zip(results[1:], slopes[1:], strict=True):
        torch.testing.assert_close(result, results[0])
        for mine, theirs in zip(slope, slopes[0], strict=True):
            torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("channels", [1, 3, 8, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lengths_of_edges_and_of_gathered_differences_agree(
    graph: Graph, channels: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbours = neighbours_alone(graph)
    x = torch.randn(2, graph.num_nodes, channels, generator=torch.Generator().manual_seed(5), dtype=dtype)
    x[:, 1] = x[:, 0]
    x[0, 2] *= 1e17
    x[1] *= 1e-17
    x.requires_grad_()
    compiled = log_lengths(neighbours, x)
    monkeypatch.setattr(stacked_attention, "compiled_for", lambda device: False)
    gathered = log_lengths(neighbours, x)
    torch.testing.assert_close(compiled, gathered)
    cotangent = torch.linspace(-1, 1, compiled.numel(), dtype=dtype).reshape(compiled.shape)
    cotangent = torch.where(compiled.isfinite(), cotangent, 0)
    mine, theirs = (torch.autograd.grad(result, x, cotangent)[0] for result in (compiled, gathered))
    scale = theirs.abs().amax(2, keepdim=True).clamp_min(torch.finfo(dtype).tiny)
    torch.testing.assert_close(
        mine / scale, theirs / scale, rtol=0, atol=1e-4 if dtype == torch.float32 else 1e-11
    )


def test_gradients_of_lengths_by_differences() -> None:
    neighbours = neighbours_alone(GRAPHS["random"])
    x = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: log_lengths(neighbours, a), x.requires_grad_())
