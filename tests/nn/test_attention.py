"""The sum over neighbours that attention weights, against the arrays of edges × channels that it avoids."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn import GATConv

import problems
from plap.nn.attention import AttentionConv, weighted_sum
from plap.nn.gat import edges_with_loops


def textbook(edges: Tensor, alpha: Tensor, x: Tensor) -> Tensor:
    source, target = edges
    return torch.zeros_like(x).index_add(0, target, alpha.unsqueeze(-1) * x[source])


@given(data=st.data(), nodes=st.integers(1, 6), heads=st.integers(1, 3), channels=st.integers(1, 4))
def test_is_the_textbooks_sum(data: st.DataObject, nodes: int, heads: int, channels: int) -> None:
    """On directed graphs, with loops and with nodes that have no edge."""
    node = st.integers(0, nodes - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=12, unique=True))
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    alpha = problems.features(max(len(pairs), 1), heads)[: len(pairs)].requires_grad_()
    x = problems.features(nodes, heads * channels, seed=1).reshape(nodes, heads, channels).requires_grad_()
    cotangent = problems.features(nodes, heads * channels, seed=2).reshape(nodes, heads, channels)
    results = [make(edges, alpha, x) for make in (weighted_sum, textbook)]
    torch.testing.assert_close(*results)
    slopes = [torch.autograd.grad(result, (alpha, x), cotangent) for result in results]
    for mine, theirs in zip(*slopes, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_gradients_by_differences() -> None:
    edges = edges_with_loops(problems.random_graph(7, 0.4, seed=1))
    alpha = problems.features(edges.shape[1], 2).requires_grad_()
    x = problems.features(7, 6).reshape(7, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: weighted_sum(edges, a, b), (alpha, x))


def test_second_derivatives_are_refused() -> None:
    edges, x = torch.tensor([[0], [1]]), torch.ones(2, 1, 1, requires_grad=True)
    (slope,) = torch.autograd.grad(
        weighted_sum(edges, torch.ones(1, 1), x).square().sum(), x, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_holds_nothing_of_size_edges_times_channels() -> None:
    edges = edges_with_loops(problems.random_graph(60, 0.5, seed=2))
    kept: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    layers = [kind(16, 16, heads=4, add_self_loops=False) for kind in (AttentionConv, GATConv)]
    largest = []
    for layer in layers:
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            layer(torch.randn(60, 16), edges)
        largest.append(max(kept))
    assert largest[1] == edges.shape[1] * 4 * 16
    assert largest[0] <= edges.shape[1] * 4


def test_other_devices_have_pygs_own() -> None:
    layer = AttentionConv(4, 3, heads=2, add_self_loops=False).to("meta")
    edges = torch.zeros(2, 5, dtype=torch.int64, device="meta")
    assert layer(torch.empty(6, 4, device="meta"), edges).device.type == "meta"


def test_nodes_without_edges_may_be_added_later() -> None:
    edges, alpha = torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 1)
    for nodes in (2, 4):
        x = torch.arange(float(nodes)).reshape(nodes, 1, 1)
        torch.testing.assert_close(weighted_sum(edges, alpha, x), textbook(edges, alpha, x))
