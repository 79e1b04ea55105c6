from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from plap import Graph, InputError
from plap.data import GraphData, csbm
from plap.data.dataset import components, edge_changes, largest_component

PATH = Graph.from_edges([(0, 1), (1, 2), (3, 4)], num_nodes=6)


def data(y: torch.Tensor, **more: object) -> GraphData:
    return GraphData("made up", PATH, torch.eye(6), y, **more)  # type: ignore[arg-type]


def test_answers_what_callers_need() -> None:
    found = data(torch.tensor([0, 2, -1, 1, 0, 0]))
    assert (found.num_classes, found.class_names) == (3, ("0", "1", "2"))
    assert found.node_ids == range(6)
    assert found.known.tolist() == [True, True, False, True, True, True]
    assert found.task.name == "multiclass"


def test_given_names_stay() -> None:
    found = data(torch.tensor([0, 1, -1, 1, 0, 0]), class_names=("a", "b", "c"), node_ids=tuple("uvwxyz"))
    assert (found.num_classes, found.task.class_names) == (3, ("a", "b", "c"))
    assert found.node_ids == tuple("uvwxyz")
    with pytest.raises(InputError, match="there are 1 class names"):
        data(torch.tensor([0, 1, 0, 0, 0, 0]), class_names=("a",))


def test_several_labels_per_node() -> None:
    y = torch.zeros(6, 2)
    y[3] = torch.nan
    found = data(y)
    assert (found.task.name, found.class_names, found.num_classes) == ("multilabel", ("0", "1"), 2)
    assert found.known.tolist() == [True, True, True, False, True, True]


def test_other_labels_get_their_own_task() -> None:
    made = csbm(phi=0.5, n=10, f=2)
    assert made.task.num_outputs == 2
    assert replace(made, y=torch.zeros(10, 5)).task.name == "multilabel"
    assert replace(made, y=torch.arange(10)).num_classes == 10


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32])
def test_classes_may_be_any_integers(dtype: torch.dtype) -> None:
    found = data(torch.tensor([0, 2, 1, 1, 0, 0]).to(dtype))
    assert (found.y.dtype, found.task.name, found.num_classes) == (torch.int64, "multiclass", 3)


def test_notes_tell_what_happened_to_the_edges_once() -> None:
    graph = Graph.from_edges([(0, 1), (0, 1), (2, 2)])
    found = GraphData("made up", graph, torch.eye(3), torch.tensor([0, 1, 0]))
    assert found.notes[:2] == ("Self-loops dropped: 1.", "Repeated edges merged by max: 1.")
    told = replace(found, provenance=replace(found.provenance, notes=("Features made up.", found.notes[0])))
    assert told.notes == ("Features made up.", *found.notes)
    assert edge_changes(Graph.from_edges([(0, 1), (1, 0), (1, 1)], self_loops="keep")) == ()


def test_components() -> None:
    assert components(PATH).tolist() == [0, 0, 0, 1, 1, 2]
    kept = largest_component(data(torch.tensor([0, 1, 0, 0, 0, 0])))
    assert kept.graph.num_nodes == 3
    assert kept.node_ids == (0, 1, 2)
