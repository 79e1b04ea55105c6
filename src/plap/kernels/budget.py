"""Ways to run a backend, from the fastest to the leanest, and the choice among them.

The memory that a way needs follows from the shape alone, so it is known before anything is allocated. It is
what a call of propagate and its backward pass allocate beyond x, the graph, the result and the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.memory import readable

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


class Shape(NamedTuple):
    """Sizes that the memory of a call depends on."""

    runs: int
    nodes: int
    channels: int
    entries: int
    steps: int
    itemsize: int
    """Bytes per number."""
    device: str = "cpu"
    converted: bool = False
    """Whether the graph's weights have another type than x."""

    @classmethod
    def of(cls, x: Tensor, graph: Graph, steps: int) -> Shape:
        """The shape of ``propagate(x, graph, K=steps)`` for x [R, N, C]."""
        runs, nodes, channels = x.shape
        converted = graph.weight.dtype != x.dtype
        return cls(
            runs, nodes, channels, graph.num_entries, steps, x.element_size(), x.device.type, converted
        )


class Way(NamedTuple):
    """One way to run a backend."""

    every: int
    """The state before every ``every``-th step is kept, none if 0; see :mod:`plap.kernels.budget`."""
    chunk: int
    """Entries that are processed at a time; unused by the fused backend."""
    size: int
    """Bytes that it needs."""


def choose(ways: list[Way], shape: Shape, budget: int | None) -> Way:
    """The fastest way within the budget; raises InputError if even the leanest needs more."""
    for way in ways:
        if budget is None or way.size <= budget:
            return way
    runs = f"{shape.runs} runs of " if shape.runs > 1 else ""
    raise InputError(
        f"memory_budget is too small: {runs}{shape.steps} steps on {shape.nodes} nodes × {shape.channels} "
        f"channels and {shape.entries} entries need at least {readable(ways[-1].size)}"
    )
