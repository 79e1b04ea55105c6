"""Several processes on this machine against one: same losses, and what happens when one is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import training_worker as worker
from plap.minibatch import train_in_pieces

WORKER = Path(worker.__file__)


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    result = train_in_pieces(worker.pieces(), worker.CONFIG)
    return {"history": worker.history(result), "logits": result.logits}


def torchrun(processes: int, *arguments: str, restarts: int = 0) -> None:
    """Run a script or module in so many processes, on a port that is free."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", f"--max-restarts={restarts}"]
    command += ["--monitor-interval=0.2", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def check(folder: Path, processes: int, alone: dict[str, Any]) -> None:
    """Every process has the losses and the predictions of one that was alone."""
    for rank in range(processes):
        result = json.loads((folder / f"rank{rank}.json").read_text())
        assert result["size"] == processes
        for name, values in alone["history"].items():
            assert result["history"][name] == pytest.approx(values, abs=1e-4), name
        torch.testing.assert_close(torch.tensor(result["logits"]), alone["logits"], rtol=1e-3, atol=1e-3)


def test_two_processes_train_as_one_does(alone: dict[str, Any], tmp_path: Path) -> None:
    torchrun(2, str(WORKER), str(tmp_path), "halos", "none")
    check(tmp_path, 2, alone)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank0.json", "rank1.json", "run.checkpoint"]


def test_three_of_which_one_is_killed_start_anew_and_end_as_one_does(
    alone: dict[str, Any], tmp_path: Path
) -> None:
    torchrun(3, str(WORKER), str(tmp_path), "whole", "1", restarts=1)
    check(tmp_path, 3, alone)
    assert json.loads((tmp_path / "rank0.json").read_text())["restarts"] == "1"
