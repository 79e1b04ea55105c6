"""The fused backend as the registry knows it: which calls it serves, and the memory that they take."""

from __future__ import annotations

from plap.kernels.backend import Capabilities
from plap.kernels.budget import KEEP_ALL, KEEP_NONE, Shape, held, kept
from plap.kernels.fused.calling import padded
from plap.kernels.penalty_code import NUMBERS
from plap.kernels.row_backend import RowBackend
from plap.kernels.row_operator import define
from plap.kernels.row_passes import Kernels


def _kernels() -> Kernels:
    from plap.kernels.fused.launcher import KERNELS  # noqa: PLC0415  (Numba takes a second to import)

    return KERNELS


class Fused(RowBackend):
    """Numba loops over rows on PyTorch's threads; see :mod:`plap.kernels.backend` for what each member is."""

    name = "fused"
    capabilities = Capabilities(devices=frozenset({"cpu"}), memory_budget=True)
    dialect = NUMBERS
    load = staticmethod(_kernels)
    operators = define("fused", load, padded)

    def bytes_needed(self, shape: Shape, every: int) -> int:
        """States are arrays of the size of x, its channels padded; and there are some numbers per node.

        Not counted are four numbers per entry of the longest row on every thread.
        """
        pads = padded(shape.channels) != shape.channels
        if every == KEEP_NONE:
            states = min(2, shape.steps) + 2 * pads
            numbers = 3
        else:
            # those held, the gradient and [Y | Z]; if padded, the result, the gradient of x, and x itself
            states = held(shape.steps, every) + 3 + pads * (3 if every > KEEP_ALL else 2)
            numbers = shape.steps + kept(shape.steps, every) + every + 6 + 2 * 8 // shape.itemsize
        per_node = states * padded(shape.channels) + numbers
        weights = 2 * shape.entries if shape.converted else 0
        return (shape.runs * shape.nodes * per_node + weights) * shape.itemsize + 3 * 8 * shape.nodes


FUSED = Fused()
