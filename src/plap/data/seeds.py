"""From a seed to a generator, with a clear word on a bad seed."""

from __future__ import annotations

import numpy as np

from plap.errors import InputError


def check_seed(seed: int, most: int | None = None) -> int:
    """Return ``seed`` if it is an integer of 0 or more (and at most ``most``)."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be an integer of 0 or more, not {seed!r}")
    if most is not None and seed > most:
        raise InputError(f"seed must be at most {most}, not {seed}")
    return int(seed)


def generator(seed: int) -> np.random.Generator:
    """Return NumPy's PCG64 generator of that seed.

    Examples
    --------
    >>> int(generator(0).integers(100))
    85
    """
    return np.random.Generator(np.random.PCG64(check_seed(seed)))
