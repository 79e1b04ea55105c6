"""Numbers and rare classes through the commands: a folder of tables in, predictions and scores out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command import run
from plap.data import GraphData
from plap.data.tables import load_folder
from plap.fitting.artifacts import load_metrics
from rare_graph import number_graph, rare_graph

SMALL = ("--no-tune", "--seeds", "1", "--max-epochs", "20", "-q")


def written(data: GraphData, folder: Path) -> Path:
    folder.mkdir()
    source, target = data.graph.edge_index.numpy()
    once = source < target
    pl.DataFrame({"source": source[once], "target": target[once]}).write_csv(folder / "edges.csv")
    labels = [label or "" for label in data.task.words(data.y)]
    columns = {"id": np.arange(data.graph.num_nodes), "label": labels}
    columns |= {f"f{k}": data.x[:, k].numpy() for k in range(data.x.shape[1])}
    pl.DataFrame(columns).write_csv(folder / "nodes.csv")
    return folder


def test_numbers_from_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = written(number_graph(200), tmp_path / "graph"), tmp_path / "out"
    assert "so a number is predicted for each node" in load_folder(folder).notes[0]
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), *SMALL, "--metric", "mae") == 0
    shown = capsys.readouterr().out
    assert "mean absolute error" in shown
    metrics = load_metrics(out)
    assert (metrics["task"], metrics["metric"]) == ("regression", "mae")
    assert list(metrics["methods"][0]["scores"]) == ["mae", "r2", "rmse"]
    table = pl.read_csv(out / "predictions.csv")
    assert table.columns == ["node", "role", "known", "predicted", "lower", "upper"]
    assert run(monkeypatch, "predict", str(out), str(folder), "-o", str(tmp_path / "new.csv")) == 0
    assert "mean absolute error is" in capsys.readouterr().out
    again = pl.read_csv(tmp_path / "new.csv")
    np.testing.assert_allclose(again["predicted"], table["predicted"], rtol=1e-3)
    assert run(monkeypatch, "report", str(out)) == 0
    assert "mean absolute error" in capsys.readouterr().out
    page = (out / "report.html").read_text()
    for command in (["inspect", out], ["inspect", out, "--edges-out", tmp_path / "e.csv"], ["attack", out]):
        assert run(monkeypatch, *command) == 2
        assert "holds a model for numbers; only a model of one class per node" in capsys.readouterr().err
    assert "Check the least trusted edges" in page
    assert "--edges-out" not in page
    assert "plap attack" not in page


def test_a_rare_class_from_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = written(rare_graph(300), tmp_path / "graph"), tmp_path / "out"
    flags = (*SMALL, "--conformal", "0.9", "--class-weight", "none", "--json")
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), *flags) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["metric"] == "average_precision"
    assert metrics["decision"]["class_weights"] is None
    assert any("Classes are imbalanced" in note for note in metrics["notes"])
    assert "set" in pl.read_csv(out / "predictions.csv").columns


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--metric", "r2"), "metric 'r2' is not one of those for multiclass data"),
        (("--class-weight", "even"), "class_weight must be 'balanced'"),
        (("--conformal", "90"), "conformal must be a coverage between 0 and 1"),
    ],
)
def test_flags_that_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...], message: str,
) -> None:  # fmt: skip
    folder = written(rare_graph(100), tmp_path / "graph")
    assert run(monkeypatch, "fit", str(folder), "-o", str(tmp_path / "out"), *SMALL, *flags) == 2
    assert message in capsys.readouterr().err
