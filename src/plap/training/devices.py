"""Where training happens: the device, its numbers and free memory, and the processes that train together."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from plap.errors import InputError

_SHARE = 0.8
"""Of the free memory of a device that a batch may plan with; the rest is for what PyTorch rounds up."""


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device of this name; "auto" is a CUDA device if there is one, and the CPU otherwise.

    If torchrun started several processes on a machine, "auto" and "cuda" give each its own device.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise InputError(f"device must be auto, cpu, cuda, cuda:N or mps, not {device!r}") from None
    if chosen.type == "cpu":
        return torch.device("cpu")
    if chosen.type == "mps":
        if not torch.backends.mps.is_available():
            raise InputError("there is no device mps: PyTorch sees no Apple GPU")
        return torch.device("mps")
    if chosen.type != "cuda":
        raise InputError(f"device must be auto, cpu, cuda, cuda:N or mps, not {str(device)!r}")
    count = torch.cuda.device_count()
    index = local_rank() if chosen.index is None else chosen.index
    if index >= count:
        raise InputError(f"there is no device cuda:{index}: PyTorch sees {count} CUDA devices")
    return torch.device("cuda", index)


def wide(device: torch.device) -> torch.dtype:
    """The widest floats that a device has: float64, but float32 on Apple's GPUs.

    Examples
    --------
    >>> wide(torch.device("cpu"))
    torch.float64
    """
    return torch.float32 if device.type == "mps" else torch.float64


@contextmanager
def usual_arithmetic() -> Iterator[None]:
    """Whatever the caller has set: gradients, and the numbers' own types, which compiled loops rely on."""
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.enable_grad())
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def memory_for_batches(device: torch.device) -> int | None:
    """Bytes that batches may take on a device if the caller sets no limit; None where that is not known."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(_SHARE * (free + unused))
    if device.type == "mps":
        most = torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
        return int(_SHARE * max(0, most))
    return None


def local_rank() -> int:
    """Number of this process among those on this machine; 0 without a launcher."""
    return environment_number("LOCAL_RANK", 0)


def environment_number(name: str, least: int) -> int:
    """An environment variable as an integer; ``least`` is also its default."""
    text = os.environ.get(name, str(least))
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise InputError(
            f"the environment variable {name} must be an integer of {least} or more, not {text!r}"
        )
    return number


T = TypeVar("T")

PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others before it gives up, so that torchrun can restart them all."""

_PAUSE = 0.02
"""Seconds between two looks at the store."""


@dataclass(frozen=True)
class Ranks:
    """One process among all that train together."""

    device: torch.device
    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that prints and writes."""
        return self.rank == 0

    def own(self, items: Iterable[T]) -> Iterator[T]:
        """The share of the items that falls to this process: every ``size``-th one."""
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
        """The module as DistributedDataParallel, if there are other processes."""
        if self.size == 1:
            return module
        devices = None if self.device.type == "cpu" else [self.device]
        return torch.nn.parallel.DistributedDataParallel(module, devices, forward_sync_buffers=False)

    def from_first(self, content: bytes | None) -> bytes | None:
        """The content that the first process passes, on all processes."""
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
    """Join the other processes that torchrun has started; without torchrun there is one process.

    They communicate by NCCL between GPUs and by Gloo between CPUs. If one of them dies, the next exchange of
    the others fails, at once or after ``patience``, so that all can be restarted.

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
    # not in a ``finally``: in a group that a process has left, this would wait for that process
    dist.destroy_process_group()


def world_size() -> int:
    """Number of processes that the launcher started; 1 without a launcher.

    Examples
    --------
    >>> world_size()
    1
    """
    return environment_number("WORLD_SIZE", 1)


def restart_count() -> int:
    """How often torchrun's agent on this machine has restarted its processes.

    Every agent counts for itself: that of a machine that joined later begins at 0, and if machines join or
    leave, no agent counts that.

    Examples
    --------
    >>> restart_count()
    0
    """
    return environment_number("TORCHELASTIC_RESTART_COUNT", 0)


def run_id() -> str:
    """torchrun's name for this job (--rdzv-id), the same on all machines and after every restart.

    "none" if torchrun was given none, empty without torchrun.

    Examples
    --------
    >>> run_id()
    ''
    """
    return os.environ.get("TORCHELASTIC_RUN_ID", "")


def fresh_store(store: Store, rank: int, size: int, patience: timedelta) -> PrefixStore:
    """A namespace of ``store`` that these processes, all alive now, share and nobody has written to.

    torchrun's agent keeps its store when it restarts processes, with the addresses of the processes that
    have ended; a process that reads these before the new ones would try to connect to nobody. The number of
    restarts cannot tell them apart, because every machine counts its own.

    So every process publishes a random number, the first one publishes the numbers that it sees together
    with a name for the meeting, and a process that finds its own number among them confirms.
    """
    mine = secrets.token_hex(8)
    until = time.monotonic() + patience.total_seconds()
    name = _gather(store, mine, size, until) if rank == 0 else _follow(store, mine, rank, until)
    return PrefixStore(f"plap/{name}", store)


def _gather(store: Store, name: str, size: int, until: float) -> str:
    others = range(1, size)
    while not store.check([f"plap/{name}/{other}" for other in others]):
        shown = {other: _read(store, f"plap/number/{other}") for other in others}
        store.set("plap/meeting", json.dumps({"name": name, "numbers": shown}))
        _wait(until)
    return name


def _follow(store: Store, mine: str, rank: int, until: float) -> str:
    store.set(f"plap/number/{rank}", mine)
    while True:
        meeting = json.loads(_read(store, "plap/meeting") or "{}")
        if meeting.get("numbers", {}).get(str(rank)) == mine:
            name: str = meeting["name"]
            store.set(f"plap/{name}/{rank}", "here")
            return name
        _wait(until)


def _read(store: Store, key: str) -> str | None:
    return store.get(key).decode() if store.check([key]) else None


def _wait(until: float) -> None:
    if time.monotonic() > until:
        raise InputError("the processes cannot meet: one of them did not arrive in time")
    time.sleep(_PAUSE)
