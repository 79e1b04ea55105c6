"""Class names to class numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Names = tuple[str, ...]


def encode_labels(
    labels: NDArray[np.str_], fail: Callable[[int, str], None]
) -> tuple[NDArray[np.int64], Names]:
    """Number the classes 0, 1, … in ascending order, by value if all names are integers.

    Parameters
    ----------
    labels : text array, shape [N]
        "" where unknown.
    fail : function of a row and a problem
        Called for a class that only one node has, which can be in no two of training, validation and test;
        if it raises nothing, the class is numbered as any other.

    Returns
    -------
    y : int64 array, shape [N], -1 where unknown
    class_names : tuple of str

    Examples
    --------
    >>> encode_labels(np.array(["10", "9", "", "9", "10"]), fail=print)
    (array([ 1,  0, -1,  0,  1]), ('9', '10'))
    """
    names, first, number, count = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    known = names != ""
    if (count[known] == 1).any():
        at = int(first[known & (count == 1)].min())
        fail(at, f"the class {str(labels[at])!r} is seen once, and a class needs two nodes at least")
    order = _ascending([str(name) for name in names], np.flatnonzero(known).tolist())
    position = np.full(names.size, -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    return position[number.ravel()], tuple(str(names[k]) for k in order)


def _ascending(names: list[str], known: list[int]) -> list[int]:
    """The classes in order of their values if every one is an integer, of their names otherwise."""
    if all(is_integer(names[k]) for k in known):
        return sorted(known, key=lambda k: (int(names[k]), names[k]))
    return sorted(known, key=lambda k: names[k])


def is_integer(name: str) -> bool:
    """Whether a name is a whole number."""
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19
