"""Ways to run a backend, from the fastest to the leanest, and the choice among them.

The memory that a way needs follows from the shape alone, so it is known before anything is allocated. It is
what a call of propagate and its backward pass allocate beyond x, the graph, the result and the gradients.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.memory import readable


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
    """The state before every ``every``-th step is kept, none if 0; see :mod:`plap.kernels.activations`."""
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
