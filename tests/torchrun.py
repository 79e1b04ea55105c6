"""torchrun on this machine, with one agent or with several that stand for several machines."""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def torchrun(*arguments: str, processes: int = 1, agents: int = 1, restarts: int = 0) -> list[str]:
    """Run a script or a module; returns what the processes of each agent printed."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={agents}"]
    command += [f"--nproc-per-node={processes}", f"--max-restarts={restarts}", "--monitor-interval=0.2"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{_port()}", "--rdzv-id=test"]
    command += ["--local-addr=127.0.0.1", *arguments]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(agents)
    ]
    try:
        said = [agent.communicate(timeout=400) for agent in started]
    finally:
        for agent in started:
            agent.kill()
    for agent, (_, errors) in zip(started, said, strict=True):
        assert agent.returncode == 0, errors[-4000:]
    return [output for output, _ in said]


def _port() -> int:
    """One that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
