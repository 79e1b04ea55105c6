"""Sharing out a whole number in proportion."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def apportion(total: int, shares: Sequence[Fraction]) -> tuple[int, ...]:
    """Share out ``total`` by largest remainder: each part is its quota rounded down or up.

    Equal remainders are served in order. If the first part would get nothing of a positive total, it gets
    one from the part that was rounded up with the smallest remainder, which keeps every part within one
    of its quota.

    Examples
    --------
    >>> rates = Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)
    >>> apportion(10, rates), apportion(9, rates), apportion(1, rates)
    ((6, 2, 2), (5, 2, 2), (1, 0, 0))
    >>> apportion(10, (Fraction(1, 40), Fraction(1, 40), Fraction(38, 40)))
    (1, 0, 9)
    """
    quotas = [total * share / sum(shares) for share in shares]
    counts = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(shares)), key=lambda k: counts[k] - quotas[k])
    rounded_up = by_remainder[: total - sum(counts)]
    if total and counts[0] == 0 and 0 not in rounded_up:
        rounded_up = [0, *rounded_up[:-1]]
    for k in rounded_up:
        counts[k] += 1
    return tuple(counts)
