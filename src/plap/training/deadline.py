"""A moment at which training ends, whatever it has reached."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass

from plap.errors import InputError

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
