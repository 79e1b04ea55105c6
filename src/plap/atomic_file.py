"""A file that is whole or not there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomic(path: Path, content: bytes) -> None:
    """Write beside ``path``, flush to the disk and rename: after a crash it is the old file or the new one.

    The folder must be there. What the system refuses is raised as OSError, and nothing is left behind.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
