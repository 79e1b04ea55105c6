"""How much memory propagate needs, computed before anything is allocated."""

from __future__ import annotations

import numbers
from typing import NamedTuple

import torch

from plap.errors import InputError
from plap.kernels import registry
from plap.kernels.budget import Shape


class MemoryNeeded(NamedTuple):
    """Bytes that a call of :func:`plap.propagate` needs, and in training its backward pass too."""

    ends: int
    """For x and the result, in training also for the gradients of both."""
    usual: int
    """Allocated in addition to these and the graph if no budget is given."""
    least: int
    """The smallest ``memory_budget`` that is accepted."""


def memory_needed(
    num_nodes: int,
    num_entries: int,
    channels: int,
    K: int = 4,
    *,
    runs: int = 1,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    backend: str = "auto",
    training: bool = True,
) -> MemoryNeeded:
    """How much memory :func:`plap.propagate` takes, from the sizes of its arguments.

    The edge weights are assumed to be of type ``dtype`` too; otherwise the fused backend keeps a copy.

    Parameters
    ----------
    num_nodes, num_entries : int
        Size of the graph; an undirected edge is two entries.
    channels, K, runs : int
    dtype : torch.dtype
        float32 or float64.
    device : torch.device or str
        The device to run on. Nothing is allocated there.
    backend : {"auto", "fused", "triton", "torch"}
    training : bool
        Whether gradients will be computed.

    Examples
    --------
    Ten steps on a million nodes and 64 channels usually take half as much again as they need.

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
    names = registry.names(bounded=True)
    if backend not in names:
        raise InputError(f"backend must be one of {', '.join(names)}, not {backend!r}")
    where = torch.device(device)
    shape = Shape(runs, num_nodes, channels, num_entries, K, dtype.itemsize, where.type)
    chosen = (
        registry.choose("auto", where, dtype, bounded=True) if backend == "auto" else registry.named(backend)
    )
    ways = chosen.ways(shape, training=training)
    state = runs * num_nodes * channels * dtype.itemsize
    return MemoryNeeded((4 if training else 2) * state, ways[0].size, ways[-1].size)
