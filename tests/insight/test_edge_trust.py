"""Edge trust: symmetric, blind to the edge it judges, and right where the answer is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import plap
import problems
from plap.data import csbm, perturb_edges
from plap.data.dataset import FixedSplits
from plap.errors import InputError
from plap.insight import (
    compare_trust,
    compare_trust_under_attack,
    edge_trust,
    feature_cosine,
    learned_weights,
    members_of,
    neighbour_jaccard,
    node_embeddings,
    pair_evidence,
)
from plap.insight.attack import with_random_edges
from plap.insight.members import as_members
from plap.insight.trust import _belief, _others_jaccard, _without_each_part, can_be_judged
from plap.insight.trust_comparison import SCORES
from plap.training import RunConfig, train_runs


def trained(data: plap.data.GraphData, graph: plap.Graph, **settings: float) -> list[torch.nn.Module]:
    configs = [RunConfig(seed=seed, max_epochs=40, patience=40, **settings) for seed in range(2)]  # type: ignore[arg-type]
    runs = train_runs(graph, data.x, data.y, configs, plap.data.split(data, preset="dense"))
    return members_of(runs, data.x.shape[1], 2)


@pytest.fixture(scope="module")
def noisy() -> tuple[plap.data.GraphData, torch.Tensor]:
    """Half of the edges of a homophilic graph are random."""
    data = csbm(phi=0.6, n=600, f=100, d=12.0, epsilon=8.0, seed=3)
    graph, random = perturb_edges(data.graph, 0.5, seed=1)
    return replace(data, graph=graph), random


def test_random_edges_are_trusted_less(noisy: tuple[plap.data.GraphData, torch.Tensor]) -> None:
    data, random = noisy
    once = data.graph.edges_once()
    trust = edge_trust(trained(data, data.graph, p=1.5), data.x, data.graph)
    assert bool((trust > 0).all())
    torch.testing.assert_close(trust, trust[data.graph.reverse_entries()])
    original = ~random[once]
    pairs = data.graph.edge_index[:, once]
    rivals = feature_cosine(data.x, pairs), neighbour_jaccard(data.graph, pairs)
    assert roc_auc_score(original, trust[once]) > max(roc_auc_score(original, each) for each in rivals) + 0.05


def test_edges_that_join_unlike_nodes_are_trusted_where_all_do() -> None:
    data = csbm(phi=-0.6, n=600, f=100, d=12.0, epsilon=8.0, seed=3)
    graph, random = perturb_edges(data.graph, 0.5, seed=1)
    once = graph.edges_once()
    trust = edge_trust(trained(replace(data, graph=graph), graph, p=2.5), data.x, graph)
    assert roc_auc_score(~random[once], trust[once]) > 0.6


def test_the_same_again_and_other_pairs_with_another_seed(
    noisy: tuple[plap.data.GraphData, torch.Tensor],
) -> None:
    data, _ = noisy
    members = [plap.nn.PGNN(100, 8, 2)]
    first, again, other = (edge_trust(members, data.x, data.graph, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_an_edge_is_judged_without_itself() -> None:
    graph = problems.random_graph(12, 0.4, seed=1)
    once = graph.edges_once()
    part = torch.arange(once.shape[0] + 5) % 3
    seen = np.zeros(part.shape[0], dtype=int)
    for chosen, rest in _without_each_part(graph, once, graph.reverse_entries()[once], part):
        seen += chosen
        left = {tuple(pair) for pair in rest.edge_index.T.tolist()}
        all_pairs = graph.edge_index[:, once].T.tolist()
        for pair, out in zip(all_pairs, chosen[: once.shape[0]], strict=True):
            assert (tuple(pair) in left) == (tuple(pair[::-1]) in left) == (not out)
        kept = torch.tensor([tuple(pair) in left for pair in graph.edge_index.T.tolist()])
        torch.testing.assert_close(rest.weight, graph.weight[kept])
        assert rest.digest == plap.Graph.from_edge_index(rest.edge_index, rest.weight, 12).digest
    assert seen.tolist() == [1] * part.shape[0]


@pytest.mark.parametrize("loops", [False, True])
def test_the_neighbours_that_are_evidence_do_not_tell_whether_there_is_an_edge(loops: bool) -> None:
    """The index of a pair is the same on the graph with its edge and on the graph without it."""
    pairs = torch.triu_indices(12, 12, 1)
    base = problems.random_graph(12, 0.4, seed=1).edge_index
    ring = torch.arange(12).expand(2, -1)
    for i, j in pairs.T.tolist():
        rest = base[:, ~(((base[0] == i) & (base[1] == j)) | ((base[0] == j) & (base[1] == i)))]
        found = []
        for joined in (False, True):
            edges = torch.cat([rest, torch.tensor([[i], [j]])], 1) if joined else rest
            edges = torch.cat([edges, ring], 1) if loops else edges
            graph = plap.Graph.from_edge_index(edges, num_nodes=12, self_loops="keep")
            found.append(float(_others_jaccard(graph, torch.tensor([[i], [j]]), int(joined))[0]))
        plain = neighbour_jaccard(plap.Graph.from_edge_index(rest, num_nodes=12), torch.tensor([[i], [j]]))
        assert found == [float(plain[0])] * 2


def test_self_loops_do_not_make_false_edges_trusted() -> None:
    """Features and edges that say nothing: every edge is as good as a pair without one."""
    edges = problems.random_graph(150, 0.05, seed=2).edge_index
    x = torch.randn(150, 6, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    member = plap.nn.PGNN(6, 8, 2)
    looped = torch.cat([edges, torch.arange(150).expand(2, -1)], 1)
    medians = []
    for given in (edges, looped):
        graph = plap.Graph.from_edge_index(given, num_nodes=150, self_loops="keep")
        medians.append(float(edge_trust(member, x, graph).nanmedian()))
    assert medians == pytest.approx([1.0, 1.0], abs=0.5)


@pytest.mark.parametrize("scale", [1e20, 1e25, 1e-25])
def test_features_of_any_scale_are_judged(scale: float) -> None:
    data = csbm(phi=0.5, n=60, f=8, d=5.0, seed=1)
    torch.manual_seed(0)
    trust = edge_trust([plap.nn.PGNN(8, 8, 2)], data.x * scale, data.graph)
    assert bool(trust.isfinite().all())


def test_evidence_is_symmetric_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems.GENERIC["isolated_node"]()
    torch.manual_seed(0)  # with some weights, ReLU leaves nothing of two nodes
    member = plap.nn.PGNN(3, 5, 2, p=1.5, K=4).double()
    pairs = torch.triu_indices(4, 4, 1)
    found = pair_evidence(member, problem.x, problem.graph, pairs)
    assert found.shape == (6, 3 * 4 + 1)
    assert bool(found.isfinite().all())
    torch.testing.assert_close(found, pair_evidence(member, problem.x, problem.graph, pairs.flip(0)))
    start = torch.relu(member.lin(problem.x)).detach()
    torch.testing.assert_close(found[:, 0], torch.cosine_similarity(start[pairs[0]], start[pairs[1]]))
    joined = (problem.graph.edge_index == torch.tensor([[0], [1]])).all(0)
    w = problem.graph.weight[joined]
    gradient = plap.gradient(start, problem.graph)[joined].norm() / w.sqrt()
    torch.testing.assert_close(found[0, 2], -gradient.log().squeeze())
    monkeypatch.setattr("plap.insight.trust._STATES_AT_A_TIME", 2)
    torch.testing.assert_close(pair_evidence(member, problem.x, problem.graph, pairs), found)


def test_tiny_and_odd_graphs() -> None:
    x = torch.eye(4)
    members = [plap.nn.PGNN(4, 3, 2)]
    one = plap.Graph.from_edges([(0, 1)], num_nodes=4)
    assert edge_trust(members, x, one).isfinite().tolist() == [True, True]
    loop = plap.Graph.from_edges([(0, 1), (2, 2)], num_nodes=4, self_loops="keep")
    assert edge_trust(members, x, loop).isnan().tolist() == [False, False, True]
    same = edge_trust(members, torch.ones(4, 4), plap.Graph.from_edges([(0, 1), (1, 2)], num_nodes=4))
    assert bool(same.isfinite().all())


@pytest.mark.parametrize(
    ("graph", "judged"),
    [(problems.complete(4), False), (problems.no_edges().graph, False), (problems.path(3), True)],
)
def test_what_cannot_be_compared(graph: plap.Graph, judged: bool) -> None:
    assert can_be_judged(graph) == judged
    if not judged:
        with pytest.raises(plap.InputError, match="the graph must have both"):
            edge_trust([plap.nn.PGNN(2, 2, 2)], torch.ones(graph.num_nodes, 2), graph)


def test_refusals() -> None:
    graph, x = problems.path(5), torch.eye(5)
    with pytest.raises(plap.InputError, match="defined for pGNN, MLP and deep pGNN, not for GCN"):
        edge_trust([plap.nn.baselines.GCN(5, 2, 2)], x, graph)
    with pytest.raises(plap.InputError, match="folds must be an integer of 2 or more"):
        edge_trust([plap.nn.PGNN(5, 2, 2)], x, graph, folds=1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"members": []}, "members must contain at least one trained model"),
        ({"members": [3]}, "members must be torch.nn.Module objects, or a single one, not int"),
        ({"members": None}, "members must be torch.nn.Module objects, or a single one, not NoneType"),
        ({"graph": problems.path(5).edge_index}, "graph must be a plap.Graph, not Tensor"),
        ({"x": np.eye(5)}, "x must be a tensor or a SciPy sparse matrix, not ndarray"),
        ({"x": torch.ones(5)}, r"x must have shape \[N, F\], not \[5\]"),
        ({"x": torch.eye(4)}, "x has 4 rows but graph has 5 nodes"),
        ({"sample": 0}, "sample must be an integer of 1 or more, not 0"),
        ({"sample": 1.5}, "sample must be an integer of 1 or more, not 1.5"),
    ],
)
def test_refuses_by_name(change: dict[str, Any], sentence: str) -> None:
    arguments = {"members": [plap.nn.PGNN(5, 2, 2)], "x": torch.eye(5), "graph": problems.path(5)}
    with pytest.raises(plap.InputError, match=sentence):
        edge_trust(**(arguments | change))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrap", [tuple, iter, torch.nn.ModuleList, lambda members: members[0]])
def test_members_are_any_collection_or_one_module(wrap: Callable[[list[torch.nn.Module]], Any]) -> None:
    module, graph, x = plap.nn.PGNN(5, 2, 2), problems.path(5), torch.eye(5)
    assert as_members(wrap([module])) == [module]
    expected = edge_trust([module], x, graph)
    assert edge_trust(wrap([module]), x, graph).equal(expected)


@pytest.mark.parametrize(
    "ask",
    [learned_weights, node_embeddings, lambda m, x, graph: pair_evidence(m, x, graph, torch.ones(2, 1))],
)
def test_one_member_refuses_a_graph_by_name(ask: Callable[..., torch.Tensor]) -> None:
    with pytest.raises(plap.InputError, match=r"graph must be a plap\.Graph, not Tensor"):
        ask(plap.nn.PGNN(5, 2, 2), torch.eye(5), problems.path(5).edge_index)


DATA = csbm(phi=0.5, n=20, f=4, d=3.0, seed=0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: compare_trust_under_attack(DATA, DATA.graph), "attacked must be a .*GraphData, not Graph"),  # type: ignore[arg-type]
        (lambda: compare_trust_under_attack(DATA.graph, DATA), "clean must be a .*GraphData, not Graph"),  # type: ignore[arg-type]
        (lambda: compare_trust(DATA.graph, 0.2), "data must be a plap.data.GraphData, not Graph"),  # type: ignore[arg-type]
        (lambda: compare_trust(DATA, 0.2, members=0), "members must be an integer of 1 or more, not 0"),
        (
            lambda: compare_trust_under_attack(DATA, DATA, members=plap.nn.PGNN(4, 2, 2)),  # type: ignore[arg-type]
            "members must be an integer of 1 or more, not a PGNN",
        ),
    ],
)
def test_comparisons_refuse_by_name(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        call()


def test_comparison_scores_everything_against_the_known_noise() -> None:
    data = csbm(phi=0.6, n=200, f=30, d=8.0, seed=3)
    short = {"max_epochs": 10, "patience": 10}
    found = compare_trust(
        data, 0.5, preset="dense", members=2, config=RunConfig(p=1.5, **short),  # type: ignore[arg-type]
        gat=RunConfig(model="gat", hidden=2, heads=2, **short),  # type: ignore[arg-type]
    )  # fmt: skip
    assert list(found.auc) == list(SCORES)
    assert all(0 <= auc <= 1 for auc in found.auc.values())
    graph, random = perturb_edges(data.graph, 0.5, 0)
    once = graph.edges_once()
    x = data.x.to_dense()
    cosine = torch.cosine_similarity(*x[graph.edge_index[:, once]])
    assert found.auc["cosine"] == pytest.approx(roc_auc_score(~random[once], cosine), abs=1e-3)


def test_a_sample_of_edges_is_judged_much_as_all_are(noisy: tuple[plap.data.GraphData, torch.Tensor]) -> None:
    data, random = noisy
    members = trained(data, data.graph, p=1.5)
    once = data.graph.edges_once()
    every, trust = (edge_trust(members, data.x, data.graph, sample=count) for count in (None, 1000))
    judged = once[~trust[once].isnan()]
    assert judged.shape[0] == 1000
    torch.testing.assert_close(trust, trust[data.graph.reverse_entries()], equal_nan=True)
    right = ~random[judged]
    assert roc_auc_score(right, trust[judged]) > roc_auc_score(right, every[judged]) - 0.05


def test_added_edges_are_found_on_an_attacked_graph() -> None:
    clean = plap.data.csbm(phi=0.75, n=160, f=20, d=8.0, seed=3)
    graph = with_random_edges(clean.graph, clean.graph.num_edges // 4, seed=1)
    parts = plap.data.split(clean, seed=0)
    masks = (mask.unsqueeze(1) for mask in (parts.train, parts.val, parts.test))
    attacked = replace(clean, graph=graph, splits=FixedSplits(*masks))
    config = RunConfig(penalty="mcp", gamma=1.0, detach_weights=True, max_epochs=20)
    gat = RunConfig("gat", hidden=4, heads=2, max_epochs=20)
    found = compare_trust_under_attack(clean, attacked, members=2, config=config, gat=gat)
    assert found.rate == pytest.approx(0.2, abs=0.01)
    assert set(found.auc) == set(SCORES)
    assert found.auc["trust"] > 0.55
    with pytest.raises(InputError, match="the same nodes"):
        compare_trust_under_attack(plap.data.csbm(phi=0.75, n=20, f=20, d=4.0), attacked)


def test_only_penalties_that_leave_edges_out_weigh_the_examples() -> None:
    data = plap.data.csbm(phi=0.5, n=60, f=8, seed=2)
    for penalty, doubts in ((plap.penalties.MCP(0.1), True), (plap.penalties.Huber(0.1), False)):
        member = plap.nn.PGNN(8, 4, 2, penalty=penalty)
        belief = _belief([member], data.x, data.graph)
        assert bool((belief < 1).any()) == doubts
        assert bool(((belief > 0) & (belief <= 1)).all())


def test_an_edge_counts_as_far_as_it_does_for_the_members_on_average() -> None:
    data = plap.data.csbm(phi=0.5, n=60, f=8, seed=2)
    doubting = plap.nn.PGNN(8, 4, 2, penalty=plap.penalties.MCP(0.1))
    trusting = [plap.nn.PGNN(8, 4, 2, p=1.5) for _ in range(3)]
    alone, beside = (_belief(members, data.x, data.graph) for members in ([doubting], [doubting, *trusting]))
    doubted = alone < 0.5
    assert doubted.any()
    assert bool((beside[doubted] >= 0.75).all())
    assert bool((beside[doubted] < 1).all())
