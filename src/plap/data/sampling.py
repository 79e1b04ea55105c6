"""Random numbers by seed, and random sets of node pairs: exact, in time near linear in their number."""

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


def sample_distinct(rng: np.random.Generator, population: int, size: int) -> np.ndarray:
    """Return ``size`` distinct integers of 0..population-1, ascending, every such set equally likely.

    Independent draws are made until ``size`` different ones have come up; beyond half the population,
    those to leave out are drawn instead.

    Examples
    --------
    >>> sample_distinct(np.random.default_rng(0), 5, 5)
    array([0, 1, 2, 3, 4])
    """
    if size > population // 2:
        left_out = sample_distinct(rng, population, population - size)
        keep = np.ones(population, dtype=bool)
        keep[left_out] = False
        return np.flatnonzero(keep)
    found = np.empty(0, dtype=np.int64)
    while found.size < size:
        found = np.sort(np.concatenate([found, rng.integers(population, size=size - found.size)]))
        found = found[np.concatenate([[True], found[1:] != found[:-1]])]
    return found


def rank_pairs(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Number the pairs i < j as (0,1), (0,2), (1,2), (0,3), ...: rank = j(j-1)/2 + i.

    Examples
    --------
    >>> rank_pairs(np.array([0, 1, 0]), np.array([2, 2, 3]))
    array([1, 2, 3])
    """
    j = j.astype(np.int64)
    rank: np.ndarray = j * (j - 1) // 2 + i
    return rank


def unrank_pairs(rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Invert :func:`rank_pairs`.

    Examples
    --------
    >>> unrank_pairs(np.array([0, 1, 2, 3]))
    (array([0, 0, 1, 0]), array([1, 2, 2, 3]))
    """
    j = ((1 + np.sqrt(1 + 8 * rank.astype(np.float64))) / 2).astype(np.int64)
    # The square root is rounded: it may land on the wrong side of an integer.
    j -= j * (j - 1) // 2 > rank
    j += j * (j + 1) // 2 <= rank
    return rank - j * (j - 1) // 2, j


def sample_absent_pairs(rng: np.random.Generator, nodes: int, present: np.ndarray, size: int) -> np.ndarray:
    """Return the ranks of ``size`` distinct pairs that are not in ``present`` (ranks, ascending).

    The v-th absent pair is v + the number of present ones below it, found by bisection, so no draw is
    ever thrown away however dense the graph is.
    """
    absent = nodes * (nodes - 1) // 2 - present.size
    chosen = sample_distinct(rng, absent, size)
    absent_below = present - np.arange(present.size)
    return chosen + np.searchsorted(absent_below, chosen, side="right")
