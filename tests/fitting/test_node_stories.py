"""From a fit to explanations and a map."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import customer_graph
import plap
from plap.data.tasks import Multiclass
from plap.fitting import node_stories
from plap.fitting.node_stories import node_sections
from plap.fitting.page_content import page_content
from plap.insight.members import members_of


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> plap.FitResult:
    folder = tmp_path_factory.mktemp("customers")
    customer_graph.write_customer_graph(folder, nodes=150, edges=450, unknown=0.2)
    return plap.fit(folder, search=False, seeds=2, max_epochs=15, rivals=())


def test_stories_are_of_nodes_that_raise_questions(result: plap.FitResult) -> None:
    sections = node_sections(result, result.edge_trust)
    ids = list(map(str, result.data.node_ids))
    said = result.predictions.probabilities
    decided = result.task.decode(torch.from_numpy(said))
    for story in sections.stories:
        node = ids.index(story.node)
        assert story.prediction == pytest.approx(float(said[node, story.kind]), abs=1e-4)
        assert story.predicted == result.data.class_names[int(decided[node])]
        degree = int(result.data.graph.indptr[node + 1] - result.data.graph.indptr[node])
        assert story.num_neighbours == degree
        assert {part.name for part in story.features} <= set(customer_graph.COLUMNS)
        if "errors" in story.why:
            assert bool(result.split.test[node])
            assert story.known != story.predicted
    doubtful = [story for story in sections.stories if story.why == "least certain"]
    assert len(doubtful) == 3
    assert any("errors" in story.why for story in sections.stories)
    assert isinstance(result.task, Multiclass)
    margins = result.task.margins(torch.from_numpy(said)).masked_fill(result.split.train, 2.0)
    assert ids.index(doubtful[0].node) == int(margins.argmin())


def test_least_certain_are_those_closest_to_the_threshold() -> None:
    result = plap.fit("csbm:phi=0.5,n=120,f=8,seed=1", search=False, seeds=1, max_epochs=15, rivals=())
    assert isinstance(result.task, Multiclass)
    task = replace(result.task, positive=0, threshold=0.3)
    moved = replace(result, methods=(replace(result.model, task=task), *result.methods[1:]))
    rows = page_content(moved, None).uncertain_nodes
    said = torch.from_numpy(result.predictions.probabilities)
    ids = list(map(str, result.data.node_ids))
    off = [abs(float(said[ids.index(row.node), 0]) - 0.3) for row in rows]
    assert off == sorted(off)
    assert off[0] == pytest.approx(float((said[~result.split.train][:, 0] - 0.3).abs().min()))
    assert not any(bool(result.split.train[ids.index(row.node)]) for row in rows)


def test_cells_and_trust_are_those_of_the_node(result: plap.FitResult) -> None:
    name = str(result.data.node_ids[11])
    story = result.explain(name)
    cells = result.data.columns.frame.row(11, named=True)  # type: ignore[union-attr]
    for part in story.features:
        assert part.value[:39] == ("–" if cells[part.name] is None else str(cells[part.name])[:39])
    graph, trust = result.data.graph, result.edge_trust
    assert trust is not None
    entries = {
        str(result.data.node_ids[j]): float(trust[e])
        for e, (j, i) in enumerate(graph.edge_index.t().tolist())
        if i == 11
    }
    assert {part.name: part.trust for part in story.neighbours} == pytest.approx(entries)
    with pytest.raises(plap.InputError, match="has no node 'nobody'"):
        result.explain("nobody")


def test_the_map_has_held_out_nodes_only(result: plap.FitResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_stories, "_STEPS", 250)
    sections = node_sections(result, None)
    ids = list(map(str, result.data.node_ids))
    mapped = [ids.index(node.name) for node in sections.map]
    assert mapped == result.split.test.nonzero().squeeze(1).tolist()
    assert [node.kind for node in sections.map] == result.data.y[mapped].tolist()
    right = int((result.task.decode(result.model.probabilities)[mapped] == result.data.y[mapped]).sum())
    assert sections.wrong == len(mapped) - right
    assert all(part.trust is None for story in sections.stories for part in story.neighbours)


def test_numbers_are_explained_without_a_map() -> None:
    data = plap.data.csbm(phi=0.5, n=80, f=4, d=5.0, seed=1)
    numbers = plap.data.GraphData("numbers", data.graph, data.x, 50 + 10 * data.x[:, 0])
    result = plap.fit(numbers, search=False, seeds=1, max_epochs=10, rivals=())
    sections = node_sections(result, None)
    assert not sections.share
    assert len(sections.stories) == 6
    assert sections.map == ()
    far = (result.model.probabilities[:, 0] - numbers.y).abs().masked_fill(~result.split.test, -1.0)
    assert sections.stories[0].node == str(int(far.argmax()))
    assert "Why these predictions" in result.page


def test_the_files_of_a_fit_explain_the_same(result: plap.FitResult, tmp_path: Path) -> None:
    from plap.fitting.artifacts import load_model  # noqa: PLC0415
    from plap.fitting.node_stories import Storyteller  # noqa: PLC0415

    result.save(tmp_path / "out")
    again = Storyteller.of_model(load_model(tmp_path / "out"), result.data).story_of(result.data.node_ids[3])
    first = result.explain(result.data.node_ids[3])
    assert again.prediction == pytest.approx(first.prediction, abs=1e-5)
    assert [part.name for part in again.features] == [part.name for part in first.features]


def test_an_attack_on_a_fit(result: plap.FitResult, tmp_path: Path) -> None:
    curve = result.attack(0.05, members=1, steps=3)
    assert [round(point.budget, 4) for point in curve.points] == [0.005, 0.0125, 0.025, 0.05]
    assert curve.nodes == result.split.sizes[2]
    (module,) = members_of(result.fitted.members[:1], result.data.x.shape[1], result.task.num_outputs)
    with torch.no_grad():
        said = module(result.data.x, result.data.graph).softmax(1)
    decided = result.task.decode(result.task.calibrated(said))
    test = result.split.test
    assert curve.clean == pytest.approx(float((decided == result.data.y)[test].double().mean()))
    one = result.attack(1.0, local=np.int64(1), members=1, steps=3)  # type: ignore[arg-type]
    assert (one.nodes, one.local) == (1, True)
    with pytest.raises(plap.InputError, match="an attack on single nodes comes after training"):
        result.attack(local=2, poison=True)
    with pytest.raises(plap.InputError, match="poison must be True or False, not 'no'"):
        result.attack(poison="no")  # type: ignore[arg-type]


def test_a_prediction_says_what_drifted(result: plap.FitResult, tmp_path: Path) -> None:
    customer_graph.write_customer_graph(tmp_path, nodes=150, edges=450)
    assert not any("Drift" in note for note in result.predict(tmp_path).notes)
    lines = (tmp_path / "nodes.csv").read_text().splitlines()
    place = lines[0].split(",").index("country")
    moved = [
        ",".join([*cells[:place], "XX", *cells[place + 1 :]])
        for cells in (line.split(",") for line in lines[1:])
    ]
    (tmp_path / "nodes.csv").write_text("\n".join([lines[0], *moved]))
    assert any("Drift in the column country" in note for note in result.predict(tmp_path).notes)
