"""How a command ends early: SIGTERM as Ctrl-C, with an exit code that says whether there is a result."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from plap.fitting.search import StoppedTooEarlyError

INTERRUPTED, NO_RESULT = 3, 4
"""Exit codes: interrupted with a result, and without one."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does; an end without a result is one sentence and exit code 4."""
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        yield
    except (KeyboardInterrupt, StoppedTooEarlyError):
        print("plap: interrupted before there was a result, so nothing was written", file=sys.stderr)
        raise typer.Exit(NO_RESULT) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # ignored, as under nohup
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)
