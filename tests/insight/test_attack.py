"""The adaptive attack: budgets are kept, models fall, and what cannot be attacked is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import plap
import problems
import tiny_training as tiny
from plap.data.tasks import Multiclass
from plap.insight import adaptive_attack, attack, attack_curve, members_of
from plap.insight.attack import changed_edges, retraining, with_random_edges
from plap.nn.adjacency import differentiable_adjacency, normalized_adjacency
from plap.training import RunConfig, train_runs

DATA = plap.data.csbm(phi=0.7, n=120, f=12, d=6.0, seed=3)
SPLIT = plap.data.split(DATA, seed=1)
TEST = SPLIT.test
INDEX = TEST.nonzero().squeeze(1)


def trained(*configs: RunConfig) -> list[torch.nn.Module]:
    runs = train_runs(DATA.graph, DATA.x, DATA.y, [c.with_values(max_epochs=40) for c in configs], SPLIT)
    return members_of(runs, DATA.x.shape[1], 2)


PGNN = RunConfig(p=1.5, lr=0.05)
MCP = RunConfig(penalty="mcp", gamma=2.0, detach_weights=True, lr=0.05)


@pytest.mark.parametrize(
    "config",
    [
        PGNN,
        MCP,
        RunConfig("gcn"),
        RunConfig("sage"),
        RunConfig("appnp", K=2),
        RunConfig("rung", gamma=3.0, K=3),
        RunConfig("elastic-gnn", K=3),
    ],
)
def test_an_attack_keeps_its_budget_and_does_not_help(config: RunConfig) -> None:
    members = trained(config)
    curve = attack_curve(members, DATA.x, DATA.graph, DATA.y, TEST, (0.02, 0.2), steps=8)
    weak, strong = curve.points
    assert weak.changed <= int(0.02 * DATA.graph.num_edges + 0.5)
    assert strong.changed <= int(0.2 * DATA.graph.num_edges + 0.5)
    assert strong.accuracy <= curve.clean
    assert (curve.nodes, curve.poisoning, curve.local) == (INDEX.numel(), False, False)


def test_it_is_stronger_than_random_edges_and_can_be_repeated() -> None:
    members = trained(PGNN, PGNN.with_values(seed=1))
    curve = attack_curve(members, DATA.x, DATA.graph, DATA.y, TEST, (0.3,), steps=30)
    assert curve.points[0].accuracy < curve.points[0].random
    assert curve == attack_curve(members, DATA.x, DATA.graph, DATA.y, TEST, (0.3,), steps=30)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_may_be_turned_off_around_an_attack(mode: Callable[[], Any]) -> None:
    members = trained(PGNN)
    expected = attack_curve(members, DATA.x, DATA.graph, DATA.y, TEST, (0.1,), steps=4)
    with mode():
        assert attack_curve(members, DATA.x, DATA.graph, DATA.y, TEST, (0.1,), steps=4) == expected


def test_members_are_left_as_they_were() -> None:
    (member,) = trained(MCP)
    before = {name: value.clone() for name, value in member.state_dict().items()}
    adaptive_attack([member], DATA.x, DATA.graph, DATA.y, INDEX, 3, steps=4)
    assert isinstance(member, plap.nn.PGNN)
    assert member.conv.detach_weights
    assert all(torch.equal(value, before[name]) for name, value in member.state_dict().items())


def test_single_nodes() -> None:
    few = torch.zeros_like(TEST)
    few[INDEX[:3]] = True
    curve = attack_curve(trained(PGNN), DATA.x, DATA.graph, DATA.y, few, (1.0,), local=True, steps=6)
    degrees = torch.diff(DATA.graph.indptr)[INDEX[:3]].double()
    assert curve.local
    assert curve.points[0].changed <= degrees.mean()
    assert isinstance(curve.points[0].changed, float)  # a mean that is not rounded: 0 is 0


def test_an_attack_at_one_node_changes_its_edges_alone() -> None:
    node = int(INDEX[0])
    target = torch.tensor([node])
    attacked = adaptive_attack(trained(PGNN), DATA.x, DATA.graph, DATA.y, target, 4, at=node, steps=6)
    assert 1 <= changed_edges(DATA.graph, attacked) <= 4
    rest = [{tuple(e) for e in g.edge_index.T.tolist() if node not in e} for g in (DATA.graph, attacked)]
    assert rest[0] == rest[1]
    with pytest.raises(plap.InputError, match="less than the 119 pairs"):
        adaptive_attack(trained(PGNN), DATA.x, DATA.graph, DATA.y, target, 119, at=node)


def test_poisoning_trains_anew() -> None:
    graphs, made = [], []

    def retrain(graph: plap.Graph) -> list[torch.nn.Module]:
        graphs.append(graph)
        made.append(retraining(PGNN.with_values(max_epochs=5), DATA.x, DATA.y, SPLIT, 2)(graph))
        return list(made[-1])

    curve = attack_curve(trained(PGNN), DATA.x, DATA.graph, DATA.y, TEST, (0.05,), retrain=retrain, steps=4)
    assert curve.poisoning
    assert len(graphs) == 3  # as it is, after the attack, and with random edges
    assert [len(members) for members in made] == [2, 2, 2]
    assert [changed_edges(DATA.graph, g) for g in graphs[:2]] == [0, curve.points[0].changed]
    with torch.no_grad():
        said = torch.stack([member(DATA.x, DATA.graph).softmax(1) for member in made[0]]).mean(0)
    assert curve.clean == pytest.approx(float((said.argmax(1) == DATA.y)[TEST].double().mean()))


def test_random_edges() -> None:
    graph = plap.Graph.from_edges([(0, 1), (1, 2)], num_nodes=5)
    more = with_random_edges(graph, 4, seed=1)
    assert more.num_edges == 6
    assert changed_edges(graph, more) == 4
    at_one = with_random_edges(graph, 9, seed=1, at=torch.tensor([1]))
    assert at_one.num_edges == 4  # nodes 3 and 4 were left


def test_the_adjacency_that_can_be_differentiated() -> None:
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]])
    graph = plap.Graph.from_edge_index(edges, torch.tensor([1.0, 0.5, 2.0, 3.0]), 4, self_loops="keep")
    expected = torch.from_numpy(normalized_adjacency(graph).toarray())
    torch.testing.assert_close(
        differentiable_adjacency(graph).to_dense().double(), expected, rtol=1e-6, atol=1e-7
    )
    x = torch.randn(4, 3, dtype=torch.float64)
    model = plap.nn.baselines.GCN(3, 4, 2, dropout=0.0).double()
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])

    def logits(weight: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = model(x, index, torch.stack([weight[0], weight[0], weight[1], weight[1]]))
        return result

    assert torch.autograd.gradcheck(
        logits, (torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True),)
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"members": []}, "members"),
        ({"graph": DATA.graph.edge_index}, "graph must be a plap.Graph, not Tensor"),
        ({"x": DATA.x.numpy()}, "x must be a tensor or a SciPy sparse matrix, not ndarray"),
        ({"x": DATA.x[:50]}, "x has 50 rows but graph has 120 nodes"),
        ({"y": DATA.y.float()}, "y must be an int64 tensor with the class of each of the 120 nodes"),
        ({"y": DATA.y[:50]}, "y must be an int64 tensor with the class of each of the 120 nodes"),
        ({"nodes": [1, 2]}, "nodes must be a boolean mask of the 120 nodes"),
        ({"budgets": (0.1, 50.0)}, r"budgets\[1\] must be a number above 0 and of at most 1, not 50.0"),
        ({"budgets": 2}, "budgets must be a number above 0 and of at most 1, not 2"),
        ({"budgets": "0.1"}, "budgets must be a number above 0 and of at most 1, not '0.1'"),
        ({"budgets": ("0.1",)}, r"budgets\[0\] must be a number above 0 and of at most 1, not '0.1'"),
        ({"budgets": None}, "budgets must be a number above 0 and of at most 1, not None"),
        ({"steps": 1}, "steps must be an integer of 2 or more, not 1"),
        ({"local": "no"}, "local must be True or False, not 'no'"),
        ({"retrain": True}, "retrain must be a function of a graph, not bool"),
        ({"retrain": lambda g: None}, "what retrain returns must be torch.nn.Module objects"),
        ({"retrain": lambda g: []}, "what retrain returns must contain at least one trained model"),
        ({"y": DATA.y + 1}, f"node {int(INDEX[DATA.y[INDEX] == 1][0])} has the class 2, but PGNN has only 2"),
        ({"members": plap.nn.PGNN(12, 4, 1)}, "PGNN must have an output per class and at least two, not 1"),
        ({"seed": "a"}, "seed must be an integer"),
        ({"nodes": torch.zeros(120, dtype=torch.bool)}, "at least one node"),
        ({"nodes": torch.tensor([50, 60])}, "nodes must be a boolean mask of the 120 nodes"),
        ({"nodes": TEST[:100]}, "nodes must be a boolean mask of the 120 nodes"),
        ({"y": torch.where(TEST, -1, DATA.y)}, f"the label of node {int(INDEX[0])} is unknown"),
        ({"budgets": (0.0,)}, r"budgets\[0\] must be"),
        ({"local": True, "retrain": lambda g: []}, "not on single nodes"),
        ({"members": [plap.nn.baselines.MLP(12, 4, 2)]}, "MLP does not weigh edges"),
    ],
)
def test_bad_input_is_one_sentence(change: dict[str, object], sentence: str) -> None:
    arguments = {
        "members": [plap.nn.PGNN(12, 4, 2)], "x": DATA.x, "graph": DATA.graph, "y": DATA.y, "nodes": TEST,
        "budgets": (0.05,), "steps": 3, **change,
    }  # fmt: skip
    with pytest.raises(plap.InputError, match=sentence):
        attack_curve(**arguments)  # type: ignore[arg-type]


def test_what_an_attack_on_given_nodes_refuses() -> None:
    def attack(nodes: object = INDEX, y: torch.Tensor = DATA.y, **options: object) -> plap.Graph:
        model = plap.nn.PGNN(12, 4, 2)
        return adaptive_attack(model, DATA.x, DATA.graph, y, nodes, 2, steps=3, **options)  # type: ignore[arg-type]

    with pytest.raises(plap.InputError, match=f"the label of node {int(INDEX[0])} is unknown"):
        attack(y=torch.full_like(DATA.y, -1))
    with pytest.raises(plap.InputError, match="nodes has 500, but there are only the nodes 0 to 119"):
        attack(torch.tensor([3, 500]))
    with pytest.raises(plap.InputError, match="the numbers of at least one node"):
        attack(INDEX[:0])
    for at in (-1, 120, 1.5):
        with pytest.raises(plap.InputError, match="at must be an integer"):
            attack(at=at)


def test_scipy_features_and_a_single_module() -> None:
    model = plap.nn.PGNN(12, 4, 2)
    sparse = scipy.sparse.csr_array(DATA.x.numpy())
    found = [attack_curve(model, x, DATA.graph, DATA.y, TEST, 0.05, steps=3) for x in (DATA.x, sparse)]
    assert found[0].points[0].changed > 0
    assert found[0].nodes == found[1].nodes
    assert found[1].points[0].accuracy == pytest.approx(found[0].points[0].accuracy, abs=0.05)


def test_the_task_decides_what_probabilities_speak_for() -> None:
    model = trained(PGNN)
    task = Multiclass(("a", "b"), positive=1, threshold=1.0)  # nothing is called b
    curve = attack_curve(model, DATA.x, DATA.graph, DATA.y, TEST, (0.05,), steps=3, task=task)
    assert curve.clean == pytest.approx(float((DATA.y[TEST] == 0).double().mean()))


@pytest.mark.parametrize("one", [0.05, np.float32(0.05), torch.tensor(0.05), np.array([0.05]), iter([0.05])])
def test_a_single_budget_or_any_collection_of_them(one: Any) -> None:
    curve = attack_curve(plap.nn.PGNN(12, 4, 2), DATA.x, DATA.graph, DATA.y, TEST, one, steps=2)
    assert [point.budget for point in curve.points] == pytest.approx([0.05])


def test_a_budget_of_all_pairs_leaves_one_as_it_is() -> None:
    graph, every = problems.complete(4), torch.ones(4, dtype=torch.bool)
    x, y = torch.eye(4), torch.tensor([0, 1, 0, 1])
    curve = attack_curve(plap.nn.PGNN(4, 4, 2), x, graph, y, every, 1.0, steps=3)
    assert curve.points[0].changed <= 5


def test_retraining_may_give_a_single_module() -> None:
    (model,) = trained(PGNN)
    curve = attack_curve(model, DATA.x, DATA.graph, DATA.y, TEST, 0.02, retrain=lambda g: model, steps=2)
    assert curve.poisoning
    assert curve.clean == attack_curve(model, DATA.x, DATA.graph, DATA.y, TEST, 0.02, steps=2).clean


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"graph": plap.Graph.from_edges([(0, 1), (1, 2)], weight=[2.0, 1.0])}, "neither weights nor loops"),
        (
            {"graph": plap.Graph.from_edges([(0, 1), (1, 2), (2, 2)], self_loops="keep")},
            "neither weights nor loops",
        ),
        ({"budgets": (0.1, 7.0)}, r"budgets\[1\] must be a number"),
        ({"members": plap.nn.PGNN(3, 4, 1)}, "PGNN must have an output per class"),
        ({"y": torch.tensor([0, 1, 2])}, "node 2 has the class 2"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_nothing_is_trained_before_all_is_checked(change: dict[str, Any], sentence: str) -> None:
    def retrain(graph: plap.Graph) -> list[torch.nn.Module]:
        raise AssertionError("trained too early")

    arguments = {
        "members": plap.nn.PGNN(3, 4, 2), "x": torch.eye(3), "graph": problems.path(3),
        "y": torch.tensor([0, 1, 0]), "nodes": torch.ones(3, dtype=torch.bool), "budgets": 0.1, **change,
    }  # fmt: skip
    with pytest.raises(plap.InputError, match=sentence):
        attack_curve(**arguments, retrain=retrain)


def test_as_many_random_edges_are_added_as_the_attack_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack may change fewer edges than it is allowed to."""
    monkeypatch.setattr(attack, "adaptive_attack", lambda members, x, graph, *_, **__: added(graph, 2))
    graphs: list[plap.Graph] = []

    def retrain(graph: plap.Graph) -> torch.nn.Module:
        graphs.append(graph)
        return model

    model = plap.nn.PGNN(12, 4, 2)
    curve = attack_curve(model, DATA.x, DATA.graph, DATA.y, TEST, 0.5, retrain=retrain)
    assert curve.points[0].changed == 2
    assert [changed_edges(DATA.graph, graph) for graph in graphs] == [0, 2, 2]


def added(graph: plap.Graph, count: int) -> plap.Graph:
    return with_random_edges(graph, count, seed=7)


def test_classes_that_the_model_does_not_have_are_named() -> None:
    y = torch.where(TEST, 5, DATA.y)
    with pytest.raises(plap.InputError, match=f"node {int(INDEX[0])} has the class 5, but PGNN has only 2"):
        adaptive_attack(plap.nn.PGNN(12, 4, 2), DATA.x, DATA.graph, y, INDEX, 2, steps=3)
    with pytest.raises(plap.InputError, match="PGNN must have an output per class and at least two, not 1"):
        adaptive_attack(plap.nn.PGNN(12, 4, 1), DATA.x, DATA.graph, DATA.y * 0, INDEX, 2, steps=3)


def test_a_weighted_graph_is_refused() -> None:
    graph = plap.Graph.from_edges([(0, 1), (1, 2)], weight=[2.0, 1.0])
    with pytest.raises(plap.InputError, match="neither weights nor loops"):
        adaptive_attack(
            [plap.nn.PGNN(2, 4, 2)], torch.randn(3, 2), graph, tiny.data().y[:3], torch.tensor([0]), 1
        )


def test_a_node_that_is_joined_to_all_others_can_be_attacked() -> None:
    star = plap.Graph.from_edges([(0, k) for k in range(1, 12)])
    hub = torch.arange(12) == 0
    x, y = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 2
    curve = attack_curve(plap.nn.PGNN(3, 4, 2), x, star, y, hub, 1.0, local=True, steps=3)
    assert curve.points[0].changed <= 10


def test_a_budget_of_no_edge_is_the_clean_score_after_retraining_too() -> None:
    class Always(torch.nn.Module):
        def __init__(self, kind: int) -> None:
            super().__init__()
            self.kind = kind

        def forward(self, x: torch.Tensor, graph: plap.Graph) -> torch.Tensor:
            return torch.eye(2)[self.kind].expand(x.shape[0], 2)

    ring = plap.Graph.from_edges([(k, (k + 1) % 8) for k in range(8)])
    y = torch.tensor([0] * 6 + [1] * 2)
    every = torch.ones(8, dtype=torch.bool)
    curve = attack_curve(
        [Always(0)], torch.zeros(8, 2), ring, y, every, (0.01,), retrain=lambda graph: [Always(1)]
    )
    assert (curve.clean, curve.points[0].accuracy, curve.points[0].random) == (0.25, 0.25, 0.25)
