"""What the fused backend takes, but for four numbers an entry of the longest row on every thread."""

from __future__ import annotations

from plap.kernels.activations import KEEP_ALL, KEEP_NONE, held, kept, sparsest
from plap.kernels.budget import Shape, Way
from plap.kernels.fused import padded


def ways(shape: Shape, *, training: bool) -> list[Way]:
    """Fastest first: all activations kept, then some recomputed."""
    choices = (KEEP_ALL, sparsest(shape.steps)) if training else (KEEP_NONE,)
    return [Way(every, 0, _bytes(shape, every)) for every in choices]


def _bytes(shape: Shape, every: int) -> int:
    """States are arrays of the size of x, its channels padded; besides there are numbers a node."""
    pads = padded(shape.channels) != shape.channels
    if every == KEEP_NONE:
        states = min(2, shape.steps) + 2 * pads
        numbers = 3
    else:
        # those held, the gradient and [Y | Z]; of what is padded, the result, the gradient of x, and x itself
        states = held(shape.steps, every) + 3 + pads * (3 if every > KEEP_ALL else 2)
        numbers = shape.steps + kept(shape.steps, every) + every + 6 + 2 * 8 // shape.itemsize
    a_node = states * padded(shape.channels) + numbers
    weights = 2 * shape.entries if shape.converted else 0
    return (shape.runs * shape.nodes * a_node + weights) * shape.itemsize + 3 * 8 * shape.nodes
