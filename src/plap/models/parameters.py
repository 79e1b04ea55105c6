"""A model's own parameters: a frozen dataclass whose fields say which values they take.

>>> @dataclass(frozen=True)
... class MyParameters(Parameters):
...     hidden: int = integer(16)
...     slope: float = number(0.2, at_least=0)
>>> MyParameters(slope=1)
MyParameters(hidden=16, slope=1.0)
>>> MyParameters(hidden=0)
Traceback (most recent call last):
plap.errors.InputError: hidden must be an integer of 1 or more, not 0
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from plap.errors import InputError

_RULE = "plap.rule"


@dataclass(frozen=True)
class Rule:
    """Which values a field takes."""

    wanted: str
    """As it stands behind "must be"."""
    read: Callable[[Any], Any]
    """The value in its own type, or None for one that is not allowed."""

    def __call__(self, name: str, value: Any) -> Any:
        """The value of the field ``name``, refused where the rule does not allow it."""
        found = self.read(value)
        if found is None:
            raise InputError(f"{name} must be {self.wanted}, not {value!r}")
        return found


@dataclass(frozen=True)
class Parameters:
    """Base of every model's parameters; fields without a rule take any value that JSON has."""

    def __post_init__(self) -> None:
        apply_rules(self)


def apply_rules(instance: Any) -> None:
    """Check every field of a dataclass that has a rule, and store it in its own type."""
    for entry in fields(instance):
        rule = entry.metadata.get(_RULE)
        if rule is not None:
            object.__setattr__(instance, entry.name, rule(entry.name, getattr(instance, entry.name)))


def number(
    default: float,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> Any:
    """A field for a finite number within these bounds."""

    def read(value: Any) -> float | None:
        if not _is(numbers.Real, value) or not math.isfinite(value):
            return None
        inside = (
            (at_least is None or value >= at_least)
            and (above is None or value > above)
            and (at_most is None or value <= at_most)
            and (below is None or value < below)
        )
        return float(value) if inside else None

    if at_least is not None and at_most is not None:
        wanted = f"a number from {at_least:g} to {at_most:g}"
    elif above == 0 and at_most is None and below is None:
        wanted = "a positive number"
    else:
        bounds = {"of at least": at_least, "above": above, "of at most": at_most, "less than": below}
        said = [f"{words} {bound:g}" for words, bound in bounds.items() if bound is not None]
        wanted = f"a number {' and '.join(said)}" if said else "a finite number"
    return _field(default, Rule(wanted, read))


def share(default: float) -> Any:
    """A field for a number of at least 0 and less than 1, such as a dropout rate."""
    return number(default, at_least=0, below=1)


def integer(default: int, *, at_least: int = 1, at_most: int | None = None) -> Any:
    """A field for an integer within these bounds."""

    def read(value: Any) -> int | None:
        inside = _is(numbers.Integral, value) and value >= at_least and (at_most is None or value <= at_most)
        return int(value) if inside else None

    wanted = (
        f"an integer of {at_least} or more" if at_most is None else f"an integer from {at_least} to {at_most}"
    )
    return _field(default, Rule(wanted, read))


def switch(default: bool) -> Any:
    """A field for True or False.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Own(Parameters):
    ...     residual: bool = switch(True)
    >>> Own(residual=False)
    Own(residual=False)
    """
    return _field(default, Rule("True or False", lambda value: value if isinstance(value, bool) else None))


def choice(default: str, *options: str) -> Any:
    """A field for one of some words."""
    rule = Rule(f"one of {', '.join(options)}", lambda value: value if value in options else None)
    return _field(default, rule)


def _field(default: Any, rule: Rule) -> Any:
    return field(default=default, metadata={_RULE: rule})


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
