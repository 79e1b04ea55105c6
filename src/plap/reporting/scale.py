"""From numbers to positions in a picture."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from plap.reporting.number_text import with_minus

_MOST_TICKS = 6


@dataclass(frozen=True)
class Tick:
    """A position on an axis and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Scale:
    """A linear map from [low, high] to [start, end], with round numbers along it.

    Examples
    --------
    >>> scale = Scale.around([0.12, 0.83], 0, 100)
    >>> scale.low, scale.high, scale.values
    (0.0, 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    >>> scale(0.5)
    50.0
    """

    low: float
    high: float
    start: float
    end: float
    values: tuple[float, ...]
    """Round numbers from ``low`` to ``high``."""

    @classmethod
    def around(
        cls, values: Iterable[float], start: float, end: float, count: int = 5, *, tight: bool = False
    ) -> Scale:
        """A scale that contains all finite values; it begins and ends at round numbers unless ``tight``."""
        finite = [value for value in values if math.isfinite(value)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        if high - low < 1e-9 * max(abs(high), 1e-300):
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        step = _round_step((high - low) / count)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        digits = max(0, -math.floor(math.log10(step)) + 1)
        rounds = tuple(round(k * step, digits) + 0.0 for k in range(first, last + 1))
        if tight:
            return cls(low, high, start, end, tuple(value for value in rounds if low <= value <= high))
        return cls(rounds[0], rounds[-1], start, end, rounds)

    def __call__(self, value: float) -> float:
        """The position of a value to a hundredth, clipped to the ends of the scale."""
        share = (value - self.low) / (self.high - self.low)
        share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 1.0
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self, *, percent: bool = False, most: int = _MOST_TICKS) -> tuple[Tick, ...]:
        """The round numbers as ticks; every second one if there are more than ``most``."""
        factor, unit = (100, " %") if percent else (1, "")
        shown = self.values if len(self.values) <= most else self.values[::2]
        return tuple(Tick(self(value), with_minus(f"{factor * value:g}{unit}")) for value in shown)


def _round_step(width: float) -> float:
    """The smallest of …, 0.1, 0.2, 0.5, 1, 2, 5, … that is not below ``width``."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= width * (1 - 1e-9))
