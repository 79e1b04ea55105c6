"""One partition on disk: a SHA-256 (32 bytes) and then each node's part (little-endian int32)."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import numpy as np

from plap.atomic_file import write_atomic

_DIGEST = 32


def read(path: Path, num_nodes: int, parts: int) -> np.ndarray | None:
    """The parts [N], or None where there is no such file or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = content[_DIGEST:]
    if len(payload) != 4 * num_nodes or hashlib.sha256(payload).digest() != content[:_DIGEST]:
        return None
    part = np.frombuffer(payload, dtype="<i4")
    return part if part.size and part.min() >= 0 and part.max() < parts else None


def write(path: Path, part: np.ndarray) -> None:
    """Put the file in place in one step; a disk that takes nothing costs only the time to cut again."""
    payload = part.astype("<i4").tobytes()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, hashlib.sha256(payload).digest() + payload)
