"""Numbers as people write them, the same in every medium."""

from __future__ import annotations

import math
import re


def percent(value: float | None) -> str:
    """A share in percent.

    Examples
    --------
    >>> percent(0.8627)
    '86.3 %'
    """
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def shown(value: float | None, share: bool = True) -> str:
    """A score: a share in percent, anything else with three decimals or three significant digits.

    Examples
    --------
    >>> shown(0.8627), shown(12.3456, share=False), shown(-1e-6, share=False)
    ('86.3 %', '12.3', '0.000')
    """
    if share or value is None or not math.isfinite(value):
        return percent(value)
    if abs(value) >= 1000:
        return with_minus(f"{value:,.0f}")
    return with_minus(f"{value:.3g}" if abs(value) >= 1 else f"{round(value, 3) + 0.0:.3f}")


def number(value: object) -> str:
    """A hyperparameter or a weight with four significant digits; anything but a float as it is.

    Examples
    --------
    >>> number(0.123456), number(4), number("auto")
    ('0.1235', '4', 'auto')
    """
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "–"
    return str(value)


def count(value: int) -> str:
    """A count with commas between groups of three digits.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def with_minus(text: str) -> str:
    """The text with a minus sign instead of every hyphen in front of a digit.

    Examples
    --------
    >>> with_minus("-0.5 to 2")
    '−0.5 to 2'
    """
    return re.sub(r"-(?=[\d.])", "−", text)


def significant_decimals(value: float | None) -> int:
    """How many decimals show three significant digits; at most 3.

    Examples
    --------
    >>> [significant_decimals(value) for value in (0.0512, 5.125, 51.24, 1234.5)]
    [3, 2, 1, 0]
    """
    if value is None or value <= 0 or not math.isfinite(value):
        return 1
    return min(max(2 - math.floor(math.log10(value)), 0), 3)


def shortened(text: str, length: int) -> str:
    """At most ``length`` characters, the last one an ellipsis if something was cut off.

    Examples
    --------
    >>> shortened("Neural networks", 8)
    'Neural …'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def joined(words: list[str]) -> str:
    """An enumeration in a sentence.

    Examples
    --------
    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def counted(number_of: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "run"), counted(3, "run"), counted(4000, "node")
    ('1 run', '3 runs', '4,000 nodes')
    """
    return f"{number_of:,} {noun}{'' if number_of == 1 else 's'}"
