"""The ``plap`` command's entry point, apart from the package so that it runs before PyTorch is loaded.

PyTorch's OpenMP threads spin while they wait. Where other programs use the same cores, a spinning thread
holds up the one it waits for until the scheduler steps in, and training takes many times as long; threads
that sleep cost a few microseconds. The runtime reads this wish once, when it is loaded.

Loading takes seconds, in which the command may be interrupted; so what happens then is here as well.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

NO_RESULT = 4
"""Exit code: interrupted without a result."""
NOTHING_WRITTEN = "plap: interrupted before there was a result, so nothing was written"


def main() -> None:
    """Ask for waiting threads to sleep, unless the user wants otherwise, and run the command."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    before = signal.signal(signal.SIGTERM, as_interrupt)
    try:
        from plap.cli import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        print(NOTHING_WRITTEN, file=sys.stderr)
        sys.exit(NO_RESULT)
    signal.signal(signal.SIGTERM, before)
    run()


def as_interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal as Ctrl-C is handled at the moment."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # ignored, as under nohup
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)
