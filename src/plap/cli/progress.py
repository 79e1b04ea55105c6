"""While a command runs: how far it is (bars, lines or a log file), and how it ends early."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from plap.cli import interruptible
from plap.errors import InputError
from plap.fitting.search import Announce, StoppedTooEarlyError
from plap.training.loop import ProgressCallback
from plap.training.results import Progress as State

Say = Callable[[str], None]
_SHARE = 0.1
"""A line per this share of a phase."""


@contextmanager
def show_progress(*, quiet: bool, log: TextIO | None = None) -> Iterator[Announce | None]:
    """What a fit tells its progress to, None if nobody wants to know.

    On a terminal there is one bar per method on stderr, with the time left. Otherwise, and in the log, there
    is one line when a method begins and one per ten per cent of it.
    """
    with ExitStack() as stack:
        shown: list[Announce] = []
        if not quiet and sys.stderr.isatty():
            shown.append(stack.enter_context(_bars()))
        elif not quiet:
            shown.append(_lines(lambda text: print(f"plap: {text}", file=sys.stderr, flush=True)))
        if log is not None:
            shown.append(_lines(lambda text: write_log(log, text)))
        yield _together(shown) if shown else None


@contextmanager
def open_log(path: Path | None) -> Iterator[TextIO | None]:
    """A file that lines are appended to, or None."""
    if path is None:
        yield None
        return
    try:
        stream = path.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--log: {path} cannot be written ({error.strerror})") from None
    with stream:
        yield stream


def write_log(log: TextIO, text: str) -> None:
    """Add a line with the time; a log that cannot be written any more does not end the work."""
    try:
        log.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {text}\n")
        log.flush()
    except OSError as error:
        print(f"plap: the log cannot be written ({error.strerror})", file=sys.stderr)


def _together(shown: list[Announce]) -> Announce:
    def announce(name: str) -> ProgressCallback:
        callbacks = [each(name) for each in shown]

        def report(state: State) -> None:
            for callback in callbacks:
                if callback is not None:
                    callback(state)

        return report

    return announce


def _lines(say: Say) -> Announce:
    def announce(name: str) -> ProgressCallback:
        say(f"{name} begins")
        begin = time.monotonic()
        told, best = 0.0, -math.inf

        def report(state: State) -> None:
            nonlocal told, best
            best = max(best, state.best_score)  # the state knows those of the current batch alone
            if state.done < told + _SHARE and not (state.done >= 1 > told):
                return
            told = 1.0 if state.done >= 1 else state.done // _SHARE * _SHARE
            seconds = time.monotonic() - begin
            left = seconds * (1 - state.done) / max(state.done, 1e-9)
            text = f"best validation score {_score(best)}, about {duration(left)} left"
            say(f"{name}: {state.done:.0%}, {text}")

        return report

    return announce


def _score(score: float) -> str:
    """A share as per cent; other scores, negative where lower is better, as numbers."""
    return f"{score:.1%}" if 0 <= score <= 1 else f"{abs(score):.3g}"


def duration(seconds: float) -> str:
    """Such as "40 s" or "3 min".

    Examples
    --------
    >>> duration(39.6), duration(190), duration(7300)
    ('40 s', '3 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def _bars() -> Iterator[Announce]:
    columns = (TextColumn("{task.description:<18}"), BarColumn(), TextColumn("{task.fields[best]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:

        def announce(name: str) -> ProgressCallback:
            for earlier in bars.tasks:
                bars.update(earlier.id, completed=1.0)
            task = bars.add_task(name, total=1.0, best="")

            best = -math.inf

            def report(state: State) -> None:
                nonlocal best
                best = max(best, state.best_score)
                bars.update(task, completed=state.done, best=f"validation {_score(best)}")

            return report

        yield announce


INTERRUPTED = 3
"""Exit code: interrupted with a result."""


@contextmanager
def ends_early() -> Iterator[None]:
    """For a command that fits: one that is stopped before there is a result says so, with exit code 4."""
    with interruptible():
        try:
            yield
        except StoppedTooEarlyError:
            raise KeyboardInterrupt from None
