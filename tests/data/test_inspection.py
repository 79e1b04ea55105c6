"""plap inspect: its numbers against formulas written out, its three outputs, its refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import plap.data
from plap import Graph
from plap.cli import main
from plap.data import GraphData, measures
from plap.data.measures import MEANINGS, MEASURES, gradient_norms, inspect_graph
from plap.reporting.inspection_pictures import graph_picture
from plap.sparse import compact


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["plap", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return Outcome(int(caught.value.code or 0), out, err)

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "edges.csv").write_text("source,target\na,b\na,b\nb,c\nd,e\ne,d\nf,f\n")
    (tmp_path / "nodes.csv").write_text(
        "id,label,height,width\na,u,1,0\nb,u,2,0\nc,v,0,0\nd,v,4,1\ne,v,4,1\nf,,0,3\n"
    )
    return tmp_path


def test_json_has_the_numbers(run: Any, folder: Path) -> None:
    result = run("inspect", folder, "--json", "--raw-features")
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    assert found["name"] == folder.name
    assert (found["nodes"], found["edges"], found["isolated"]) == (6, 3, 1)
    assert (found["components"], found["largest_component"]) == (3, 3)
    assert found["degrees"]["minimum"] == 0
    assert found["degrees"]["median"] == 1
    assert found["degrees"]["mean"] == 1
    assert found["degrees"]["maximum"] == 2
    assert sum(found["degrees"]["counts"]) == 6
    assert found["features"] == 2
    assert found["features_filled"] == pytest.approx(7 / 12)
    assert found["labelled"] == 5
    assert found["class_sizes"] == {"u": 2, "v": 3}
    assert set(found["homophily"]) == set(MEASURES) == set(MEANINGS)
    assert found["homophily"]["edge"]["value"] == pytest.approx(2 / 3)
    assert found["homophily"]["node"]["value"] == pytest.approx((1 + 0.5 + 0 + 1 + 1) / 5)
    assert found["changes"] == [
        "Self-loops dropped: 1.",
        "Repeated edges merged by max: 1.",
        "Made undirected: 2 of 6 edges had no reverse.",
    ]
    norms = found["gradient_norms"]
    assert sum(norms["counts"]) == 5
    assert norms["minimum"] == 0


def test_the_data_dictionary_says_what_columns_became(run: Any, folder: Path) -> None:
    found = json.loads(run("inspect", folder, "--json").out)
    assert [entry["name"] for entry in found["columns"]] == ["height", "width", "id", "label"]
    assert found["columns"][0]["kind"] == "number"
    assert "standardised" in run("inspect", folder).out


def test_table_has_the_same(run: Any, folder: Path) -> None:
    result = run("inspect", folder, "--raw-features")
    assert result.code == 0
    for piece in (
        "6, 1 without edges",
        "3, undirected, unweighted",
        "58.33% non-zero",
        "5 of 6 nodes",
        "0.667",
    ):
        assert piece in result.out
    for sentence in ("Self-loops dropped: 1.", "share of edges that join"):
        assert sentence in result.out


def test_picture_is_written_whole(run: Any, folder: Path) -> None:
    picture = folder / "out.png"
    result = run("inspect", folder, "--png", picture, "--json")
    assert result.code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.read_bytes().endswith(b"IEND\xaeB`\x82")
    assert sorted(path.name for path in folder.iterdir()) == ["edges.csv", "nodes.csv", "out.png"]
    assert picture.stat().st_mode & 0o777 == (folder / "edges.csv").stat().st_mode & 0o777


def test_a_file_of_edges_with_and_without_nodes(run: Any, folder: Path) -> None:
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    alone = json.loads(run("inspect", edges, "--json").out)
    assert (alone["nodes"], alone["features"], alone["labelled"]) == (6, 4, 0)
    assert alone["verdict"].startswith("Whether the edges can help is unknown")
    assert alone["homophily"]["edge"]["value"] is None
    both = json.loads(run("inspect", edges, "--nodes", nodes, "--json").out)
    assert both["labelled"] == 5


def test_an_npz_and_a_generated_benchmark(run: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], y=[0, 0])
    assert json.loads(run("inspect", tmp_path / "g.npz", "--json").out)["edges"] == 1
    found = json.loads(run("inspect", "csbm:phi=1,n=400,f=4", "--json").out)
    assert found["nodes"] == 400
    assert found["verdict"].startswith("The edges can help: ")


def test_a_path_wins_over_a_benchmark(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cora").mkdir()
    (folder / "cora" / "edges.csv").write_text("source,target\n1,2\n")
    monkeypatch.chdir(folder)
    assert json.loads(run("inspect", "cora", "--json").out)["nodes"] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere/at/all"], "nowhere/at/all: there is no such file or folder"),
        (["no-such-benchmark"], "no-such-benchmark"),
        (["{folder}", "--png", "{folder}/none/a.png"], "--png: {folder}/none/a.png cannot be written"),
        (["{folder}", "--png", "{folder}"], "--png: {folder} is a folder"),
        (["{folder}", "--nodes", "{folder}/nodes.csv"], "--nodes goes with a file of edges"),
        (["{folder}/notes.txt"], "notes.txt: a graph is a folder"),
    ],
)
def test_refusals(run: Any, folder: Path, arguments: list[str], sentence: str) -> None:
    (folder / "notes.txt").write_text("hello")
    result = run("inspect", *(argument.format(folder=folder) for argument in arguments))
    assert result.code == 2
    assert result.out == ""
    assert sentence.format(folder=folder) in result.err
    assert result.err.count("\n") == 1


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(run: Any, folder: Path) -> None:
    (folder / "edges.csv").write_bytes(b"\xff\xfe")
    assert "--png" in run("inspect", folder, "--png", folder / "none" / "a.png").err


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(0, 30), st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_gradient_norms_are_equation_1(n: int, edges: int, width: int, seed: int, small: bool) -> None:
    random = np.random.default_rng(seed)
    weight = random.uniform(0.2, 3, edges)
    graph = Graph.from_edges(random.integers(0, n, (edges, 2)), weight, n, self_loops="keep")
    f = random.normal(size=(n, width)) * (random.random((n, width)) < 0.5)
    W, D = np.zeros((n, n)), graph.degree.numpy()
    source, target = graph.edge_index.numpy()
    W[target, source] = graph.weight.numpy()
    square = np.zeros(n)
    for i, j in zip(*np.nonzero(W), strict=True):
        square[i] += ((np.sqrt(W[i, j] / D[j]) * f[j] - np.sqrt(W[i, j] / D[i]) * f[i]) ** 2).sum()
    x = torch.from_numpy(f)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "_CELLS", 3 if small else 1 << 22)
        for features in (x, x.to_sparse_csr()):
            np.testing.assert_allclose(gradient_norms(features, graph), np.sqrt(square), atol=1e-7)


def test_equal_neighbours_have_no_gradient() -> None:
    cycle = Graph.from_edges([(k, (k + 1) % 50) for k in range(50)])
    assert gradient_norms(torch.full((50, 3), 0.1), cycle).tolist() == [0.0] * 50


def data_of(y: torch.Tensor, edges: list[tuple[int, int]], n: int) -> GraphData:
    return GraphData("made up", Graph.from_edges(edges, num_nodes=n), compact(torch.eye(n)), y)


def test_verdicts_follow_the_labels() -> None:
    random = np.random.default_rng(0)
    edges = [(int(a), int(b)) for a, b in random.integers(0, 300, (2000, 2))]
    chance = torch.from_numpy(random.integers(0, 3, 300))
    assert "hardly help" in inspect_graph(data_of(chance, edges, 300)).verdict
    bipartite = [(a, b) for a, b in edges if (a + b) % 2]
    assert "not by plain averaging" in inspect_graph(data_of(torch.arange(300) % 2, bipartite, 300)).verdict
    same = [(a, b) for a, b in edges if (a + b) % 2 == 0]
    assert "The edges can help: " in inspect_graph(data_of(torch.arange(300) % 2, same, 300)).verdict
    mixed = same + bipartite[: len(same) * 2 // 3]
    assert "a little" in inspect_graph(data_of(torch.arange(300) % 2, mixed, 300)).verdict


def test_multi_label_and_edgeless_graphs_are_inspected_and_drawn() -> None:
    many = data_of(torch.tensor([[1.0, 0.0], [1.0, 1.0], [torch.nan, torch.nan]]), [(0, 1)], 3)
    found = inspect_graph(many)
    assert (found.labelled, found.class_sizes) == (2, {"0": 2, "1": 1})
    assert found.homophily["edge"].value is None
    edgeless = inspect_graph(data_of(torch.full((3,), -1), [], 3))
    assert edgeless.gradient_norms is None
    assert edgeless.degrees is not None
    assert edgeless.degrees.counts == (3,)
    for inspection in (found, edgeless):
        assert graph_picture(inspection).startswith(b"\x89PNG")
        json.dumps(inspection.to_json(), allow_nan=False)


def test_names_of_classes_are_not_formulas(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    (tmp_path / "nodes.csv").write_text("id,label\na,$x^{$\nb,$x^{$\n")
    assert graph_picture(inspect_graph(plap.data.load_folder(tmp_path))).startswith(b"\x89PNG")
