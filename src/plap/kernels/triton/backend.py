"""The Triton backend as the registry knows it: which calls it serves, and the memory that they take."""

from __future__ import annotations

import importlib.util
import os

from plap.kernels.backend import Capabilities
from plap.kernels.budget import KEEP_NONE, Shape, held, kept
from plap.kernels.penalty_code import BLOCKS
from plap.kernels.row_backend import RowBackend
from plap.kernels.row_operator import define
from plap.kernels.row_passes import Kernels
from plap.kernels.triton.layout import padded
from plap.kernels.triton.segments import SEGMENT

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether Triton's interpreter runs the kernels, on tensors of the CPU; a way to test them, not to work."""

_MISSING = "backend 'triton' needs the package triton, which comes with plap's extra 'gpu'"


def _kernels() -> Kernels:
    from plap.kernels.triton.launcher import KERNELS  # noqa: PLC0415  (Triton is an optional extra)

    return KERNELS


class Triton(RowBackend):
    """Triton kernels for GPUs; see :mod:`plap.kernels.backend` for what each member is."""

    name = "triton"
    capabilities = Capabilities(
        devices=frozenset({"cuda", "cpu"} if INTERPRETED else {"cuda"}),
        memory_budget=True,
        missing=None if importlib.util.find_spec("triton") else _MISSING,
    )
    dialect = BLOCKS
    load = staticmethod(_kernels)
    operators = define("triton", load, padded)

    def bytes_needed(self, shape: Shape, every: int) -> int:
        """States are arrays of the size of x, and there are some numbers per node; hubs have partial sums."""
        if every == KEEP_NONE:
            states, numbers = min(2, shape.steps), 3
        else:
            # those held, the gradient and Z; a row of more than one block of channels has products for each
            states = held(shape.steps, every) + 2
            numbers = shape.steps + kept(shape.steps, every) + every + 7 + 2 * 8 // shape.itemsize
            numbers += -(-shape.channels // 512)
        per_node = states * shape.channels + numbers
        slots = 2 * shape.entries // SEGMENT if shape.entries > SEGMENT else 0
        partial = shape.runs * slots * (shape.channels + 2)
        weights = 2 * shape.entries if shape.converted else 0
        table = 8 * 4 * (shape.nodes + shape.entries // SEGMENT) if slots else 0
        real = (shape.runs * shape.nodes * per_node + partial + weights) * shape.itemsize
        return real + table + 6 * 8 * shape.nodes + 4 * 8 * shape.runs


TRITON = Triton()
