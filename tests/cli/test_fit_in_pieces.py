"""``plap fit`` in pieces and on folders of folders, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from torch_geometric.loader import DataLoader

import dying_command
import plap
from command import run
from plap.data.tables.collections import load_collection
from plap.fitting.artifacts import load_metrics, load_model
from plap.parts import pyg_graphs
from plap.training import RunConfig, build_module
from torchrun import torchrun

SHORT = ["--max-epochs", "12", "--p", "1.5", "--K", "2", "--quiet"]


def write_graph(place: Path, seed: int, *, several: bool = False, features: int = 6) -> None:
    """A homophilic graph of 60 nodes as tables."""
    data = plap.data.csbm(phi=0.7, n=60, f=features, d=6.0, seed=seed)
    place.mkdir(parents=True)
    source, target = data.graph.edge_index.numpy()
    pl.DataFrame({"source": source, "target": target}).write_csv(place / "edges.csv")
    words = ["cat" if value else "dog" for value in data.y.tolist()]
    rich = (data.x.to_dense()[:, 0] > 0).int().numpy()
    labels = {"label:cat": data.y.numpy(), "label:rich": rich} if several else {"label": words}
    x = data.x.to_dense().numpy()
    columns = {"id": np.arange(60), **labels, **{f"f{k}": x[:, k] for k in range(features)}}
    pl.DataFrame(columns).write_csv(place / "nodes.csv")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    for k in range(5):
        write_graph(tmp_path / "graphs" / f"g{k}", seed=k)
    return tmp_path / "graphs"


def test_two_processes_leave_what_one_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_graph(tmp_path / "graph", seed=3)
    flags = [
        str(tmp_path / "graph"),
        *SHORT,
        "--parts",
        "5",
        "--parts-per-batch",
        "2",
        "--pieces-per-step",
        "2",
    ]
    one, two = tmp_path / "one", tmp_path / "two"
    assert run(monkeypatch, "fit", *flags, "-o", str(one)) == 0
    (said,) = torchrun("-m", "plap", "fit", *flags, "-o", str(two), processes=2)
    assert said.count("method") == 1  # one process speaks for all
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "graph", "one", "two"]
    methods = [[method["name"] for method in load_metrics(out)["methods"]] for out in (one, two)]
    assert methods[0] == methods[1] == [
        "pGNN", "MLP", "gradient boosting", "label propagation", "majority class"
    ]  # fmt: skip
    tables = [pl.read_csv(out / "predictions.csv")["probability_cat"].to_numpy() for out in (one, two)]
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-3)
    assert load_metrics(two)["settings"]["pieces"]["parts"] == 5
    assert load_metrics(two)["members"][0]["epochs"] == 12


def test_resume_goes_on_where_a_killed_training_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_graph(tmp_path / "graph", seed=3)
    flags = [
        str(tmp_path / "graph"),
        *SHORT,
        "--parts",
        "4",
        "--checkpoint-every",
        "5",
        "-o",
        str(tmp_path / "out"),
    ]
    dying = [sys.executable, dying_command.__file__, str(tmp_path), "fit", *flags]
    killed = subprocess.run(dying, timeout=1200, check=False, capture_output=True)
    assert killed.returncode == -9
    assert not (tmp_path / "out").exists()
    left = sorted(path.name for path in (tmp_path / "out.checkpoints").iterdir())
    assert left == ["pgnn-0.checkpoint", "run-id"]
    assert run(monkeypatch, "fit", *flags, "--resume", "--mu", "0.3") == 2
    assert "out.checkpoints" in (said := capsys.readouterr().err)
    assert "other settings" in said
    assert run(monkeypatch, "fit", *flags, "--resume") == 0
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "out.checkpoints").exists()
    resumed = pl.read_csv(tmp_path / "out" / "predictions.csv")
    assert run(monkeypatch, "fit", *flags) == 0
    # the killed process may have compiled its own kernels, which round differently
    assert_frame_equal(resumed, pl.read_csv(tmp_path / "out" / "predictions.csv"), abs_tol=1e-4)


@pytest.mark.long
def test_two_machines_of_which_one_loses_its_process_leave_what_one_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_graph(tmp_path / "graph", seed=3)
    flags = [str(tmp_path / "graph"), *SHORT, "--parts", "4", "--pieces-per-step", "2"]
    one, two = tmp_path / "one", tmp_path / "two"
    assert run(monkeypatch, "fit", *flags, "-o", str(one)) == 0
    torchrun(
        dying_command.__file__, str(tmp_path), "fit", *flags, "-o", str(two), "--checkpoint-every", "5",
        agents=2, restarts=1,
    )  # fmt: skip
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"cache", "graph", "one", "two", "killed", "resumed"}
    tables = [pl.read_csv(out / "predictions.csv")["probability_cat"].to_numpy() for out in (one, two)]
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-3)


def test_resume_says_so_where_there_is_nothing_to_go_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_graph(tmp_path / "graph", seed=3)
    flags = [str(tmp_path / "graph"), *SHORT, "--parts", "4", "-o", str(tmp_path / "out")]
    assert run(monkeypatch, "fit", *flags, "--resume") == 0
    place = tmp_path / "out.checkpoints"
    assert (
        capsys.readouterr().err == f"plap: no checkpoint in {place}, so training starts from the beginning\n"
    )


@pytest.mark.parametrize("in_pieces", [[], ["--graphs-per-batch", "2"]], ids=["whole", "in pieces"])
def test_a_model_of_some_graphs_predicts_others(
    collection: Path, in_pieces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    more = in_pieces or ["--no-tune", "--seeds", "1"]
    assert run(monkeypatch, "fit", str(collection), "-o", str(out), *SHORT, *more) == 0
    metrics = load_metrics(out)
    assert metrics["split"]["kind"] == "graphs"
    assert metrics["split"]["sizes"] == [180, 60, 60]
    assert [method["name"] for method in metrics["methods"]] == [
        "pGNN", "MLP", "gradient boosting", "majority class",
    ]  # fmt: skip
    table = pl.read_csv(out / "predictions.csv")
    roles = (
        table.with_columns(graph=pl.col("node").str.head(2)).group_by("graph").agg(pl.col("role").unique())
    )
    assert roles["role"].list.len().to_list() == [1] * 5  # a graph is for one thing as a whole
    capsys.readouterr()

    write_graph(tmp_path / "new", seed=77)
    assert run(monkeypatch, "predict", str(out), str(tmp_path / "new"), "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["nodes"] == summary["known"] == 60
    write_graph(tmp_path / "wider", seed=77, features=7)
    assert run(monkeypatch, "predict", str(out), str(tmp_path / "wider")) == 0
    assert "1 column is ignored, because the model was trained without: 'f6'" in capsys.readouterr().err
    assert run(monkeypatch, "predict", str(out), str(collection), "--json") == 0
    assert json.loads(capsys.readouterr().out)["same_graph"] is True


def test_several_labels_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for k in range(3):
        write_graph(tmp_path / "graphs" / f"g{k}", seed=k, several=True)
    (tmp_path / "graphs" / "split.csv").write_text("graph,split\ng2,train\ng0,val\ng1,test\n")
    out = tmp_path / "out"
    assert run(
        monkeypatch, "fit", str(tmp_path / "graphs"), "-o", str(out), *SHORT, "--graphs-per-batch", "1"
    ) == 0  # fmt: skip
    metrics = load_metrics(out)
    assert metrics["split"]["kind"] == "public"
    assert 0 < metrics["methods"][0]["scores"]["micro_f1"] <= 1
    assert load_model(out).classes == ("cat", "rich")
    table = pl.read_csv(out / "predictions.csv")
    assert set(table.filter(pl.col("node").str.starts_with("g2/"))["role"]) == {"train"}
    capsys.readouterr()
    assert run(monkeypatch, "predict", str(out), str(tmp_path / "graphs" / "g1"), "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["micro_f1"] == pytest.approx(metrics["methods"][0]["scores"]["micro_f1"])


def test_pygs_loader_batches_a_collection(collection: Path) -> None:
    data = load_collection(collection)
    module = build_module(RunConfig(p=1.5), 6, 2).eval()
    whole = module(data.x, data.graph)
    batches = list(DataLoader(pyg_graphs(data), batch_size=2))
    assert [batch.num_nodes for batch in batches] == [120, 120, 60]
    for batch in batches:
        torch.testing.assert_close(module(batch.x, batch.edge_index, batch.edge_weight), whole[batch.n_id])


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--parts", "0"], "--parts must be 1 or more, not 0"),
        (["--parts", "999"], "parts is 999, but the graph has only 60 nodes"),
        (["--parts-per-batch", "2"], "--parts-per-batch goes with training in pieces"),
        (["--resume"], "--resume goes with training in pieces"),
        (["--parts", "3", "--budget", "9"], "--budget does not go with training in pieces"),
        (["--parts", "3", "--graphs-per-batch", "2"], "give one of them"),
        (["--graphs-per-batch", "2"], "graph is one graph: cut it into parts"),
        (["--parts", "3", "--device", "quantum"], "device must be auto, cpu, cuda, cuda:N or mps"),
        (["--parts", "3", "--evaluation", "some"], "evaluation must be one of auto, halos, whole"),
        (["--parts", "3", "--p", "0.5"], "p must be a number of at least 1, not 0.5"),
        (["--split", "graphs"], "graph is one graph, and only several can be shared out whole"),
    ],
)
def test_what_does_not_go_together_is_refused(
    flags: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_graph(tmp_path / "graph", seed=1)
    checkpoint = tmp_path / "out.checkpoints" / "pgnn-0.checkpoint"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"of an earlier training")
    assert run(monkeypatch, "fit", str(tmp_path / "graph"), "-o", str(tmp_path / "out"), *flags) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert checkpoint.read_bytes() == b"of an earlier training"


@pytest.mark.parametrize("flags", [[], ["--parts", "4"]], ids=["whole", "in pieces"])
def test_a_place_that_cannot_be_is_refused(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "fit", "csbm:phi=0.5", "-o", "/", *flags) == 2
    assert "--out: / is a mount point and cannot be replaced" in capsys.readouterr().err


def test_a_number_of_processes_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "two")
    assert run(monkeypatch, "fit", "csbm:phi=0.5", "-o", str(tmp_path / "out")) == 2
    assert "WORLD_SIZE must be an integer of 1 or more, not 'two'" in capsys.readouterr().err


def test_several_processes_need_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run(monkeypatch, "fit", "csbm:phi=0.5", "-o", str(tmp_path / "out")) == 2
    assert "several processes can only train in pieces" in capsys.readouterr().err
