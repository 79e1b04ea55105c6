"""Which device to compute on, and random numbers on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from plap.errors import InputError
from plap.minibatch.launcher import local_rank
from plap.training.seeding import seeded


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device of this name; "auto" is a CUDA device where there is one, and the CPU otherwise.

    Where torchrun started several processes on a machine, "auto" and "cuda" mean a device of its own for
    each of them.

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
        raise InputError(f"device must be auto, cpu, cuda or cuda:N, not {device!r}") from None
    if chosen.type not in ("cpu", "cuda"):
        raise InputError(f"device must be auto, cpu, cuda or cuda:N, not {str(device)!r}")
    if chosen.type == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count()
    index = local_rank() if chosen.index is None else chosen.index
    if index >= count:
        raise InputError(f"device cuda:{index} is not there: PyTorch sees {count} CUDA devices")
    return torch.device("cuda", index)


@contextmanager
def seeded_on(device: torch.device, seed: int) -> Iterator[None]:
    """What is drawn inside, on the CPU or on ``device``, follows from ``seed``."""
    with seeded(seed):
        if device.type != "cuda":
            yield
            return
        with torch.random.fork_rng(devices=[device], device_type=device.type):
            torch.cuda.default_generators[device.index].manual_seed(seed)
            yield
