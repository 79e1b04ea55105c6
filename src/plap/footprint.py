"""What propagate takes of memory, told before anything exists."""

from __future__ import annotations

import numbers
from typing import NamedTuple, get_args

import torch

from plap.errors import InputError
from plap.kernels.budget import Shape
from plap.kernels.chunked import ways as chunked
from plap.propagation import Backend


class MemoryNeeded(NamedTuple):
    """Bytes of a call of :func:`plap.propagate` and, in training, of its backward pass."""

    ends: int
    """x and the result, in training also the gradients of both."""
    usual: int
    """What is allocated beyond these and the graph if no budget is given."""
    least: int
    """The smallest ``memory_budget``."""


def memory_needed(
    num_nodes: int,
    num_entries: int,
    channels: int,
    K: int = 4,
    *,
    runs: int = 1,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    backend: Backend = "auto",
    training: bool = True,
) -> MemoryNeeded:
    """How much memory :func:`plap.propagate` takes, from the shape of what it is given.

    The graph's weights are taken to be of type ``dtype`` too; if not, the fused backend holds a copy of them.

    Parameters
    ----------
    num_nodes, num_entries : int
        Of the graph; an edge is two entries.
    channels, K, runs : int
    dtype : torch.dtype
        float32 or float64.
    device : torch.device or str
        Where it would run. Nothing is allocated there.
    backend : {"auto", "fused", "torch"}
    training : bool
        Whether something requires gradients.

    Examples
    --------
    Ten steps on a million nodes and 64 channels can do with two thirds of what they take if nobody minds.

    >>> import plap
    >>> need = plap.memory_needed(1_000_000, 50_000_000, channels=64, K=10)
    >>> need.ends
    1024000000
    >>> round(need.least / need.usual, 1)
    0.7
    """
    counts = {"num_nodes": num_nodes, "num_entries": num_entries, "channels": channels, "K": K, "runs": runs}
    for name, count in counts.items():
        least = 1 if name in ("K", "runs") else 0
        if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < least:
            raise InputError(f"{name} must be an integer of {least} or more, not {count!r}")
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"dtype must be float32 or float64, not {dtype}")
    if backend not in get_args(Backend) or backend == "dense":
        raise InputError(f"backend must be one of auto, fused, torch, not {backend!r}")
    where = torch.device(device).type
    if backend == "auto":
        backend = "fused" if where == "cpu" else "torch"
    shape = Shape(runs, num_nodes, channels, num_entries, K, dtype.itemsize, where)
    if backend == "fused":
        from plap.kernels import fused_ways as fused  # noqa: PLC0415  (imports Numba)

        ways = fused.ways(shape, training=training)
    else:
        ways = chunked.ways(shape, training=training)
    state = runs * num_nodes * channels * dtype.itemsize
    return MemoryNeeded((4 if training else 2) * state, ways[0].size, ways[-1].size)
