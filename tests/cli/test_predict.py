"""plap predict, as a user calls it: which labels are scored, what nodes were in the fit, what drifted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import command
import customer_graph

FIT = ("--no-tune", "--seeds", "1", "--max-epochs", "20", "--quiet")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables ``graph``, whose edges have weights, and a fit of them, ``out``."""
    place = tmp_path_factory.mktemp("predict")
    customer_graph.write_customer_graph(place / "graph", nodes=150, edges=450, unknown=0.2)
    edges = pl.read_csv(place / "graph" / "edges.csv")
    edges.with_columns(weight=pl.int_range(edges.height) % 3 + 1).write_csv(place / "graph" / "edges.csv")
    with pytest.MonkeyPatch.context() as patch:
        assert command.run(patch, "fit", place / "graph", "-o", place / "out", *FIT) == 0
    return place


@pytest.fixture
def graph(place: Path, tmp_path: Path) -> Path:
    """A copy of the tables that a test may change."""
    return Path(shutil.copytree(place / "graph", tmp_path / "graph"))


def summary(
    patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> dict[str, Any]:
    assert command.run(patch, "predict", *arguments, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_labels_of_the_fit_are_not_scored_again(
    place: Path, graph: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = pl.read_parquet(place / "out" / "predictions.parquet")
    test = fitted.filter(role="test")
    trained = fitted.filter(pl.col("role").is_in(["train", "val"]))
    expected = (test.height, (test["known"] == test["predicted"]).sum(), trained.height)
    same = summary(monkeypatch, capsys, place / "out", place / "graph")
    assert (same["known"], same["right"], same["seen"], same["same_graph"]) == (*expected, True)
    nodes = pl.read_csv(graph / "nodes.csv", infer_schema=False)
    nodes.reverse().write_csv(graph / "nodes.csv")
    turned = summary(monkeypatch, capsys, place / "out", graph)
    assert (turned["known"], turned["right"], turned["seen"]) == expected
    assert "known labels that the model was not trained with" in turned["sentence"]


def test_roles_are_those_of_the_fit(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(monkeypatch, "predict", place / "out", place / "graph", "-o", tmp_path / "p.csv") == 0
    before = pl.read_csv(place / "out" / "predictions.csv")
    assert pl.read_csv(tmp_path / "p.csv")["role"].to_list() == before["role"].to_list()


def test_only_new_nodes_are_scored_where_only_they_are_wanted(
    place: Path, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    nodes = pl.read_csv(graph / "nodes.csv", infer_schema=False)
    first = nodes.columns[0]
    labelled = nodes.filter(pl.col("label").is_not_null()).head(10)
    more = labelled.with_columns(pl.format("new-{}", pl.int_range(10)).alias(first))
    pl.concat([nodes, more]).write_csv(graph / "nodes.csv")
    file = tmp_path / "new.csv"
    found = summary(monkeypatch, capsys, place / "out", graph, "--only-new", "-o", file)
    table = pl.read_csv(file)
    assert found["nodes"] == found["new"] == found["known"] == table.height == 10
    assert found["right"] == (table["known"] == table["predicted"]).sum()
    assert found["sentence"].startswith("Predicted 10 nodes that the model was not fitted on (written to")


def test_training_labels_alone_are_scored_with_a_warning(
    place: Path, graph: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = pl.read_parquet(place / "out" / "predictions.parquet")
    trained = fitted.filter(role="train")["node"].cast(str).to_list()
    nodes = pl.read_csv(graph / "nodes.csv", infer_schema=False)
    kept = pl.when(pl.col(nodes.columns[0]).is_in(trained)).then("label")
    nodes.with_columns(label=kept).write_csv(graph / "nodes.csv")
    found = summary(monkeypatch, capsys, place / "out", graph)
    assert found["only_seen"] is True
    assert found["known"] == len(trained)
    assert "trained with these labels, so this score is optimistic" in found["sentence"]


def test_weights_that_are_gone_are_drift(
    place: Path, graph: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "The edges of the fit had weights; these have none."
    assert said not in summary(monkeypatch, capsys, place / "out", graph)["notes"]
    pl.read_csv(graph / "edges.csv").drop("weight").write_csv(graph / "edges.csv")
    assert said in summary(monkeypatch, capsys, place / "out", graph)["notes"]


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_are_names_where_labels_agree(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(place: Path, labels: list[str]) -> Path:
        place.mkdir()
        rows = [f"{first + k},{label},{k % 7},{k % 3}" for k, label in enumerate(labels)]
        (place / "nodes.csv").write_text("\n".join(["id,label,one,two", *rows]))
        edges = [f"{first + k},{first + (k + 1) % len(labels)}" for k in range(len(labels))]
        (place / "edges.csv").write_text("\n".join(["source,target", *edges]))
        return place

    labels = ["ab"[k * k % 5 % 2] for k in range(80)]
    graph = write(tmp_path / "graph", labels)
    assert command.run(monkeypatch, "fit", graph, "-o", tmp_path / "out", *FIT) == 0
    capsys.readouterr()
    more = write(tmp_path / "more", [*labels, *"abababab"])
    found = summary(monkeypatch, capsys, tmp_path / "out", more)
    trained = pl.read_parquet(tmp_path / "out" / "predictions.parquet").filter(
        pl.col("role").is_in(["train", "val"])
    )
    assert (found["new"], found["seen"], found["known"]) == (8, trained.height, 88 - trained.height)
    other = write(tmp_path / "other", ["ab"[k // 9 % 2] for k in range(60)])
    found = summary(monkeypatch, capsys, tmp_path / "out", other)
    assert (found["new"], found["known"], "seen" in found) == (60, 60, False)
    assert any("so they are taken for other nodes" in note for note in found["notes"])


def test_what_a_fit_dropped_is_dropped_again(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (graph / "edges.csv").open("a") as stream:
        stream.write("nobody,no one,1\n")
    out = tmp_path / "out"
    assert command.run(monkeypatch, "fit", graph, "-o", out, *FIT, "--on-bad-rows", "drop") == 0
    capsys.readouterr()
    assert command.run(monkeypatch, "inspect", out, "--graph", graph) == 0
    assert command.run(monkeypatch, "predict", out, graph, "--json") == 0
    assert "1 row was dropped" in capsys.readouterr().out
    assert command.run(monkeypatch, "predict", out, graph, "--on-bad-rows", "error") == 2
    assert "--on-bad-rows drop leaves this row out" in capsys.readouterr().err


def test_a_model_without_columns_predicts_for_ids_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, header in (("fit", "id,label,name"), ("new", "id")):
        (tmp_path / place).mkdir()
        rows = [f"{k},{'ab'[k % 2]},person {k * 7919} of {k}" for k in range(60)]
        cells = rows if place == "fit" else [row.split(",")[0] for row in rows]
        (tmp_path / place / "nodes.csv").write_text("\n".join([header, *cells]) + "\n")
        ring = "".join(f"{k},{(k + 1) % 60}\n" for k in range(60))
        (tmp_path / place / "edges.csv").write_text(f"source,target\n{ring}")
    out = tmp_path / "out"
    assert command.run(monkeypatch, "fit", tmp_path / "fit", "-o", out, *FIT, "--ignore", "name") == 0
    assert command.run(monkeypatch, "predict", out, tmp_path / "new", "-o", tmp_path / "p.csv") == 0
    assert pl.read_csv(tmp_path / "p.csv").height == 60


def test_a_fit_without_a_table_of_nodes_says_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    assert command.run(monkeypatch, "fit", tmp_path, "-o", tmp_path / "out", "-q") == 2
    assert "no table of nodes was found" in capsys.readouterr().err
