from __future__ import annotations

from typing import Any

import pytest
import torch

import plap
from plap.data.tasks import Multiclass, Regression
from plap.insight import neighbour_help, node_explanation
from plap.insight.node_explanation import NodeExplanation, explain_node, feature_means
from plap.penalties import MCP

TASK = Multiclass(("a", "b"))


@pytest.fixture(scope="module")
def data() -> plap.data.GraphData:
    return plap.data.csbm(phi=0.5, n=120, f=5, d=6.0, seed=3)


def model(seed: int = 1, outputs: int = 2, **options: Any) -> plap.nn.PGNN:
    torch.manual_seed(seed)
    return plap.nn.PGNN(5, 8, outputs, mu=0.2, K=3, **options).eval()


def explained(
    members: list[plap.nn.PGNN], data: plap.data.GraphData, node: int, **options: Any
) -> NodeExplanation:
    found = explain_node(members, data.x, data.graph, node, TASK, hops=3, **options)
    assert found is not None
    return found


def without_edge(graph: plap.Graph, node: int, other: int) -> plap.Graph:
    source, target = graph.edge_index
    kept = ~(((source == node) & (target == other)) | ((source == other) & (target == node)))
    return plap.Graph.from_edge_index(graph.edge_index[:, kept], num_nodes=graph.num_nodes)


@pytest.mark.parametrize("options", [{"p": 1.5}, {"p": 2.0}, {"penalty": MCP(3.0)}], ids=repr)
def test_every_number_is_a_prediction_on_the_changed_graph(
    data: plap.data.GraphData, options: dict[str, Any]
) -> None:
    members = [model(1, **options), model(2, **options)]

    def said(x: torch.Tensor, graph: plap.Graph) -> float:
        return float(torch.stack([m(x, graph).softmax(1)[7, found.output] for m in members]).mean())

    found = explained(members, data, 7)
    near = pytest.approx
    assert found.exact
    assert found.prediction == near(said(data.x, data.graph), abs=1e-5)
    neighbours = data.graph.indices[data.graph.indptr[7] : data.graph.indptr[8]].tolist()
    assert sorted(found.neighbours) == neighbours
    assert found.num_neighbours == len(neighbours)
    for other, value in found.neighbours.items():
        assert value == near(said(data.x, without_edge(data.graph, 7, other)), abs=1e-5)
    alone = plap.Graph.from_edges([], num_nodes=120)
    assert found.without_edges == near(said(data.x, alone), abs=1e-5)
    for k in range(5):
        changed = data.x.clone()
        changed[7, k] = data.x[:, k].mean()
        assert found.features[f"feature {k}"] == near(said(changed, data.graph), abs=1e-5)
    changed = data.x.clone()
    changed[7] = data.x.mean(0)
    assert found.average_features == near(said(changed, data.graph), abs=1e-5)
    for values in (found.features, found.neighbours):
        effects = [abs(value - found.prediction) for value in values.values()]
        assert effects == sorted(effects, reverse=True)


def test_sparse_features_and_small_batches_change_nothing(data: plap.data.GraphData) -> None:
    members = [model()]
    whole = explained(members, data, 4, output=0)
    tight = explained(members, data, 4, output=0, size=14_000)
    assert tight.exact
    sparse = explain_node(members, data.x.to_sparse_csr(), data.graph, 4, TASK, hops=3, output=0)
    assert sparse is not None
    for other in (tight, sparse):
        assert other.neighbours == pytest.approx(whole.neighbours, abs=1e-5)
        assert other.features == pytest.approx(whole.features, abs=1e-5)
    torch.testing.assert_close(feature_means(data.x.to_sparse_csr()), feature_means(data.x))


def test_large_surroundings_are_cut(data: plap.data.GraphData) -> None:
    small = explained([model()], data, 4, size=3000)
    assert not small.exact
    assert 0 < small.hops < 3
    assert explain_node([model()], data.x, data.graph, 4, TASK, hops=3, size=20) is None


def test_of_many_neighbours_and_features_the_telling_ones_are_taken(
    data: plap.data.GraphData, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = explained([model()], data, 7)
    monkeypatch.setattr(node_explanation, "_MOST", 3)
    few = explained([model()], data, 7)
    assert few.num_neighbours == every.num_neighbours > 3
    assert len(few.neighbours) == len(few.features) == 3
    assert next(iter(few.neighbours)) in list(every.neighbours)[:3]
    away = (data.x[7] - data.x.mean(0)).abs().topk(3).indices.tolist()
    assert sorted(few.features) == sorted(f"feature {k}" for k in away)


def test_groups_change_together_and_numbers_have_their_unit(data: plap.data.GraphData) -> None:
    graph = plap.Graph.from_edges([(1, 2)], num_nodes=120)
    number, task = model(outputs=1), Regression(centre=100.0, scale=10.0)
    found = explain_node([number], data.x, graph, 0, task, hops=3, groups="aabba")
    assert found is not None
    assert found.neighbours == {}
    assert found.without_edges == found.prediction
    said = task.probabilities(number(data.x, graph))
    assert found.prediction == pytest.approx(float(said[0, 0]), rel=1e-5)
    changed = data.x.clone()
    changed[0, [0, 1, 4]] = data.x.mean(0)[[0, 1, 4]]
    assert found.features["a"] == pytest.approx(float(task.probabilities(number(changed, graph))[0, 0]))
    with pytest.raises(plap.InputError, match="groups must have one name per feature, 5, not 2"):
        explain_node([number], data.x, graph, 0, task, hops=3, groups="ab")


def test_no_edges_is_what_the_page_calls_without_neighbours(data: plap.data.GraphData) -> None:
    members = [model()]
    help_ = neighbour_help(members, data.x, data.graph)
    assert explained(members, data, 9).without_edges == pytest.approx(float(help_.without_edges[9]), abs=1e-5)


def test_modules_are_explained_in_evaluation_mode_and_left_as_they_were(data: plap.data.GraphData) -> None:
    training = model().train()
    found = explain_node(training, data.x, data.graph, 4, TASK, hops=3)
    assert training.training
    assert found is not None
    with torch.no_grad():
        said = TASK.probabilities(training.eval()(data.x, data.graph))
    assert found.prediction == pytest.approx(float(said[4, found.output]), abs=1e-5)


def test_lengths_that_are_measured_on_the_surroundings_are_not_exact(data: plap.data.GraphData) -> None:
    for options in ({"penalty": plap.penalties.MCP(plap.penalties.Quantile(0.5))}, {"unit": "auto"}):
        own = plap.nn.PGNN(data.x.shape[1], 4, 2, K=2, **options)
        found = explain_node([own], data.x, data.graph, 4, TASK, hops=2)
        assert found is not None
        assert not found.exact


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"hops": 1.5}, "hops must be an integer"),
        ({"hops": -1}, "hops must be an integer"),
        ({"output": 5}, "output must be an integer"),
        ({"average": torch.zeros(3)}, "average must have one number per feature"),
        ({"task": None}, "task must be a plap.data.Task, not NoneType"),
        ({"graph": torch.zeros(2, 3, dtype=torch.int64)}, "graph must be a plap.Graph, not Tensor"),
    ],
)
def test_bad_input_is_one_sentence(
    data: plap.data.GraphData, options: dict[str, object], sentence: str
) -> None:
    given = {"graph": data.graph, "task": TASK, "hops": 3} | options
    with pytest.raises(plap.InputError, match=sentence):
        explain_node([model()], data.x, node=4, **given)  # type: ignore[arg-type]
