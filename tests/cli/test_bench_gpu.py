"""``plap bench gpu``: the whole command in Triton's interpreter, and what it says without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from command import run

pytest.importorskip("triton", reason="the extra 'gpu' is not installed")

import gpu

PENALTIES = ("Power", "MCP", "SCAD", "Huber", "Welsch", "Geman", "Cauchy")


def test_the_whole_command_runs_in_the_interpreter(tmp_path: Path) -> None:
    """A tiny version, marked as one: every penalty against the oracle, times, training, histories."""
    file = tmp_path / "gpu.json"
    done = subprocess.run(
        [sys.executable, "-m", "plap", "bench", "gpu", "--json-out", str(file)],
        env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(file.read_text())
    assert result["verified"] is True
    assert result["machine"]["device"] == "none: Triton's interpreter on the CPU, a tiny version"
    rows: list[dict[str, Any]] = result["rows"]
    for name in PENALTIES:
        errors = [row for row in rows if row["part"] == "oracle" and row["case"].startswith(name)]
        assert {row["case"].split(", float")[1] for row in errors} == {
            "64 values", "64 gradients", "32 values", "32 gradients",
        }  # fmt: skip
        assert all(row["triton"] <= (1e-12 if "float64" in row["case"] else 1e-5) for row in errors)
    for part in ("forward", "forward + backward"):
        timed = [row for row in rows if row["part"] == part]
        assert timed
        assert all(min(row["triton"], row["torch"], row["sparse"]) > 0 for row in timed)
    assert [row["part"] for row in rows].count("training epoch") == 2  # stacked and single
    assert all(row["triton"] <= 1e-4 for row in rows if row["part"] == "history")
    printed = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(printed) == len(rows) + 2
    assert "tiny version" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_a_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "bench", "gpu") == 2
    said = capsys.readouterr().err
    assert "plap bench gpu needs a CUDA or ROCm device, and PyTorch sees none" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(("error", "code"), [(1e-13, 0), (1e-11, 1), (float("nan"), 1)])
def test_an_error_beyond_its_limit_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: float, code: int
) -> None:
    row = {"part": "oracle", "case": "Power(p=1.5)", "triton": error, "unit": "error", "wanted": 1e-12}
    monkeypatch.setattr(gpu, "_place", lambda device: torch.device("cpu"))
    for part in ("hub", "speed", "training"):
        monkeypatch.setattr(gpu, part, lambda *_: [])
    monkeypatch.setattr(gpu, "verification", lambda *_: [row])
    assert run(monkeypatch, "bench", "gpu") == code
    assert ("beyond its limit" in capsys.readouterr().out) == bool(code)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_everything_is_within_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gpu.json"
    assert run(monkeypatch, "bench", "gpu", "--json-out", file) == 0
    result = json.loads(file.read_text())
    assert result["verified"] is True
    peaks = [row for row in result["rows"] if row["part"].startswith("peak memory")]
    assert all(row["triton"] > 0 for row in peaks)
