"""Amounts of memory as people write them."""

from __future__ import annotations

import math
import numbers
import re

from plap.errors import InputError

MemoryBudget = int | str | None
"""Bytes, text such as ``"4GiB"``, or no limit."""

_UNITS = {
    **{"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40},
}


def parse_budget(value: MemoryBudget, name: str = "memory_budget") -> int | None:
    """A memory budget in bytes; None means no limit.

    Parameters
    ----------
    value : int, str or None
        Bytes, or a number with one of the units B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB
        (powers of 1024), in upper or lower case.
    name : str
        Name of the argument in error messages.

    Examples
    --------
    >>> parse_budget("1.5 GiB")
    1610612736
    >>> parse_budget("2GB")
    2000000000
    """
    if value is None:
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]+)\s*", value)
        if found is None or found[2].lower() not in _UNITS:
            raise InputError(f"{name} must be bytes or text like '512MB' or '4GiB', not {value!r}")
        size = int(float(found[1]) * _UNITS[found[2].lower()])
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool):
        size = int(value)
    else:
        raise InputError(f"{name} must be bytes or text like '512MB' or '4GiB', not {value!r}")
    if size <= 0:
        raise InputError(f"{name} must be positive, not {value!r}")
    return size


def readable(size: int) -> str:
    """``size`` bytes in the largest fitting unit, rounded up, so that it suffices when passed as a budget.

    Examples
    --------
    >>> readable(1610612736)
    '1.5 GiB'
    """
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        amount = size / _UNITS[unit.lower()]
        if amount >= 1:
            return f"{math.ceil(100 * amount) / 100:g} {unit}"
    return f"{size} B"
