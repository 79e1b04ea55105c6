"""Which of the K activations a forward pass keeps, and how the backward pass recomputes the others.

The state before every ``every``-th step is kept. ``every`` = 1 keeps all; otherwise the backward pass repeats
the steps between two kept states, which costs at most one more forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

State = TypeVar("State")

KEEP_ALL = 1
KEEP_NONE = 0
"""Nothing will be differentiated."""


def sparsest(steps: int) -> int:
    """The ``every`` that needs the fewest states at a time, about √steps.

    Examples
    --------
    >>> [sparsest(steps) for steps in (1, 2, 4, 10, 100)]
    [1, 1, 2, 2, 10]
    """
    return min(range(1, steps + 1), key=lambda every: held(steps, every))


def kept(steps: int, every: int) -> int:
    """How many states are kept, including the first."""
    return -(-steps // every)


def held(steps: int, every: int) -> int:
    """The largest number of states that exist at a time in the backward pass: kept and recomputed ones.

    Examples
    --------
    >>> held(16, every=1), held(16, every=4)
    (16, 7)
    """
    return kept(steps, every) + every - 1


def backwards(
    states: list[State], steps: int, every: int, advance: Callable[[State, int], State]
) -> Iterator[tuple[int, State]]:
    """Every step, last first, with the state before it.

    ``states`` are the kept ones, and ``advance(state, k)`` takes step k from the state before it.

    Examples
    --------
    >>> list(backwards([0, 20], steps=4, every=2, advance=lambda state, k: state + 10))
    [(3, 30), (2, 20), (1, 10), (0, 0)]
    """
    for first in reversed(range(0, steps, every)):
        way = [states[first // every]]
        for k in range(first, min(first + every, steps) - 1):
            way.append(advance(way[-1], k))
        while way:
            yield first + len(way) - 1, way.pop()
