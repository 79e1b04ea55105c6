"""Where training happens: which device is meant, which numbers it has, and how much memory is free there."""

from __future__ import annotations

import os

import torch

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
