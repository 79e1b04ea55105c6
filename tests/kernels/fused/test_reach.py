"""Only rows that a result depends on are computed, and what is computed stays the same to the bit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from unittest.mock import patch

import networkx as nx
import pytest
import torch
from torch import Tensor

import plap
from plap.kernels.fused import graph_rows
from plap.kernels.fused.backend import FUSED
from plap.kernels.registry import propagate_unchecked
from plap.penalties import MCP, Huber, Penalty, Power
from plap.training import RunConfig, train_runs

NODES = 400


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """With fewer runs than threads, a large graph's rows are shared among threads instead of left out."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def graph() -> plap.Graph:
    """Sparse, so that a few hops do not reach everything; with nodes that have no edges."""
    graph = plap.data.csbm(phi=0.5, n=NODES, f=2, d=3.0, seed=1).graph
    assert (graph.degree == 0).any()
    return graph


@pytest.fixture(scope="module")
def rows() -> Tensor:
    """Three runs, each with nodes of its own; the first repeats one, as padding does."""
    drawn = [torch.randperm(NODES, generator=torch.Generator().manual_seed(k))[:6] for k in range(3)]
    drawn[0][-1] = drawn[0][0]
    return torch.stack(drawn)


def per_run(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


PENALTIES = [
    Power(per_run(1.0, 1.5, 2.5)),
    Power(per_run(2.0, 2.0, 2.0)),
    Power(per_run(1.3, 2.0, 3.0)),
    MCP(per_run(0.5, 1.0, 2.0)),
    Huber(per_run(0.5, 0.1, 2.0)),
]


def picked(x: Tensor, rows: Tensor) -> Tensor:
    return x.gather(1, rows.unsqueeze(2).expand(-1, -1, x.shape[2]))


@pytest.mark.parametrize("K", [1, 2, 5])
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
@pytest.mark.parametrize(("dtype", "channels"), [(torch.float32, 16), (torch.float64, 5)])
def test_values_and_gradients_are_those_of_all_rows(
    graph: plap.Graph, rows: Tensor, penalty: Penalty, detach: bool, K: int, dtype: torch.dtype, channels: int
) -> None:
    draws = torch.Generator().manual_seed(0)
    x = torch.randn(3, NODES, channels, generator=draws, dtype=dtype, requires_grad=True)
    mu = per_run(0.1, 0.5, 1.0).requires_grad_()
    parameter = torch.as_tensor(penalty.parameter).clone().requires_grad_()
    assert graph_rows.reach_of(graph.indptr, graph.indices, graph.weight.to(dtype), rows, K) is not None

    def run(wanted: Tensor | None, omega: float) -> tuple[Tensor, ...]:
        result = FUSED.propagate(
            x, graph, penalty.at(parameter), mu, K, omega, detach_weights=detach, rows=wanted
        )
        at_rows = picked(result, rows)
        factors = torch.linspace(-1, 1, at_rows.numel(), dtype=dtype).view_as(at_rows)
        leaves = [x, mu, parameter]
        slopes = torch.autograd.grad((at_rows * factors).sum(), leaves, materialize_grads=True)
        with torch.no_grad():
            untrained = FUSED.propagate(x, graph, penalty.at(parameter), mu, K, omega, rows=wanted)
        return at_rows, picked(untrained, rows), *slopes

    for omega in (1.0, 0.7):
        for some, every in zip(run(rows, omega), run(None, omega), strict=True):
            assert some.equal(every)


def test_rows_beyond_reach_are_never_read(graph: plap.Graph, rows: Tensor) -> None:
    """Features that are not finite, further away than the steps go, reach neither values nor gradients."""
    K = 2
    far = torch.ones(3, NODES, dtype=torch.bool)
    for run in range(3):
        found = graph_rows.sort_rows(graph.indptr, graph.indices, rows[run], K)
        far[run, found.order[: found.counts[K]].long()] = False
    assert far.any(1).all()
    x = torch.randn(3, NODES, 8, generator=torch.Generator().manual_seed(2))
    x[far] = torch.nan
    x.requires_grad_()
    p, mu = per_run(1.0, 1.5, 2.5), per_run(0.1, 0.1, 0.1)
    result = picked(propagate_unchecked(x, graph, p, mu, K, rows=rows), rows)
    (slope,) = torch.autograd.grad(result.sum(), x)
    assert result.isfinite().all()
    assert slope[~far].isfinite().all()
    assert slope[far].eq(0).all()


def test_rows_are_sorted_by_their_distance(graph: plap.Graph) -> None:
    wanted, K = torch.tensor([3, 17, 3, 200]), 3
    found = graph_rows.sort_rows(graph.indptr, graph.indices, wanted, K)
    distance = nx.multi_source_dijkstra_path_length(graph.to_networkx(), {3, 17, 200}, weight=None)
    expected = [sum(hops <= k for hops in distance.values()) for k in range(K + 2)]
    assert found.counts.tolist() == expected
    of_order = [distance[int(node)] for node in found.order]
    assert of_order == sorted(of_order)
    for row in range(int(found.counts[K])):
        node = int(found.order[row])
        mine = slice(int(found.indptr[row]), int(found.indptr[row + 1]))
        own = slice(int(graph.indptr[node]), int(graph.indptr[node + 1]))
        assert found.indices[mine].equal(graph.indices[own])
        assert found.weight(graph.weight)[mine].equal(graph.weight[own])


def test_what_was_sorted_for_one_graph_is_not_used_for_another(graph: plap.Graph, rows: Tensor) -> None:
    other = plap.data.csbm(phi=-0.5, n=NODES, f=2, d=3.0, seed=2).graph
    x = torch.randn(3, NODES, 8, generator=torch.Generator().manual_seed(0))
    p, mu = per_run(1.5, 1.5, 1.5), per_run(0.1, 0.1, 0.1)
    for which in (graph, other, graph.with_weight(2 * graph.weight), graph):
        for K in (2, 3):
            some = picked(propagate_unchecked(x, which, p, mu, K, rows=rows), rows)
            assert some.equal(picked(propagate_unchecked(x, which, p, mu, K), rows))
    moved = rows.clone()
    propagate_unchecked(x, graph, p, mu, 2, rows=moved)
    moved += 1
    some = picked(propagate_unchecked(x, graph, p, mu, 2, rows=moved), moved)
    assert some.equal(picked(propagate_unchecked(x, graph, p, mu, 2), moved))


def test_edge_weights_that_learn_need_all_rows(graph: plap.Graph, rows: Tensor) -> None:
    x = torch.randn(3, NODES, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p, mu = per_run(1.5, 1.0, 2.5), per_run(0.1, 0.1, 0.1)

    def slope(wanted: Tensor | None) -> Tensor:
        weight = graph.weight.double().requires_grad_()
        result = propagate_unchecked(x, graph.with_weight(weight), p, mu, 3, rows=wanted)
        return torch.autograd.grad(picked(result, rows).sum(), weight)[0]

    assert slope(rows).equal(slope(None))


def test_a_batch_of_cotangents(graph: plap.Graph, rows: Tensor) -> None:
    x = torch.randn(3, NODES, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    p, mu = per_run(1.0, 1.5, 2.5), per_run(0.1, 0.1, 0.1)
    at_rows = picked(propagate_unchecked(x, graph, p, mu, 2, rows=rows), rows)
    cotangents = torch.randn(4, *at_rows.shape, generator=torch.Generator().manual_seed(1))
    (together,) = torch.autograd.grad(at_rows, x, cotangents, is_grads_batched=True, retain_graph=True)
    for slope, cotangent in zip(together, cotangents, strict=True):
        assert slope.equal(torch.autograd.grad(at_rows, x, cotangent, retain_graph=True)[0])


def test_rows_that_change_before_the_backward_pass_are_noticed(graph: plap.Graph, rows: Tensor) -> None:
    x = torch.randn(3, NODES, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    moved = rows.clone()
    result = propagate_unchecked(x, graph, per_run(1.0, 1.5, 2.5), per_run(0.1, 0.1, 0.1), 2, rows=moved)
    moved += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        picked(result, rows).sum().backward()


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_share_the_rows_of_few_runs(
    graph: plap.Graph, rows: Tensor, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many runs as threads each takes its runs alone; with fewer, all rows of a large graph."""
    monkeypatch.setattr("plap.kernels.row_backend._FOR_ONE_THREAD", 0)
    x = torch.randn(3, NODES, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    p, mu = per_run(1.0, 1.5, 2.5), per_run(0.1, 0.1, 0.1)

    def run() -> tuple[Tensor, Tensor]:
        result = propagate_unchecked(x, graph, p, mu, 3, rows=rows)
        return picked(result, rows), torch.autograd.grad(picked(result, rows).square().sum(), x)[0]

    expected = run()
    torch.set_num_threads(threads)
    with patch.object(graph_rows, "_reach_of", wraps=graph_rows._reach_of) as built:
        rows = rows.clone()
        for got, wanted in zip(run(), expected, strict=True):
            assert got.equal(wanted)
    assert built.called == (threads == 2)


def test_a_memory_budget_takes_all_rows(graph: plap.Graph, rows: Tensor) -> None:
    x = torch.randn(3, NODES, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    p, mu = per_run(1.0, 1.5, 2.5), per_run(0.1, 0.1, 0.1)
    need = plap.memory_needed(NODES, graph.num_entries, 8, 4, runs=3)
    for budget in (need.usual, need.least):
        some = propagate_unchecked(x, graph, p, mu, 4, budget=budget, rows=rows)
        assert some.equal(propagate_unchecked(x, graph, p, mu, 4))


def test_weights_without_versions(graph: plap.Graph, rows: Tensor) -> None:
    with torch.inference_mode():
        weighted = graph.with_weight(graph.weight * 2)
    x = torch.randn(3, NODES, 8, generator=torch.Generator().manual_seed(0))
    p, mu = per_run(1.0, 1.5, 2.5), per_run(0.1, 0.1, 0.1)
    some = picked(propagate_unchecked(x, weighted, p, mu, 2, rows=rows), rows)
    assert some.equal(picked(propagate_unchecked(x, weighted, p, mu, 2), rows))


def test_many_wanted_rows_are_not_sorted(graph: plap.Graph) -> None:
    most = torch.arange(NODES // 2).expand(3, -1)
    assert graph_rows.reach_of(graph.indptr, graph.indices, graph.weight, most, 2) is None


def test_sorted_rows_do_not_fill_the_memory(graph: plap.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    each = [graph_rows.sort_rows(graph.indptr, graph.indices, torch.tensor([k]), 2).size for k in range(50)]
    monkeypatch.setattr(graph_rows, "_KEPT", 5 * max(each))
    for node in range(50):
        graph_rows.reach_of(graph.indptr, graph.indices, graph.weight, torch.tensor([[node]]), 2)
    known = graph_rows._SORTED.get(graph.indptr, OrderedDict)
    assert 1 <= len(known) < 50
    assert sum(part.size for part in known.values()) <= 5 * max(each)
    many = torch.arange(50)[:, None]
    assert graph_rows.reach_of(graph.indptr, graph.indices, graph.weight, many, 2) is None


def sparse_split(seed: int) -> plap.data.Split:
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(seed))
    train, val, test = torch.zeros(3, NODES, dtype=torch.bool).unbind()
    train[order[:8]], val[order[8:16]], test[order[16:]] = True, True, True
    return plap.data.Split("drawn", train, val, test)


def test_training_does_not_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of two splits, one of which ends earlier than the other."""
    data = plap.data.csbm(phi=0.5, n=NODES, f=10, d=3.0, seed=3)
    splits = [sparse_split(seed) for seed in (0, 1, 0)]
    configs = [
        RunConfig(p=p, K=3, max_epochs=epochs, patience=99, seed=1)
        for p, epochs in zip((1.5, 1.0, 2.5), (9, 4, 7), strict=True)
    ]

    def train() -> list[Tensor]:
        runs = train_runs(data.graph, data.x, data.y, configs, splits)
        return [run.logits for run in runs]

    some = train()
    monkeypatch.setattr(graph_rows, "_FEW", 0)
    for limited, full in zip(some, train(), strict=True):
        assert limited.equal(full)
