"""Did the neighbours help: one pass without edges against removing each node's edges in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import plap
import problems
from plap.data import csbm
from plap.insight import neighbour_help
from plap.insight.reliance import column_importance
from plap.nn.gat import GAT


@pytest.mark.parametrize("make", [plap.nn.PGNN, plap.nn.baselines.GCN, GAT], ids=["pgnn", "gcn", "gat"])
def test_removing_only_the_edges_of_a_node_gives_the_same(make: type) -> None:
    graph = problems.random_graph(12, 0.4, seed=1)
    x = problems.features(12).float()
    module = make(3, 4, 2).eval()
    found = neighbour_help([module], x, graph)
    for node in range(12):
        others = (graph.edge_index != node).all(0)
        rest = plap.Graph.from_edge_index(graph.edge_index[:, others], graph.weight[others], 12)
        with torch.no_grad():
            alone = module(x, rest).softmax(1)[node]
        torch.testing.assert_close(found.without_edges[node], alone[found.label[node]])
        assert found.predicted_without[node] == alone.argmax()


def test_help_and_harm_are_counted_by_known_labels_only() -> None:
    graph = problems.random_graph(30, 0.2, seed=2)
    x = problems.features(30).float()
    modules = [plap.nn.PGNN(3, 8, 2, mu=0.01).eval() for _ in range(3)]
    with torch.no_grad():
        together = torch.stack([module(x, graph).softmax(1) for module in modules]).mean(0)
    y = torch.tensor([0, 1, -1] * 10)
    found = neighbour_help(modules, x, graph, y)
    assert found.known.tolist() == [True, True, False] * 10
    torch.testing.assert_close(found.label, torch.where(y >= 0, y, together.argmax(1)))
    torch.testing.assert_close(found.with_edges, together[torch.arange(30), found.label])
    right, alone = found.predicted_with == y, found.predicted_without == y
    assert torch.equal(found.helped, right & ~alone & (y >= 0))
    assert torch.equal(found.harmed, ~right & alone & (y >= 0))
    torch.testing.assert_close(found.gain, found.with_edges - found.without_edges)


def test_refusals() -> None:
    graph, x = problems.path(3), torch.eye(3)
    module = plap.nn.PGNN(3, 2, 2)
    with pytest.raises(plap.InputError, match="at least one trained model"):
        neighbour_help([], x, graph)
    with pytest.raises(plap.InputError, match="one integer class per node"):
        neighbour_help([module], x, graph, torch.ones(3, 2))
    with pytest.raises(plap.InputError, match="y has class 4, but the model has 2"):
        neighbour_help([module], x, graph, torch.tensor([0, 1, 4]))


DATA = csbm(phi=0.5, n=30, f=4, d=3.0, seed=0)
EVERY = torch.ones(30, dtype=torch.bool)


def importance(**change: Any) -> dict[str, float]:
    given: dict[str, Any] = {
        "members": [plap.nn.PGNN(4, 8, 2)], "x": DATA.x, "graph": DATA.graph, "groups": "aabb",
        "task": DATA.task, "y": DATA.y, "nodes": EVERY,
    }  # fmt: skip
    return column_importance(**(given | change))


def test_one_module_is_an_ensemble_of_one() -> None:
    module = plap.nn.PGNN(4, 8, 2)
    found, expected = (neighbour_help(members, DATA.x, DATA.graph) for members in (module, [module]))
    assert found.with_edges.equal(expected.with_edges)
    assert importance(members=module) == importance(members=[module])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"members": []}, "members must contain at least one trained model"),
        ({"members": ["pgnn"]}, "members must be torch.nn.Module objects, or a single one, not str"),
        ({"graph": DATA.graph.edge_index}, "graph must be a plap.Graph, not Tensor"),
        ({"x": np.ones((30, 4))}, "x must be a tensor or a SciPy sparse matrix, not ndarray"),
        ({"y": DATA.y.numpy()}, "y must"),
    ],
)
def test_refuses_by_name(change: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {
        "members": [plap.nn.PGNN(4, 8, 2)],
        "x": DATA.x,
        "graph": DATA.graph,
        "y": DATA.y,
    }
    with pytest.raises(plap.InputError, match=sentence):
        neighbour_help(**(given | change))
    with pytest.raises(plap.InputError, match=sentence):
        importance(**change)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"nodes": torch.arange(4)}, "nodes must be a boolean mask of the 30 nodes"),
        ({"seed": None}, "seed must be an integer of 0 or more, not None"),
        ({"groups": "abc"}, "groups must have one name per feature"),
    ],
)
def test_column_importance_refuses_by_name(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        importance(**change)
