"""plap inspect OUT: what a fitted model learned, as a user asks for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
import torch

import command
import plap
from plap.fitting.artifacts import load_model
from plap.fitting.prediction import read_like
from plap.insight import edge_trust, load_members
from plap.training import RunConfig

CSBM = "csbm:phi=0.7,n=120,f=16,d=8.0,seed=2"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Runner:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> Outcome:
        code = command.run(self.monkeypatch, *arguments)
        return Outcome(code, *self.capsys.readouterr())


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


def write_folder(place: Path) -> Path:
    """A user's graph: names of nodes, labels as words."""
    data = plap.data.load(CSBM)
    place.mkdir(parents=True)
    names = np.array([f"n{k:03d}" for k in range(120)])
    source, target = data.graph.edge_index[:, data.graph.edges_once()].numpy()
    pl.DataFrame({"source": names[source], "target": names[target]}).write_csv(place / "edges.csv")
    labels = ["cat" if value else "dog" for value in data.y.tolist()]
    features = {f"f{k}": column for k, column in enumerate(data.x.to_dense().T.numpy())}
    pl.DataFrame({"id": names, "label": labels, **features}).write_csv(place / "nodes.csv")
    return place


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``mygraph`` and what was fitted on it, ``out``."""
    place = tmp_path_factory.mktemp("fitted")
    graph = write_folder(place / "mygraph")
    arguments = ["fit", graph, "-o", place / "out", "--no-tune", "--p", "1.5", "--seeds", "2", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        assert command.run(patch, *arguments, "--max-epochs", "30") == 0
    return place


def test_it_says_what_was_learned(run: Runner, fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fitted)
    result = run("inspect", "out")
    assert (result.code, result.err) == (0, "")
    said = " ".join(result.out.split())
    for piece in (
        "mygraph 2 × pGNN, p = 1.5",
        "The weights that a node gives its neighbours have an entropy of",
        "the median trust is",
        "held-out nodes",
        "Least trusted edges",
    ):
        assert piece in said
    assert "fitted on another graph" not in said


def test_json_and_tables_agree_with_the_library(run: Runner, fitted: Path, tmp_path: Path) -> None:
    edges, nodes, png = tmp_path / "e.csv", tmp_path / "n.parquet", tmp_path / "a.png"
    files = ["--edges-out", edges, "--nodes-out", nodes, "--png", png]
    result = run("inspect", fitted / "out", "--graph", fitted / "mygraph", "--json", *files)
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    file = load_model(fitted / "out")
    data = read_like(file, fitted / "mygraph")
    members = load_members(RunConfig.from_dict(dict(file.config)), file.states, 16, 2)
    trust = edge_trust(members, data.x, data.graph)[data.graph.edges_once()]
    table = pl.read_csv(edges)
    names = ["source", "target", "trust", "relative_weight", "source_predicted", "target_predicted"]
    assert table.columns == names
    np.testing.assert_allclose(table["trust"], trust.sort().values, rtol=1e-3, atol=1e-6)
    assert found["trust"]["edges"] == table.height == data.graph.num_edges
    assert found["trust"]["below_chance"] == int((trust < 1).sum())
    assert [row["source"] for row in found["least_trusted"]] == table["source"].head(10).to_list()
    assert set(table["source_predicted"]) <= {"cat", "dog"}
    every = pl.read_parquet(nodes)
    assert every["node"].to_list() == list(data.node_ids)
    held_out = pl.read_parquet(fitted / "out" / "predictions.parquet")["role"] == "test"
    judged = every.filter(held_out)
    right, alone = (judged[name] == judged["known"] for name in ("predicted", "predicted_alone"))
    neighbours = found["neighbours"]
    assert neighbours["judged"] == judged.height == 24
    assert neighbours["helped"] == (right & ~alone).sum()
    assert neighbours["harmed"] == (~right & alone).sum()
    assert neighbours["mean_gain"] == pytest.approx(judged["gain"].mean(), abs=1e-6)
    assert found["entropy"]["mean"] <= found["entropy"]["uniform"]
    assert png.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "e.csv", "n.parquet"]


def test_another_graph_is_named_as_such(run: Runner, fitted: Path, tmp_path: Path) -> None:
    other = write_folder(tmp_path / "other")
    lines = (other / "edges.csv").read_text().splitlines()
    (other / "edges.csv").write_text("\n".join(lines[:-5]) + "\n")
    result = run("inspect", fitted / "out", "--graph", other)
    assert result.code == 0
    said = " ".join(result.out.split())
    assert "The model was fitted on another graph." in said
    assert "Of 120 nodes with a known label" in said


def test_a_graph_where_no_edge_can_be_doubted(run: Runner, fitted: Path, tmp_path: Path) -> None:
    bare = write_folder(tmp_path / "bare")
    (bare / "edges.csv").write_text("source,target\n")
    result = run("inspect", fitted / "out", "--graph", bare, "--json", "--png", tmp_path / "a.png")
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    assert found["trust"] is None
    assert found["entropy"]["mean"] is None
    assert (found["neighbours"]["helped"], found["neighbours"]["mean_gain"]) == (0, 0)


def test_the_graph_of_a_generated_benchmark_is_found_by_its_name(run: Runner, tmp_path: Path) -> None:
    fit = ["fit", CSBM, "-o", tmp_path / "out", "--no-tune", "--seeds", "1", "--max-epochs", "5", "--quiet"]
    assert run(*fit).code == 0
    found = json.loads(run("inspect", tmp_path / "out", "--json").out)
    assert found["fitted_on_this_graph"] is True
    assert found["config"]["p"] == 2.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["out"], "out was fitted on 'mygraph': say with --graph where that is"),
        (["out", "--graph", "nowhere/at/all"], "nowhere/at/all: there is no such file or folder"),
        (["out", "--edges-out", "e.txt"], "--edges-out: e.txt must end in .csv or .parquet"),
        (["out", "--nodes-out", "none/n.csv"], "--nodes-out: none/n.csv cannot be written"),
        (["out", "--png", "none/a.png"], "--png: none/a.png cannot be written"),
        (["graph", "--edges-out", "e.csv"], "--edges-out goes with a folder that plap fit wrote"),
        (["graph", "--graph", "cora"], "--graph goes with a folder that plap fit wrote"),
        (["out", "--label", "price"], "--label goes with a graph; out is a fit"),
        (["out", "--raw-features"], "--raw-features goes with a graph; out is a fit"),
        (["out", "--node", "n003", "--png", "a.png"], "--png does not go with --node"),
        (["out", "--graph", "csbm:phi=0.7,n=100,f=5"], "was fitted on the columns of a table, and"),
    ],
)
def test_mistakes_end_in_a_sentence(
    run: Runner,
    fitted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    shutil.copytree(fitted / "out", tmp_path / "out")
    shutil.copytree(fitted / "mygraph", tmp_path / "graph")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    result = run("inspect", *arguments)
    assert result.code == 2
    assert result.out == ""
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_damage_is_named(run: Runner, fitted: Path, tmp_path: Path) -> None:
    out, graph = shutil.copytree(fitted / "out", tmp_path / "out"), fitted / "mygraph"
    (out / "predictions.parquet").write_bytes(b"PAR1")
    assert "predictions.parquet cannot be read" in run("inspect", out, "--graph", graph).err
    (out / "predictions.parquet").unlink()
    assert "predictions.parquet cannot be read" in run("inspect", out, "--graph", graph).err
    (out / "model.safetensors").write_bytes(b"")
    assert "model.safetensors cannot be read" in run("inspect", out, "--graph", graph).err


def test_labels_are_matched_by_their_names(run: Runner, fitted: Path, tmp_path: Path) -> None:
    """Another graph may have other classes, or know them in another order."""
    other = write_folder(tmp_path / "other")
    text = (other / "nodes.csv").read_text().replace(",cat,", ",yak,")
    (other / "nodes.csv").write_text(text)
    run("inspect", fitted / "out", "--graph", other, "--nodes-out", tmp_path / "n.csv")
    known = pl.read_csv(tmp_path / "n.csv")["known"]
    expected = plap.data.load(CSBM).y
    assert known.is_null().to_list() == torch.eq(expected, 1).tolist()
    assert set(known.drop_nulls()) == {"dog"}
