"""When training ends: by early stopping, by Ctrl-C, or when its time is over."""

from __future__ import annotations

import math
import re
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plap.errors import InputError
from plap.training.config import RunConfig


class EarlyStopping:
    """Early stopping of several runs, each by its own configuration.

    An epoch with a finite validation loss is better than the best so far if its score is higher, or equal
    with a lower loss; with ``stop_by="loss"``, if its loss is lower. A run ends after ``max_epochs``, or
    ``patience`` epochs after its best one; other values of ``stopping`` change that, see
    :attr:`RunConfig.stopping`.

    Parameters
    ----------
    configs : one RunConfig per run

    Examples
    --------
    >>> rule = EarlyStopping([RunConfig(patience=2)])
    >>> [bool(rule.note(np.array([loss]), np.array([0.5])).size) for loss in (1.0, 0.9, 0.9, 0.95)]
    [True, True, False, False]
    >>> int(rule.best_epoch[0]), rule.over.tolist()
    (2, [True])
    >>> rule = EarlyStopping([RunConfig(patience=2, stopping="progress")])
    >>> scores = (0.5, 0.4, 0.4, 0.4)  # the loss falls all the time
    >>> [bool(rule.note(np.array([1 / (k + 1)]), np.array([s])).size) for k, s in enumerate(scores)]
    [True, False, False, False]
    >>> int(rule.best_epoch[0]), rule.over.tolist()
    (1, [False])
    """

    def __init__(self, configs: Sequence[RunConfig]) -> None:
        count = len(configs)
        self._limits = np.array([(config.max_epochs, config.patience) for config in configs])
        self._by_score = np.array([config.stop_by == "accuracy" for config in configs])
        self._progress = np.array([config.stopping == "progress" for config in configs])
        self._published = np.array([config.stopping == "published" for config in configs])
        self.epoch = 0
        """Epochs so far."""
        self.best_epoch: NDArray[np.int64] = np.zeros(count, dtype=np.int64)
        """Counted from 1; 0 before the first epoch with a finite loss."""
        self.best_score: NDArray[np.float64] = np.full(count, -np.inf)
        self.best_loss: NDArray[np.float64] = np.full(count, np.inf)
        self._lowest_loss: NDArray[np.float64] = np.full(count, np.inf)
        self._counted_from: NDArray[np.int64] = np.zeros(count, dtype=np.int64)

    def note(self, loss: NDArray[Any], score: NDArray[Any]) -> NDArray[np.int64]:
        """Record an epoch's validation loss and score [R]; returns the runs whose best epoch this is."""
        self.epoch += 1
        loss = np.where(np.isfinite(loss), loss, np.inf)
        ties = ~self._published & (score == self.best_score) & (loss < self.best_loss)
        better = np.where(self._by_score, (score > self.best_score) | ties, loss < self.best_loss)
        runs: NDArray[np.int64] = np.flatnonzero(better & np.isfinite(loss))
        self.best_epoch[runs], self.best_score[runs], self.best_loss[runs] = (
            self.epoch,
            score[runs],
            loss[runs],
        )
        self._counted_from[runs] = self.epoch
        self._counted_from[self._progress & (loss < self._lowest_loss)] = self.epoch
        self._lowest_loss = np.minimum(self._lowest_loss, loss)
        return runs

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which runs have ended [R]."""
        longest, patience = self._limits.T
        waited = (self.epoch - self._counted_from >= patience) & ~self._published
        return np.asarray((self.epoch >= longest) | waited)

    def keep(self, runs: NDArray[np.int64]) -> None:
        """Continue with these runs only."""
        self._limits, self._by_score = self._limits[runs], self._by_score[runs]
        self._progress, self._published = self._progress[runs], self._published[runs]
        self._lowest_loss, self._counted_from = self._lowest_loss[runs], self._counted_from[runs]
        self.best_epoch, self.best_score = self.best_epoch[runs], self.best_score[runs]
        self.best_loss = self.best_loss[runs]


class Interrupts:
    """Ctrl-C as a flag that is read between epochs, so that nothing is left half-written.

    Inside the ``with`` block the first Ctrl-C sets ``pending``; a second one raises KeyboardInterrupt as
    usual. Where Ctrl-C is ignored, as under nohup, and the program handles SIGTERM, that signal does. Outside
    the main thread, and where the program handles SIGINT itself, nothing is changed.
    """

    def __init__(self) -> None:
        self.pending = False
        self._before: Any = None
        self._number = signal.SIGINT

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread():
            return self
        handler = signal.getsignal(signal.SIGINT)
        ended = signal.getsignal(signal.SIGTERM)
        if handler is signal.SIG_IGN and callable(ended):
            self._number = signal.SIGTERM
            taken = isinstance(getattr(ended, "__self__", None), Interrupts)
        else:
            taken = handler is not signal.default_int_handler
        if not taken:
            self._before = signal.signal(self._number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(self._number, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True


_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PATTERN = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|min|m|h)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Deadline:
    """The end of a time limit; ``end`` is on the clock of :func:`time.perf_counter`.

    Examples
    --------
    >>> Deadline.of(None).left, Deadline.of(None).passed
    (inf, False)
    >>> 590 < Deadline.of("10m").left <= 600, Deadline.of(0.0001).part(0.5).left < 0.001
    (True, True)
    """

    end: float = math.inf

    @classmethod
    def of(cls, limit: TimeLimit) -> Deadline:
        """So long from now; what is a deadline already stays."""
        if isinstance(limit, Deadline):
            return limit
        return cls() if limit is None else cls(time.perf_counter() + parse_duration(limit))

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return self.end < math.inf

    @property
    def left(self) -> float:
        """Seconds until then, not less than 0."""
        return max(0.0, self.end - time.perf_counter())

    @property
    def passed(self) -> bool:
        """Whether it is over."""
        return time.perf_counter() >= self.end

    def part(self, share: float) -> Deadline:
        """The moment when this share of what is left now will have gone by."""
        return self if not self.is_set else Deadline(time.perf_counter() + share * self.left)


TimeLimit = float | str | Deadline | None
"""Seconds, or text such as "90s", "10m" or "1.5h"; None for no limit."""


def parse_duration(limit: float | str, name: str = "time_limit") -> float:
    """Seconds of a number or of text with a unit.

    Examples
    --------
    >>> parse_duration("10m"), parse_duration("1.5 h"), parse_duration(90), parse_duration("45")
    (600.0, 5400.0, 90.0, 45.0)
    """
    if isinstance(limit, bool) or not isinstance(limit, int | float | str):
        raise InputError(f"{name} must be a number of seconds or text such as 10m, not {limit!r}")
    if isinstance(limit, str):
        match = _PATTERN.fullmatch(limit)
        if match is None:
            raise InputError(f"{name} must look like 90s, 10m or 1.5h, not {limit!r}")
        seconds = float(match[1]) * _UNITS[(match[2] or "s").lower()]
    else:
        seconds = float(limit)
    if not 0 < seconds < math.inf:
        raise InputError(f"{name} must be positive, not {limit!r}")
    return seconds
