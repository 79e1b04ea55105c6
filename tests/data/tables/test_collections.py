"""Folders of graph folders: what they become, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from plap.cli import main
from plap.data.tables.collections import load_collection, split_graphs
from plap.data.tables.loading import is_collection
from plap.data.tables.options import TableOptions
from plap.data.tasks import Multilabel
from plap.errors import InputError
from plap.fitting.artifacts import Predictions, ResultFiles, SavedModel, write_result
from plap.training import RunConfig, build_module

RAW = TableOptions(raw_features=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four graphs of three nodes; b lacks a class, d has no label."""
    labels = {"a": "xyx", "b": "yyy", "c": "xxz", "d": "   "}
    for name, classes in labels.items():
        place = tmp_path / name
        place.mkdir()
        (place / "edges.csv").write_text("source,target,weight\n0,1,2\n1,2,0.5\n")
        rows = "".join(f"{k},{label.strip()},{k},1\n" for k, label in enumerate(classes))
        (place / "nodes.csv").write_text("id,label,age,size\n" + rows)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_a_collection_is_a_disjoint_union(folder: Path) -> None:
    assert is_collection(folder)
    assert not is_collection(folder / "a")
    data = load_collection(folder, RAW)
    assert data.class_names == ("x", "y", "z")
    assert data.y.tolist() == [0, 1, 0, 1, 1, 1, 0, 0, 2, -1, -1, -1]
    assert data.graph_of_node is not None
    assert data.graph_of_node.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert data.graph.num_edges == 8
    assert data.graph.degree.tolist() == [2, 2.5, 0.5] * 4
    assert data.x.to_dense()[:, 0].tolist() == [0, 1, 2] * 4
    assert data.node_ids[4] == "b/1"
    assert "c/edges.csv" in data.provenance.files
    assert data.splits is None


def test_whole_graphs_are_shared_out(folder: Path) -> None:
    data = load_collection(folder)
    seen = set()
    for seed in range(20):
        parts = split_graphs(data, seed)
        assert parts.sizes == (3, 3, 3)  # d has no label
        seen.add(parts.digest)
        assert not bool((parts.train | parts.val | parts.test)[9:].any())
    assert len(seen) == 6
    assert split_graphs(data, 3).digest == split_graphs(data, 3).digest


def test_a_table_says_which_graph_is_for_what(folder: Path) -> None:
    (folder / "split.csv").write_text("graph,split\nb,train\na,test\nc,val\nd,\n")
    splits = load_collection(folder).splits
    assert splits is not None
    assert splits.train.squeeze(1).nonzero().flatten().tolist() == [3, 4, 5]
    assert splits.val.squeeze(1).nonzero().flatten().tolist() == [6, 7, 8]
    assert splits.test.squeeze(1).nonzero().flatten().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        (
            "b/nodes.csv",
            "id,label,age\n0,x,1\n1,y,1\n2,y,1\n",
            r"b: there is no feature 'size'",
        ),
        (
            "b/nodes.csv",
            "id,label,age,size,w\n0,x,1,1,1\n1,y,1,1,1\n2,y,1,1,1\n",
            "a: .* no feature 'w'",
        ),
        (
            "c/nodes.csv",
            "id,label:q,age,size\n0,1,1,1\n1,0,1,1\n2,0,1,1\n",
            r"a: a node has one class here, but several labels in .*c$",
        ),
        ("split.csv", "graph,split\ne,train\n", "split.csv, line 2, column 'graph': there is no graph 'e'"),
        ("split.csv", "graph,split\na,learn\n", "'learn' is none of train, val, test"),
        (
            "split.csv",
            "graph,split\na,train\nb,val\na,test\n",
            "split.csv, line 4, column 'graph': the graph 'a' is there twice",
        ),
        ("split.csv", "graph,split\nc,\nc,test\n", "line 3, column 'graph': the graph 'c' is there twice"),
        ("split.csv", "graphs,for\na,train\n", "the columns graph and split are needed"),
    ],
)
def test_graphs_that_do_not_go_together_are_refused(folder: Path, file: str, text: str, problem: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(InputError, match=problem):
        load_collection(folder)


def test_columns_may_be_in_another_order_but_raw_features_may_not(folder: Path) -> None:
    (folder / "b" / "nodes.csv").write_text("id,label,size,age\n0,x,1,1\n1,y,1,1\n2,y,1,1\n")
    assert load_collection(folder).x.shape[0] == 12
    with pytest.raises(InputError, match=r"b: .* but in another order"):
        load_collection(folder, RAW)


def test_a_bad_cell_is_named_by_its_own_file(folder: Path) -> None:
    rows = "".join(f"{k},x,{k},1\n" for k in range(3, 40))
    (folder / "b" / "nodes.csv").write_text(f"id,label,age,size\n0,x,1,1\n1,y,2,1\n2,y,old,1\n{rows}")
    with pytest.raises(InputError, match=r"b/nodes.csv, line 4, column 'age': 'old'"):
        load_collection(folder, TableOptions(numeric=["age"]))


def test_too_few_graphs_with_labels(folder: Path) -> None:
    for name in ("b", "c"):
        (folder / name / "nodes.csv").write_text("id,label,age,size\n0,,1,1\n1,,1,1\n2,,1,1\n")
    with pytest.raises(InputError, match="has labels in 1 of its graphs"):
        split_graphs(load_collection(folder))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("0,1,2,1\n1,0,1,1\n2,0,0,1\n", "line 2, column 'label:b': 2 is neither 0 nor 1"),
        ("0,1,,1\n1,0,1,1\n2,0,0,1\n", "column 'label:b': is empty, but other labels of the row are not"),
        ("0,1,no,1\n1,0,1,1\n2,0,0,1\n", "'no' is not a number"),
    ],
)
def test_several_labels_are_0_and_1(folder: Path, rows: str, problem: str) -> None:
    (folder / "a" / "nodes.csv").write_text("id,label:a,label:b,age\n" + rows)
    with pytest.raises(InputError, match=problem):
        load_collection(folder)


def test_a_node_without_any_of_several_labels_is_unknown(tmp_path: Path) -> None:
    place = tmp_path / "all" / "g"
    place.mkdir(parents=True)
    (place / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    (place / "nodes.csv").write_text("id,Label:a,label:b c,age\n0,1,0,1\n1,,,1\n2,0,1,1\n")
    data = load_collection(tmp_path / "all", RAW)
    assert data.class_names == ("a", "b c")
    assert data.y[[0, 2]].tolist() == [[1, 0], [0, 1]]
    assert bool(data.y[1].isnan().all())
    assert data.x.shape == (3, 1)


def several(folder: Path, **nodes: str) -> Path:
    """A graph of two nodes for each table of nodes, with one feature called age."""
    for name, table in nodes.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "edges.csv").write_text("source,target\n0,1\n")
        (folder / name / "nodes.csv").write_text(table)
    return folder


UNKNOWN = "id,age\n0,1\n1,2\n"
KNOWN = "id,label:cat,label:rich,age\n0,1,0,1\n1,0,1,2\n"
TURNED = "id,label:rich,age,label:cat\n0,0,1,1\n1,,2,\n"


def test_several_labels_go_together_by_name(tmp_path: Path) -> None:
    empty = "id,label,age\n0,,1\n1,,2\n"
    data = load_collection(several(tmp_path, a=UNKNOWN, b=KNOWN, c=TURNED, d=empty), RAW)
    assert data.class_names == ("cat", "rich")
    assert data.y[2:5].tolist() == [[1, 0], [0, 1], [1, 0]]
    assert bool(data.y[[0, 1, 5, 6, 7]].isnan().all())
    assert data.x.to_dense().squeeze(1).tolist() == [1, 2] * 4


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("id,label:cat,age\n0,1,1\n1,0,2\n", "b: there is no column of the label 'rich', which .*a has"),
        (
            "id,label:cat,label:rich,label:old,age\n0,1,1,1,1\n1,0,0,0,2\n",
            "a: .* label 'old', which .*b has; a graph must have all labels or none",
        ),
        (
            "id,label:cat,label:rich,label: cat,age\n0,1,1,1,1\n1,0,0,0,2\n",
            "b: two columns of labels have the same name",
        ),
    ],
)
def test_some_of_several_labels_are_refused(tmp_path: Path, table: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_collection(several(tmp_path, a=KNOWN, b=table))


def test_a_model_of_several_labels_predicts_graphs_with_and_without_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig(p=1.5, K=1, hidden=4)
    module = build_module(config, 1, 2)
    model = SavedModel(
        config.to_dict(),
        ({name: value.detach() for name, value in module.state_dict().items()},),
        Multilabel(("rich", "cat")),
        1,
        ("age",),
    )
    table = Predictions([0], model.task, np.zeros((1, 2)), ["test"])
    write_result(tmp_path / "model", ResultFiles(table, model, {}, "<!doctype html>"))
    graphs = several(tmp_path / "graphs", a=UNKNOWN, b=KNOWN, c=TURNED)
    monkeypatch.setattr(sys, "argv", ["plap", "predict", str(tmp_path / "model"), str(graphs), "--json"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    summary = json.loads(capsys.readouterr().out)
    assert (summary["nodes"], summary["known"]) == (6, 3)
