"""The processes that train together: as torchrun starts them, or one alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from plap.errors import InputError
from plap.minibatch.devices import choose_device
from plap.minibatch.launcher import world_size
from plap.minibatch.meeting import fresh_store

T = TypeVar("T")

PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others before it gives up, for torchrun to start all of them anew."""


@dataclass(frozen=True)
class Ranks:
    """One process among all that train together."""

    device: torch.device
    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether it is the one that prints and writes."""
        return self.rank == 0

    def own(self, items: Iterable[T]) -> Iterator[T]:
        """Every ``size``-th of the items: what the process has to do of them."""
        return itertools.islice(items, self.rank, None, self.size)

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes, the same on each."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def most(self, value: int) -> int:
        """The largest of the processes' values, the same on each."""
        if self.size == 1:
            return value
        values = torch.tensor([value], device=self.device)
        dist.all_reduce(values, dist.ReduceOp.MAX)
        return int(values)

    def wrap(self, module: torch.nn.Module) -> torch.nn.Module:
        """The module as DistributedDataParallel, where there is anybody to share gradients with."""
        if self.size == 1:
            return module
        devices = None if self.device.type == "cpu" else [self.device]
        return torch.nn.parallel.DistributedDataParallel(module, devices, forward_sync_buffers=False)

    def from_first(self, content: bytes | None) -> bytes | None:
        """What the first process gives, on all of them."""
        if self.size == 1:
            return content
        size = torch.tensor([-1 if content is None else len(content)], device=self.device)
        dist.broadcast(size, 0)
        if size.item() < 0:
            return None
        if content is None or not self.first:
            content = bytes(int(size))
        values = torch.frombuffer(bytearray(content), dtype=torch.uint8).to(self.device)
        dist.broadcast(values, 0)
        return values.cpu().numpy().tobytes()


@contextmanager
def join_ranks(device: str | torch.device = "auto", patience: timedelta = PATIENCE) -> Iterator[Ranks]:
    """Meet the other processes that torchrun has started; without torchrun, be alone.

    They talk over NCCL between GPUs and over Gloo between CPUs. If one of them ends before its time, the
    others' next exchange fails, at once or after ``patience``, so that all can be started anew.

    Parameters
    ----------
    device : str or torch.device
        See :func:`choose_device`.
    patience : timedelta

    Examples
    --------
    >>> with join_ranks("cpu") as ranks:
    ...     print(ranks.rank, ranks.size, ranks.first)
    0 1 True
    """
    chosen = choose_device(device)
    if world_size() == 1:
        yield Ranks(chosen)
        return
    backend = "nccl" if chosen.type == "cuda" else "gloo"
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    try:
        store, rank, size = next(rendezvous("env://", timeout=patience))
        store = fresh_store(store, rank, size, patience)
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience)
    except (ValueError, RuntimeError) as error:
        raise InputError(f"the processes cannot meet: {str(error).splitlines()[0]}") from error
    yield Ranks(chosen, rank, size)
    # only after a good end: in a group that a process has left, taking leave of the others would wait for it
    dist.destroy_process_group()
