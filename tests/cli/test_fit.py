"""The commands from a graph to predictions, as a user runs them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plap
from command import run
from plap.fitting.artifacts import load_metrics, load_model

SMALL = ["--budget", "300", "--seeds", "2", "--max-epochs", "30", "--quiet"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A heterophilic graph of 240 nodes as a user would have it: names, labels as words, some unknown."""
    data = plap.data.csbm(phi=-0.8, n=240, f=12, d=8.0, seed=4)
    place = tmp_path / "mygraph"
    place.mkdir()
    names = np.array([f"n{k:03d}" for k in range(240)])
    source, target = data.graph.edge_index.numpy()
    once = source < target
    pl.DataFrame({"source": names[source[once]], "target": names[target[once]]}).write_csv(
        place / "edges.csv"
    )
    labels = ["cat" if value else "dog" for value in data.y.tolist()]
    columns = {"id": names, "label": [None if k % 6 == 0 else label for k, label in enumerate(labels)]}
    features = data.x.to_dense().numpy()
    columns |= {f"f{k}": features[:, k] for k in range(12)}
    pl.DataFrame(columns).write_csv(place / "nodes.csv")
    return place


@pytest.mark.parametrize(
    ("rivals", "methods"),
    [("gcn, labels", ["pGNN", "GCN", "label propagation"]), ("none", ["pGNN"])],
)
def test_what_the_model_is_compared_with_can_be_chosen(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rivals: str, methods: list[str]
) -> None:
    out = tmp_path / "out"
    options = ("--no-tune", "--seeds", "1", "--max-epochs", "5", "--rivals", rivals)
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), *options) == 0
    assert [method["name"] for method in load_metrics(out)["methods"]] == methods


def test_a_prediction_from_edges_alone_says_what_is_missing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    options = ("--no-tune", "--seeds", "1", "--max-epochs", "5", "--rivals", "none")
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), *options) == 0
    assert run(monkeypatch, "predict", str(out), str(folder / "edges.csv")) == 2
    assert "on the columns of a table, and edges has no table of nodes" in capsys.readouterr().err


def test_fit_predict_report(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), *SMALL, "--models", "pgnn") == 0
    shown = capsys.readouterr().out
    for name in ("pGNN", "MLP", "label propagation", "Selected hyperparameters: model = pgnn, penalty ="):
        assert name in shown
    assert sorted(path.name for path in out.iterdir()) == [
        "manifest.json", "metrics.json", "model.json", "model.safetensors",
        "predictions.csv", "predictions.parquet", "report.html",
    ]  # fmt: skip
    table = pl.read_csv(out / "predictions.csv")
    assert table.height == 240
    assert set(table["predicted"]) <= {"cat", "dog"}
    assert (table["role"] == "unlabelled").sum() == 40
    assert (table["probability_cat"] + table["probability_dog"] - 1).abs().max() < 1e-5  # type: ignore[operator]
    metrics = load_metrics(out)
    held = table.filter(pl.col("role") == "test")
    right = (held["known"] == held["predicted"]).mean()
    assert metrics["methods"][0]["scores"]["accuracy"] == pytest.approx(right)
    assert metrics["split"]["sizes"][0] == 120
    assert sum(metrics["split"]["sizes"]) == 200
    assert load_model(out).classes == ("cat", "dog")
    page = (out / "report.html").read_text()
    assert "<svg" in page
    assert "n0" in page  # the user's own names of nodes

    assert run(monkeypatch, "report", str(out)) == 0
    assert f"mygraph: {held.height} held-out nodes" in capsys.readouterr().out

    assert run(monkeypatch, "predict", str(out), str(folder), "-o", str(tmp_path / "p.parquet")) == 0
    said = capsys.readouterr().out
    assert f"Predicted 240 nodes (written to {tmp_path / 'p.parquet'}). Of 40 known labels that" in said
    again = pl.read_parquet(tmp_path / "p.parquet")
    assert (again["probability"] - table["probability"]).abs().max() < 1e-4  # type: ignore[operator]
    assert run(monkeypatch, "predict", str(out), str(folder)) == 0
    assert capsys.readouterr().out.startswith("node,role,known,predicted,probability")


def test_fit_json_is_all_that_is_printed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["fit", str(folder), "-o", str(tmp_path / "out"), *SMALL, "--json", "--p", "1.5", "--K", "2"]
    assert run(monkeypatch, *arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["config"]["p"] == 1.5
    assert {trial["K"] for trial in printed["trials"]} == {2}
    assert printed["versions"]["plap"] == plap.__version__


def test_predict_labels_a_graph_it_never_saw(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), *SMALL) == 0
    new = tmp_path / "new"
    new.mkdir()
    nodes = pl.read_csv(folder / "nodes.csv").head(30).drop("label")
    nodes.write_csv(new / "nodes.csv")
    (new / "edges.csv").write_text("source,target\nn000,n001\nn002,n003\n")
    capsys.readouterr()
    assert run(monkeypatch, "predict", str(out), str(new), "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["nodes"], printed["new"], printed["sentence"]) == (30, 0, "Predicted 30 nodes.")
    assert [column["column"] for column in printed["drift"]["columns"]] == [f"f{k}" for k in range(12)]
    assert any("Drift in the edges" in note for note in printed["notes"])
    nodes.with_columns(id=pl.format("m{}", pl.int_range(30))).write_csv(new / "nodes.csv")
    (new / "edges.csv").write_text("source,target\nm0,m1\n")
    assert run(monkeypatch, "predict", str(out), str(new), "--only-new", "-o", str(tmp_path / "p.csv")) == 0
    assert pl.read_csv(tmp_path / "p.csv")["new"].to_list() == [True] * 30
    (new / "edges.csv").write_text("source,target\nn000,n001\nn002,n003\n")
    capsys.readouterr()
    nodes.drop("f3").write_csv(new / "nodes.csv")
    assert run(monkeypatch, "predict", str(out), str(new)) == 2
    assert "nodes.csv: the table has no column 'f3', which the model needs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--p", "0.5"], "p must be a number of at least 1"),
        (["--penalty", "l1"], "penalty must be one of power, mcp, scad, huber, welsch, geman, cauchy"),
        (["--penalty", "mcp", "--gamma", "0"], "gamma must be"),
        (["--penalty", "mcp", "--p", "1.5"], "--p is the exponent of the power"),
        (["--gamma", "2", "--p", "1.5"], "it does not go with --gamma"),
        (["--penalty", "power", "--gamma", "2"], "--gamma belongs to the other penalties"),
        (["--split", "random"], "--split names the column 'random', which is not there"),
        (["--preset", "tiny"], "preset must be one of"),
        (["--stop-by", "luck"], "stop_by must be one of"),
        (["--stopping", "soon"], "stopping must be one of best, progress, published"),
        (["--budget", "0"], "budget must be auto or a positive number"),
        (["--hidden", "0"], "hidden must be an integer of 1 or more"),
        (["--split", "public"], "came without public splits"),
    ],
)
def test_mistakes_end_in_a_sentence(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    out = tmp_path / "out"
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), "--quiet", *arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_a_penalty_that_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--penalty", "mcp", "--gamma", "1.5", "--budget", "30", "--max-epochs", "3", "--seeds", "1")
    assert run(monkeypatch, "fit", str(folder), "-o", str(tmp_path / "out"), "--quiet", *flags) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "penalty = mcp" in shown
    assert "gamma = 1.5, unit = " in shown
    assert "p = " not in shown.split("Selected hyperparameters:")[1].split("Predictions")[0]
    kept = json.loads((tmp_path / "out" / "model.json").read_text())["config"]
    assert (kept["penalty"], kept["gamma"]) == ("mcp", 1.5)
    assert kept["unit"] != 1


def test_a_folder_with_other_things_in_it_is_not_touched(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter1.txt").write_text("years of work")
    assert run(monkeypatch, "fit", str(folder), "-o", str(precious), "--quiet") == 2
    assert "thesis" in capsys.readouterr().err
    assert (precious / "chapter1.txt").read_text() == "years of work"


def test_a_graph_without_labels_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.read_csv(folder / "nodes.csv").drop("label").write_csv(folder / "nodes.csv")
    assert run(monkeypatch, "fit", str(folder), "-o", str(tmp_path / "out"), "--quiet") == 2
    assert "has no labels" in capsys.readouterr().err


def start(folder: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "plap", "fit", str(folder), "-o", str(out), *SMALL, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
def test_killed_at_random_moments_it_leaves_a_whole_result_or_none(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    begin = time.perf_counter()
    assert start(folder, out).wait() == 0
    whole = time.perf_counter() - begin
    rng = np.random.default_rng(0)
    for k in range(20):
        process = start(folder, out, "--seed", str(k + 1))
        time.sleep(float(rng.uniform(0.3, 1.1)) * whole)
        process.kill()
        process.wait()
        assert load_model(out).classes == ("cat", "dog")
        assert pl.read_csv(out / "predictions.csv").height == 240
        assert load_metrics(out)["nodes"] == 240
    assert start(folder, out).wait() == 0
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("mygraph", "out")] == []


def test_ctrl_c_keeps_the_best_so_far(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    epochs = []

    @contextmanager
    def impatient(**_: Any) -> Iterator[Any]:
        def report(state: Any) -> None:
            epochs.append(state.epoch)
            if len(epochs) == 5:
                signal.raise_signal(signal.SIGINT)

        yield lambda name: report

    monkeypatch.setattr(import_module("plap.cli.fit"), "show_progress", impatient)
    out = tmp_path / "out"
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), "--no-tune", "--seeds", "2") == 3
    assert len(epochs) == 5
    assert "Training was interrupted by the user" in " ".join(capsys.readouterr().out.split())
    metrics = load_metrics(out)
    assert metrics["interrupted"] is True
    assert [method["name"] for method in metrics["methods"]] == ["pGNN"]
