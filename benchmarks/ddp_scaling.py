"""`plap bench ddp-scaling`: an epoch shared by two processes against the same epoch by one."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

ROUNDS = 3


def run(rounds: int = ROUNDS) -> dict[str, Any]:
    """Seconds of an epoch of the same global batches, one thread a process; the two take turns."""
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(rounds):
        for processes, times in found.items():
            times.append(_epoch(processes))
    rows = []
    for what, of in (
        ("training steps", lambda times: times["epoch"] - times["evaluation"]),
        ("epoch with evaluation", lambda times: times["epoch"]),
    ):
        one, two = (statistics.median(map(of, times)) for times in found.values())
        rows.append(
            {
                "what": what,
                "one_process_s": one,
                "two_processes_s": two,
                "speedup": one / two,
                "efficiency": one / two / 2,
            }
        )
    return {"torch": torch.__version__, "cores": os.cpu_count(), "ddp": rows}


def _epoch(processes: int) -> dict[str, float]:
    """Median seconds, by the first process's clock."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0"]
    command += [str(Path(__file__).parent / "ddp_probe.py")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds
