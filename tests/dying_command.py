"""The plap command in a process that is killed once: when its first checkpoint has been written.

Usage: python dying_command.py FOLDER ARGUMENTS... The folder then has a file "killed", and a file "resumed"
when a later process goes on from a checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from plap.cli import main
from plap.training.pieces import checkpoints
from plap.training.pieces.checkpoints import Snapshot

_write, _decode = checkpoints.write, checkpoints.decode


def die_after_the_first(folder: Path) -> None:
    def write(path: Path, content: bytes) -> None:
        _write(path, content)
        if path.suffix == ".checkpoint" and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def decode(content: bytes, digest: str, path: Path) -> Snapshot:
        (folder / "resumed").touch()
        return _decode(content, digest, path)

    checkpoints.write, checkpoints.decode = write, decode


if __name__ == "__main__":
    die_after_the_first(Path(sys.argv[1]))
    sys.argv = ["plap", *sys.argv[2:]]
    main()
