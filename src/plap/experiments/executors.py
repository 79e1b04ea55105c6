"""Who trains: an executor takes jobs one after another and tells what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from plap.experiments.runs import Job, Record

MOST_ATTEMPTS = 3
"""How often a job whose worker is lost is given to another one."""


@dataclass(frozen=True)
class Finished:
    """A run of a job has ended."""

    job: Job
    record: Record


@dataclass(frozen=True)
class Completed:
    """A job's last run has ended."""

    job: Job


@dataclass(frozen=True)
class Failed:
    """A job could not be done; runs that had ended before were reported."""

    job: Job
    reason: str
    """One sentence."""
    details: str = ""
    """The traceback of an error that was not the input's."""


Event = Finished | Completed | Failed


class Executor(Protocol):
    """Something that trains."""

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        """Ask for jobs whenever there is room, until there are none left and all are done.

        ``next_job`` may have none now and one later, after an event was dealt with.
        """
        ...


def lost(job: Job, attempts: int) -> Failed:
    """What is said of a job that no worker survived."""
    cell = f"{job.model} on {job.setting.dataset}"
    return Failed(job, f"{cell}: the worker was killed {attempts} times (out of memory, perhaps)")
