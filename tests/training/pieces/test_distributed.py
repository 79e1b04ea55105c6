"""Several processes against one: same losses, and what happens when one is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import training_worker as worker
from plap.training.pieces import train_in_pieces
from torchrun import torchrun

WORKER = Path(worker.__file__)


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    result = train_in_pieces(worker.pieces(), worker.CONFIG)
    return {"history": worker.history(result), "logits": result.logits}


def check(folder: Path, processes: int, alone: dict[str, Any]) -> None:
    """Every process has the losses and the predictions of one that was alone."""
    for rank in range(processes):
        result = json.loads((folder / f"rank{rank}.json").read_text())
        assert result["size"] == processes
        for name, values in alone["history"].items():
            assert result["history"][name] == pytest.approx(values, abs=1e-4), name
        torch.testing.assert_close(torch.tensor(result["logits"]), alone["logits"], rtol=1e-3, atol=1e-3)


def test_two_processes_train_as_one_does(alone: dict[str, Any], tmp_path: Path) -> None:
    torchrun(str(WORKER), str(tmp_path), "halos", "none", processes=2)
    check(tmp_path, 2, alone)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank0.json", "rank1.json", "run.checkpoint"]


def test_three_of_which_one_is_killed_start_anew_and_end_as_one_does(
    alone: dict[str, Any], tmp_path: Path
) -> None:
    torchrun(str(WORKER), str(tmp_path), "whole", "1", processes=3, restarts=1)
    check(tmp_path, 3, alone)
    assert json.loads((tmp_path / "rank0.json").read_text())["restarts"] == "1"


def test_two_machines_of_which_one_loses_its_process_end_as_one_does(
    alone: dict[str, Any], tmp_path: Path
) -> None:
    torchrun(str(WORKER), str(tmp_path), "whole", "1", agents=2, restarts=1)
    check(tmp_path, 2, alone)
    restarts = [json.loads((tmp_path / f"rank{rank}.json").read_text())["restarts"] for rank in range(2)]
    assert "1" in restarts  # each agent counts its own; the other may have seen no process of its own fail
