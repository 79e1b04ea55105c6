"""Training on the machines of a Ray cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from plap.checks import import_extra
from plap.errors import InputError
from plap.experiments.execution import (
    MOST_ATTEMPTS,
    Event,
    JobCompleted,
    JobFailed,
    RunFinished,
    TrainingError,
    lost,
    stream,
)
from plap.experiments.runs import Job, PackedJob, Record
from plap.training import RunConfig

_IN_FLIGHT_PER_CPU = 2
"""Jobs handed to the cluster per processor, so that no processor waits for its next one."""

_REACH_SECONDS = 10


class RayCluster:
    """A running Ray cluster, or one that is started on this machine.

    A job is a task that streams its records back, so only this process stores results. A task whose worker
    or machine is lost is sent again with the runs that were not reported.

    Parameters
    ----------
    address : str, optional
        Of the cluster (``auto``, ``host:6379``, ``ray://host:10001``); None: start one on this machine.
    workers : int, optional
        Number of processors that a cluster on this machine uses.
    root : path, optional
        Where the workers look for benchmark data, instead of ``$PLAP_DATA``.
    """

    def __init__(
        self, address: str | None = None, workers: int | None = None, *, root: Path | None = None
    ) -> None:
        self._ray = import_extra("ray", "ray", "executor 'ray'")
        self._address, self._workers, self._root = address, workers, root

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        """See :class:`plap.experiments.execution.Executor`."""
        ray = self._ray
        self._connect()
        task = ray.remote(_stream).options(num_returns="streaming", num_cpus=1, max_retries=0)
        resources: dict[str, float] = ray.cluster_resources()
        room = max(1, int(resources.get("CPU", 1))) * _IN_FLIGHT_PER_CPU
        tasks: dict[Any, _Task] = {}
        try:
            while True:
                while len(tasks) < room and (job := next_job()) is not None:
                    tasks[task.remote(job.pack())] = _Task(job)
                if not tasks:
                    return
                ready, _ = ray.wait(list(tasks), num_returns=1)
                state = tasks[ready[0]]
                event = state.hear(ready[0], ray)
                if not isinstance(event, RunFinished):
                    del tasks[ready[0]]
                if event is None:
                    tasks[task.remote(state.rest().pack())] = state
                else:
                    yield event
        finally:
            for unfinished in tasks:
                ray.cancel(unfinished, force=True)
            ray.shutdown()

    def _connect(self) -> None:
        options: dict[str, Any] = (
            {} if self._address else {"num_cpus": self._workers, "include_dashboard": False}
        )
        _check_reachable(self._address)
        names = ("PLAP_DATA", "NUMBA_CACHE_DIR")
        environment = {name: os.environ[name] for name in names if name in os.environ}
        environment |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        if self._root is not None:
            environment["PLAP_DATA"] = str(self._root.absolute())
        try:
            self._ray.init(
                address=self._address, runtime_env={"env_vars": environment}, log_to_driver=False,
                logging_level="ERROR", **options,
            )  # fmt: skip
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            where = self._address or "this machine"
            raise InputError(f"address: there is no Ray cluster at {where} ({error})") from None


def _check_reachable(address: str | None) -> None:
    """Refuse an address at which nothing listens; Ray itself would wait for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"address: there is no Ray cluster at {address} ({reason})") from None


class _Task:
    """A job on the cluster: which of its runs have been reported, and how often it was sent."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._ended: set[RunConfig] = set()
        self._attempts = 1

    def hear(self, task: Any, ray: Any) -> Event | None:
        """The task's next event; None: its worker is lost and the rest is to be sent again."""
        try:
            record = ray.get(next(task))
        except StopIteration:
            return JobCompleted(self.job)
        except ray.exceptions.RayTaskError as error:
            return _failed(self.job, error.cause)
        except ray.exceptions.RayError as error:
            if not self.rest().configs:
                return JobCompleted(self.job)
            self._attempts += 1
            if self._attempts <= MOST_ATTEMPTS:
                return None
            killed = isinstance(error, ray.exceptions.OutOfMemoryError | ray.exceptions.WorkerCrashedError)
            return lost(self.job, MOST_ATTEMPTS, killed=killed)
        assert isinstance(record, Record)
        self._ended.add(record.run.config)
        return RunFinished(self.job, record)

    def rest(self) -> Job:
        """The job without the runs that were reported."""
        return replace(self.job, configs=tuple(c for c in self.job.configs if c not in self._ended))


def _failed(job: Job, cause: BaseException) -> JobFailed:
    return cause.failed(job) if isinstance(cause, TrainingError) else JobFailed(job, str(cause))


def _stream(job: PackedJob) -> Iterator[Record]:
    torch.set_num_threads(1)
    yield from stream(job.unpack())
