"""How much memory the plain PyTorch backend takes."""

from __future__ import annotations

from plap.kernels.budget import KEEP_ALL, KEEP_NONE, Shape, Way, held, sparsest

_LARGEST = {"cpu": 16 * 2**20}
_LARGEST_ELSEWHERE = 256 * 2**20
"""Bytes of the largest chunk: a CPU's caches are small, and another device must be kept busy."""

_COMFORT = 4 * 2**20
"""Bytes of the smallest chunk that is preferred to recomputing activations."""

_LEAST = 2**20
"""Bytes of the smallest chunk: below, starting the work takes longer than the work."""


def ways(shape: Shape, *, training: bool) -> list[Way]:
    """Fastest first: large chunks, small chunks, then activations recomputed."""
    if not training:
        return _halving(shape, KEEP_NONE, _LEAST)
    return _halving(shape, KEEP_ALL, _COMFORT) + _halving(shape, sparsest(shape.steps), _LEAST)


def _halving(shape: Shape, every: int, least: int) -> list[Way]:
    per_entry, of_nodes = _bytes_per_entry(shape), _bytes_of_nodes(shape, every)
    size = min(_LARGEST.get(shape.device, _LARGEST_ELSEWHERE), shape.entries * per_entry)
    found: list[Way] = []
    while size >= least or not found:
        chunk = max(1, size // per_entry)
        found.append(Way(every, chunk, of_nodes + chunk * per_entry))
        size //= 2
    return found


def _bytes_of_nodes(shape: Shape, every: int) -> int:
    """States are arrays of the size of x. In training they are those held, V, and the gradients of two steps.

    In addition there are some numbers per node: α of every step, and what a step computes of nodes.
    """
    states = min(2, shape.steps) if every == KEEP_NONE else held(shape.steps, every) + 3
    numbers = 8 if every == KEEP_NONE else 2 * shape.steps + 10
    per_run = shape.nodes * (states * shape.channels + numbers) * shape.itemsize
    return shape.runs * per_run + 4 * 8 * shape.nodes


def _bytes_per_entry(shape: Shape) -> int:
    """Two rows of channels and what a step computes of edges, for every run; indices and weights.

    Of edges a power needs 16 numbers; the derivatives of other penalties up to 19 while they are computed.
    """
    return shape.runs * (2 * shape.channels + 20) * shape.itemsize + 64
