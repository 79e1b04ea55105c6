from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from plap.data import csbm, perturb_edges
from plap.errors import InputError
from plap.graph import Graph


def pairs(graph: Graph, chosen: Tensor | None = None) -> set[tuple[int, int]]:
    edges = graph.edge_index if chosen is None else graph.edge_index[:, chosen]
    return {(int(a), int(b)) for a, b in edges.T if a < b}


@st.composite
def sparse_graphs(draw: st.DrawFn) -> Graph:
    nodes = draw(st.integers(6, 20))
    every = [(i, j) for j in range(nodes) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(every), min_size=1, max_size=len(every) // 2, unique=True))
    weights = torch.arange(1.0, len(edges) + 1)
    return Graph.from_edges(edges, weights.numpy(), num_nodes=nodes)


@given(sparse_graphs(), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), st.integers(0, 3))
def test_exact_counts_and_disjoint_from_the_original(graph: Graph, rate: float, seed: int) -> None:
    noisy, random = perturb_edges(graph, rate, seed)
    wanted = math.floor(rate * graph.num_edges + 0.5)
    original, new, drawn = pairs(graph), pairs(noisy), pairs(noisy, random)
    assert noisy.num_nodes == graph.num_nodes
    assert noisy.num_edges == graph.num_edges == len(new)
    assert random.shape == (noisy.num_entries,)
    assert int(random.sum()) == 2 * wanted
    assert len(drawn) == wanted
    assert drawn.isdisjoint(original)
    assert new - drawn <= original
    assert not (noisy.edge_index[0] == noisy.edge_index[1]).any()


@given(sparse_graphs(), st.integers(0, 3))
def test_kept_edges_keep_their_weight_and_random_ones_take_the_others(graph: Graph, seed: int) -> None:
    noisy, random = perturb_edges(graph, 0.5, seed)
    assert torch.equal(noisy.weight.sort().values, graph.weight.sort().values)
    before = {(int(a), int(b)): float(w) for (a, b), w in zip(graph.edge_index.T, graph.weight, strict=True)}
    kept = ~random
    for (a, b), weight in zip(noisy.edge_index.T[kept], noisy.weight[kept], strict=True):
        assert before[int(a), int(b)] == float(weight)


@given(sparse_graphs(), st.integers(0, 10))
def test_pure_function_of_graph_and_seed(graph: Graph, seed: int) -> None:
    first, again = perturb_edges(graph, 0.5, seed), perturb_edges(graph, 0.5, seed)
    assert first.graph.digest == again.graph.digest
    assert torch.equal(first.random, again.random)


def test_another_seed_is_another_graph() -> None:
    graph = csbm(phi=0.5, n=200, f=1).graph
    assert perturb_edges(graph, 0.5, 0).graph.digest != perturb_edges(graph, 0.5, 1).graph.digest


def test_rate_zero_changes_nothing() -> None:
    graph = csbm(phi=0.5, n=200, f=1).graph
    noisy, random = perturb_edges(graph, 0.0)
    assert noisy.digest == graph.digest
    assert not random.any()


def test_every_absent_pair_is_equally_likely_and_so_is_every_removal() -> None:
    graph, draws = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)]), 3000
    added: dict[tuple[int, int], int] = {}
    removed: dict[tuple[int, int], int] = {}
    for seed in range(draws):
        noisy, random = perturb_edges(graph, 0.5, seed)
        for pair in pairs(noisy, random):
            added[pair] = added.get(pair, 0) + 1
        for pair in pairs(graph) - pairs(noisy):
            removed[pair] = removed.get(pair, 0) + 1
    assert set(added) == {(i, j) for j in range(5) for i in range(j)} - pairs(graph)
    assert set(removed) == pairs(graph)
    for counts, share in ((added, 2 / 6), (removed, 2 / 4)):
        for count in counts.values():
            assert abs(count / draws - share) < 4 * math.sqrt(share * (1 - share) / draws)


def test_kept_self_loops_stay() -> None:
    graph = Graph.from_edges([(0, 0), (0, 1), (1, 2), (4, 4)], num_nodes=5, self_loops="keep")
    noisy, random = perturb_edges(graph, 1.0)
    loops = noisy.edge_index[0] == noisy.edge_index[1]
    assert noisy.edge_index[0][loops].tolist() == [0, 4]
    assert not random[loops].any()
    assert random[~loops].all()


def test_gradients_flow_to_the_weights() -> None:
    weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    noisy = perturb_edges(Graph.from_edge_index(edges, weight, 6), 1.0).graph
    (gradient,) = torch.autograd.grad(noisy.weight.sum(), weight)
    assert gradient.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), "0.5", True])
def test_a_bad_rate_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="rate must be a number"):
        perturb_edges(Graph.from_edges([(0, 1), (1, 2)]), rate)


def test_a_graph_too_dense_is_refused() -> None:
    triangle_and_more = Graph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)])
    with pytest.raises(InputError, match=r"too dense for a noise rate of 1.0: 4 .* only 2 pairs"):
        perturb_edges(triangle_and_more, 1.0)
    assert perturb_edges(triangle_and_more, 0.5).graph.num_edges == 4


def test_a_graph_without_edges_stays_so() -> None:
    graph = Graph.from_edges([], num_nodes=3)
    assert perturb_edges(graph, 1.0).graph.num_edges == 0
