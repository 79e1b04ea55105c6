"""`plap bench scale`: a hundred million entries in bounded memory, and what a budget costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

LARGE = (2_000_000, 100_000_000)
MIDDLE = (200_000, 1_000_000)
"""So that an array of nodes is above 32 MB: malloc keeps smaller ones when they are freed."""
CHANNELS = 64


def run(share: float = 1.0) -> dict[str, Any]:
    """Every section as plain numbers; the large graph has ``share`` of its full size."""
    nodes, entries = (int(share * count) for count in LARGE)
    return {
        "torch": torch.__version__,
        "share": share,
        "large": _in_new_process("large", nodes, entries, CHANNELS),
        "budgets": [
            _in_new_process(backend, *MIDDLE, CHANNELS, K) for backend in ("fused", "torch") for K in (4, 10)
        ],
    }


def _in_new_process(kind: str, *sizes: int) -> dict[str, Any]:
    """Memory is that of a process, so every measurement has one of its own."""
    command = [sys.executable, str(Path(__file__).parent / "scale_probe.py"), kind, *map(str, sizes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    print(json.dumps(run(share=0.05), indent=1))
