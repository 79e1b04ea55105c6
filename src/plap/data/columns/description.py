"""Typed access to a JSON object that was read from a file and may be damaged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from plap.errors import InputError


class Description:
    """A JSON object whose entries are checked when they are asked for.

    Examples
    --------
    >>> Description({"scale": 2}, "age").number("scale")
    2.0
    >>> Description({"scale": "2"}, "age").number("scale")
    Traceback (most recent call last):
    plap.errors.InputError: the stored description of the columns is damaged: age has no valid 'scale'
    """

    def __init__(self, entries: object, where: str) -> None:
        self._where = where
        if not isinstance(entries, Mapping):
            raise InputError(f"the stored description of the columns is damaged: {where} is not an object")
        self._entries = entries

    def fail(self, key: str) -> NoReturn:
        """Refuse the description because of one entry."""
        raise InputError(
            f"the stored description of the columns is damaged: {self._where} has no valid {key!r}"
        )

    def child(self, key: str) -> Description:
        """Return an object inside this one."""
        if not isinstance(self._entries.get(key), Mapping):
            self.fail(key)
        return Description(self._entries[key], f"{self._where}.{key}")

    def number(self, key: str) -> float:
        """Return a finite number."""
        return self._number(key, self._entries.get(key))

    def positive(self, key: str) -> float:
        """Return a finite number above zero."""
        value = self.number(key)
        return value if value > 0 else self.fail(key)

    def count(self, key: str, least: int = 0) -> int:
        """Return a whole number of at least ``least``."""
        value = self._entries.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(key)
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._entries.get(key)
        return value if isinstance(value, bool) else self.fail(key)

    def text(self, key: str, among: tuple[str, ...] | None = None) -> str:
        """Return a string, one of ``among`` where that is given."""
        value = self._entries.get(key)
        if not isinstance(value, str) or (among is not None and value not in among):
            self.fail(key)
        return value

    def texts(self, key: str, among: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return distinct strings, each one of ``among`` where that is given."""
        values = self.items(key)
        known = all(isinstance(v, str) and (among is None or v in among) for v in values)
        if not known or len(set(values)) < len(values):
            self.fail(key)
        return tuple(values)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return finite numbers."""
        return tuple(self._number(key, value) for value in self.items(key))

    def items(self, key: str) -> list[Any]:
        """Return a list of anything."""
        values = self._entries.get(key)
        return values if isinstance(values, list) else self.fail(key)

    def _number(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.fail(key)
        return float(value)
