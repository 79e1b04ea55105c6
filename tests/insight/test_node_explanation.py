from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import plap
from plap.data.tasks import Multiclass, Regression
from plap.insight import neighbour_help
from plap.insight.node_explanation import explain_node, feature_means
from plap.penalties import MCP

TASK = Multiclass(("a", "b"))


def trained(**options: Any) -> tuple[plap.data.GraphData, plap.nn.PGNN]:
    data = plap.data.csbm(phi=0.5, n=120, f=5, d=6.0, seed=3)
    torch.manual_seed(1)
    model = plap.nn.PGNN(5, 8, 2, mu=0.2, K=3, dropout=0.0, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(30):
        optimizer.zero_grad()
        logits = model(data.x, data.graph)
        torch.nn.functional.cross_entropy(logits, data.y).backward()
        optimizer.step()
    return data, model.eval()


@pytest.mark.parametrize("options", [{"p": 1.0}, {"p": 1.5}, {"p": 2.0}, {"penalty": MCP(3.0)}], ids=repr)
def test_the_sum_is_the_prediction(options: dict[str, Any]) -> None:
    data, model = trained(**options)
    said = model(data.x, data.graph).softmax(1)
    average = feature_means(data.x)
    alone = model(average.expand(1, -1), plap.Graph.from_edges([], num_nodes=1)).softmax(1)[0]
    for node in (0, 50):
        found = explain_node([model], data.x, data.graph, node, TASK, hops=3)
        assert found is not None
        assert found.exact
        assert found.output == int(said[node].argmax())
        assert found.prediction == pytest.approx(float(said[node, found.output]), abs=1e-5)
        assert found.start == pytest.approx(float(alone[found.output]), abs=1e-4)
        assert abs(found.rest) < (0.02 if "p" in options else 0.06)
        neighbours = data.graph.indices[data.graph.indptr[node] : data.graph.indptr[node + 1]]
        assert found.neighbours.tolist() == neighbours.tolist()


def test_an_edge_counts_as_its_end_speaks() -> None:
    """Node 0 has no features of its own, one neighbour that is loud and one that is average."""
    x = torch.zeros(3, 2)
    x[1, 0], x[2] = 3.0, torch.tensor([0.5, 0.5])
    graph = plap.Graph.from_edges([(0, 1), (0, 2)])
    model = plap.nn.PGNN(2, 2, 2, p=2.0, mu=0.5, K=1).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.eye(2) if parameter.ndim == 2 else torch.zeros(2))
    found = explain_node([model], x, graph, 0, TASK, hops=1, output=0, average=torch.zeros(2))
    assert found is not None
    loud, average = found.shares.tolist()
    assert loud > 0.1
    assert abs(average) < 0.1 * loud
    assert found.features.tolist() == [0.0, 0.0]
    assert found.start == pytest.approx(0.5)


def test_members_are_averaged_and_sparse_features_are_taken() -> None:
    data, model = trained(p=1.5)
    _, other = trained(p=2.0)
    both = explain_node([model, other], data.x, data.graph, 4, TASK, hops=3, output=0)
    sparse = explain_node([model, other], data.x.to_sparse_csr(), data.graph, 4, TASK, hops=3, output=0)
    assert both is not None
    assert sparse is not None
    torch.testing.assert_close(sparse.features, both.features, rtol=1e-4, atol=1e-6)
    mean = torch.stack([m(data.x, data.graph).softmax(1)[4, 0] for m in (model, other)]).mean()
    assert both.prediction == pytest.approx(float(mean), abs=1e-5)


def test_large_surroundings_are_cut() -> None:
    data, model = trained(p=1.5)
    small = explain_node([model], data.x, data.graph, 4, TASK, hops=3, size=3000)
    assert small is not None
    assert not small.exact
    assert small.hops < 3
    assert explain_node([model], data.x, data.graph, 4, TASK, hops=3, size=20) is None


def test_numbers_are_in_their_unit_and_a_node_without_edges_has_features_only() -> None:
    data, _ = trained(p=1.5)
    graph = plap.Graph.from_edges([(1, 2)], num_nodes=120)
    model = plap.nn.PGNN(5, 8, 1, p=1.5, K=2).eval()
    task = Regression(centre=100.0, scale=10.0)
    found = explain_node([model], data.x, graph, 0, task, hops=2)
    assert found is not None
    assert found.neighbours.shape == (0,)
    assert found.prediction == pytest.approx(float(task.probabilities(model(data.x, graph))[0, 0]), rel=1e-5)
    assert found.start + float(found.features.sum()) == pytest.approx(found.prediction, abs=0.2)
    assert list(found.of_groups("aabbc")) == sorted("abc", key=lambda k: -abs(found.of_groups("aabbc")[k]))


def test_no_edges_is_what_the_page_calls_without_neighbours() -> None:
    data, model = trained(p=1.5)
    help_ = neighbour_help([model], data.x, data.graph)
    own: Tensor = data.x[9]
    found = explain_node([model], data.x, data.graph, 9, TASK, hops=3, average=own)
    assert found is not None
    assert found.start == pytest.approx(float(help_.without_edges[9]), abs=1e-4)
    assert bool((found.features == 0).all())
