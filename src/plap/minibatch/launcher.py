"""What torchrun, or another launcher like it, tells a process by its environment."""

from __future__ import annotations

import os

from plap.errors import InputError


def world_size() -> int:
    """How many processes were started; 1 where there was no launcher."""
    return _number("WORLD_SIZE", 1)


def local_rank() -> int:
    """Which of the processes on this machine this one is; 0 where there was no launcher."""
    return _number("LOCAL_RANK", 0)


def restart_count() -> int:
    """How often torchrun's agent on this machine has started its processes anew.

    Every agent counts for itself: that of a machine that came later begins at 0, and where machines join or
    leave, none of them counts.
    """
    return _number("TORCHELASTIC_RESTART_COUNT", 0)


def run_id() -> str:
    """What torchrun was told to call the training (--rdzv-id), the same on all machines at every restart.

    "none" where torchrun was not told, empty without torchrun.
    """
    return os.environ.get("TORCHELASTIC_RUN_ID", "")


def _number(name: str, least: int) -> int:
    """A variable of the environment; ``least`` is also what it is when it is not there."""
    text = os.environ.get(name, str(least))
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise InputError(f"the environment's {name} must be an integer of {least} or more, not {text!r}")
    return number
