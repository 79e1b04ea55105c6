"""Exported programs compute what plap predicts, without plap."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import command
import plap
from plap.data.tasks import Multiclass, Multilabel, Regression, Task
from plap.fitting.artifacts import Predictions, ResultFiles, SavedModel, write_result
from plap.fitting.export import DESCRIPTION, export_model
from plap.fitting.prediction import predict_nodes
from plap.training import RunConfig, build_module

TWO = Multiclass(("no", "yes"), positive=1, threshold=0.3, prior_shift=0.7, temperature=1.6)
CASES: dict[str, tuple[Task, dict[str, Any]]] = {
    "p = 1": (Multiclass(("a", "b", "c")), {"p": 1.0}),
    "p = 2": (Multiclass(("a", "b", "c")), {"p": 2.0}),
    "mcp": (TWO, {"penalty": "mcp", "gamma": 2.0, "unit": 0.7}),
    "huber": (TWO, {"penalty": "huber", "gamma": 0.5, "unit": 2.0, "K": 2}),
    "labels": (Multilabel(("a", "b")), {"p": 2.5}),
    "numbers": (Regression(centre=300.0, scale=50.0), {"p": 1.5}),
    "deep": (TWO, {"model": "deep-pgnn", "layers": 2, "norm": "batch"}),
    "no edges": (TWO, {"model": "mlp"}),
}


def fitted(task: Task, **settings: Any) -> tuple[SavedModel, plap.data.GraphData]:
    """A model of two members that nobody trained, and a graph for it."""
    data = plap.data.csbm(phi=0.5, n=80, f=6, d=5.0, seed=1)
    config = RunConfig(**{"hidden": 8, **settings})
    torch.manual_seed(0)
    states = [build_module(config, 6, task.num_outputs).state_dict() for _ in range(2)]
    return SavedModel(config.to_dict(), states, task, 6), data


def inputs(data: plap.data.GraphData) -> tuple[Tensor, Tensor, Tensor]:
    return data.x, data.graph.edge_index, data.graph.weight


ALONE = """
import sys
sys.modules["plap"] = None  # importing it is an error
import torch
folder = sys.argv[1]
program = torch.export.load(folder + "/model.pt2").module()
with torch.no_grad():
    result = program(*torch.load(folder + "/inputs.pt", weights_only=True))
torch.save(result, folder + "/result.pt")
"""


def test_the_command_writes_what_predicts_like_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = fitted(TWO, p=1.5, K=1)
    expected = predict_nodes(model, data)
    files = ResultFiles(Predictions(range(80), TWO, expected.probabilities, ["test"] * 80), model, {}, "")
    write_result(tmp_path / "out", files)
    assert command.run(monkeypatch, "export", tmp_path / "out", tmp_path / "model.pt2", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["members"] == 2
    assert said["outputs"] == ["no", "yes"]
    assert said["difference"] < 1e-6
    assert said["relations"] == {}
    got = torch.export.load(tmp_path / "model.pt2").module()(*inputs(data))
    assert not got.requires_grad
    torch.testing.assert_close(got, torch.from_numpy(expected.probabilities), rtol=0, atol=1e-6)


@pytest.mark.long
def test_a_program_runs_where_plap_cannot_be_imported(tmp_path: Path) -> None:
    model, data = fitted(TWO, p=1.5)
    export_model(model, tmp_path / "model.pt2")
    torch.save(inputs(data), tmp_path / "inputs.pt")
    subprocess.run([sys.executable, "-c", ALONE, str(tmp_path)], check=True, capture_output=True)
    got = torch.load(tmp_path / "result.pt", weights_only=True)
    expected = torch.from_numpy(predict_nodes(model, data).probabilities)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_programs_of_every_kind_agree_with_plap(case: str, tmp_path: Path) -> None:
    task, settings = CASES[case]
    model, data = fitted(task, **settings)
    assert export_model(model, tmp_path / "model.pt2").difference < 1e-6
    extra = {DESCRIPTION: ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=extra).module()
    assert json.loads(extra[DESCRIPTION])["classes"] == list(task.class_names)
    with torch.no_grad():
        got = program(*inputs(data))
        alone = program(data.x[:3], torch.zeros(2, 0, dtype=torch.long), torch.zeros(0))
    expected = torch.from_numpy(predict_nodes(model, data).probabilities)
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-6)
    assert alone.shape == (3, task.num_outputs)
    assert bool(alone.isfinite().all())


@pytest.mark.long
@pytest.mark.parametrize("case", ["p = 1", "mcp", "deep", "numbers"])
def test_onnx_agrees_with_plap(case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    task, settings = CASES[case]
    model, data = fitted(task, **settings)
    export_model(model, tmp_path / "model.onnx")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    names = [entry.name for entry in session.get_inputs()]
    assert names == ["x", "edge_index", "edge_weight"]
    (got,) = session.run(None, dict(zip(names, (value.numpy() for value in inputs(data)), strict=True)))
    expected = torch.from_numpy(predict_nodes(model, data).probabilities)
    torch.testing.assert_close(torch.from_numpy(got), expected, rtol=1e-6, atol=1e-6)
    assert DESCRIPTION in session.get_modelmeta().custom_metadata_map


def test_factors_of_relations_go_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, _ = fitted(TWO, p=1.5, K=1)
    model = replace(model, relations={"calls": 0.5, "mails": 2.0})
    extra = {DESCRIPTION: ""}
    assert export_model(model, tmp_path / "model.pt2").relations == {"calls": 0.5, "mails": 2.0}
    torch.export.load(tmp_path / "model.pt2", extra_files=extra)
    assert json.loads(extra[DESCRIPTION])["relations"] == {"calls": 0.5, "mails": 2.0}
    monkeypatch.setattr(
        "plap.cli.export.export_model", lambda *_: export_model(model, tmp_path / "again.pt2")
    )
    assert command.run(monkeypatch, "export", tmp_path / "out", tmp_path / "again.pt2") == 0
    assert "each relation's edges by its factor first (calls 0.5, mails 2)" in capsys.readouterr().out


def test_bad_requests_end_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, _ = fitted(TWO, p=1.5)
    with pytest.raises(plap.InputError, match=r"model\.txt must end in \.pt2 or \.onnx"):
        export_model(model, tmp_path / "model.txt")
    gcn, _ = fitted(TWO, model="gcn")
    with pytest.raises(plap.InputError, match="pGNN, MLP and deep pGNN can be exported, not gcn"):
        export_model(gcn, tmp_path / "model.pt2")
    assert not (tmp_path / "model.pt2").exists()
    assert command.run(monkeypatch, "export", tmp_path / "nothing", tmp_path / "model.pt2") == 2
    assert "does not exist" in capsys.readouterr().err
