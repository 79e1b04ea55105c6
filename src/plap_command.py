"""The ``plap`` command's entry point, apart from the package so that it runs before PyTorch is loaded.

PyTorch's OpenMP threads spin while they wait. Where other programs use the same cores, a spinning thread
holds up the one it waits for until the scheduler steps in, and training takes many times as long; threads
that sleep cost a few microseconds. The runtime reads this wish once, when it is loaded.
"""

from __future__ import annotations

import os


def main() -> None:
    """Ask for waiting threads to sleep, unless the user wants otherwise, and run the command."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from plap.cli import main as run  # noqa: PLC0415

    run()
