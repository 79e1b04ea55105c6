"""torchrun on this machine, with one agent or with several that stand for several machines."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence


def torchrun(*arguments: str, processes: int = 1, agents: int = 1, restarts: int = 0) -> list[str]:
    """Run a script or a module; returns what the processes of each agent printed."""
    port = free_port() if agents > 1 else 0  # a single one takes what is free by itself
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={agents}"]
    command += [f"--nproc-per-node={processes}", f"--max-restarts={restarts}", "--monitor-interval=0.2"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=test"]
    command += ["--local-addr=127.0.0.1", *arguments]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(agents)
    ]
    return outputs_of(started)


def outputs_of(started: Sequence[subprocess.Popen[str]]) -> list[str]:
    """What processes print that end well, all of them; none outlives the call."""
    try:
        said = [process.communicate(timeout=1200) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, (_, errors) in zip(started, said, strict=True):
        assert process.returncode == 0, errors[-4000:]
    return [output for output, _ in said]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
