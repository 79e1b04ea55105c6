"""Training in child processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import ModuleType

import torch

from plap.errors import InputError
from plap.experiments.execution import (
    MOST_ATTEMPTS,
    Event,
    JobCompleted,
    JobFailed,
    RunFinished,
    TrainingError,
    execute,
    lost,
)
from plap.experiments.runs import Job, PackedJob, Record
from plap.training import RunConfig

_Failure = tuple[str, str, bool]
_Message = Record | _Failure | None
"""A run's record; or the reason, details and out_of_memory of a failed job; or None: the job is complete."""


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    job: Job | None = None
    ended: set[RunConfig] = field(default_factory=set)
    """Configurations of the present job that have been reported."""


class LocalProcesses:
    """Child processes of this one.

    Children end with their parent, however that ends. One that is lost (killed by the system when memory
    runs out, for example) is replaced, and the runs that it had not reported are trained again.

    Parameters
    ----------
    workers : int
        Number of processes.
    threads : int
        Threads per process. A run's result depends on the number of threads, not on that of processes.
    root : path, optional
        Where the children look for benchmark data, instead of ``$PLAP_DATA``.
    """

    def __init__(self, workers: int, threads: int = 1, *, root: Path | None = None) -> None:
        self._count, self._threads, self._root = workers, threads, root
        self._workers: list[_Worker] = []
        self._attempts: dict[tuple[object, ...], int] = {}
        self._again: list[Job] = []

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        """See :class:`plap.experiments.execution.Executor`."""
        try:
            while True:
                self._assign(next_job)
                busy = {worker.connection: worker for worker in self._workers if worker.job is not None}
                if not busy:
                    return
                for connection in wait(list(busy)):
                    assert isinstance(connection, Connection)
                    yield from self._hear(busy[connection])
        finally:
            self._end()

    def _assign(self, next_job: Callable[[], Job | None]) -> None:
        while (worker := self._free()) is not None:
            job = self._again.pop() if self._again else next_job()
            if job is None:
                return
            if worker not in self._workers:
                self._workers.append(worker)
                with _no_main_module():
                    worker.process.start()
            worker.job, worker.ended = job, set()
            worker.connection.send(job.pack())

    def _free(self) -> _Worker | None:
        for worker in self._workers:
            if worker.job is None:
                return worker
        if len(self._workers) >= self._count:
            return None
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, self._threads, None if self._root is None else str(self._root.absolute()))
        return _Worker(context.Process(target=_work, args=arguments, daemon=True), ours)

    def _hear(self, worker: _Worker) -> Iterator[Event]:
        job = worker.job
        assert job is not None
        try:
            message: _Message = worker.connection.recv()
        except (EOFError, OSError):
            yield from self._lose(worker, job)
            return
        if isinstance(message, Record):
            worker.ended.add(message.run.config)
            yield RunFinished(job, message)
            return
        worker.job = None
        yield JobCompleted(job) if message is None else JobFailed(job, *message)

    def _lose(self, worker: _Worker, job: Job) -> Iterator[Event]:
        self._workers.remove(worker)
        worker.process.join()
        rest = tuple(config for config in job.configs if config not in worker.ended)
        if not rest:
            yield JobCompleted(job)
            return
        name = (job.setting, job.model, rest)
        self._attempts[name] = self._attempts.get(name, 0) + 1
        if self._attempts[name] >= MOST_ATTEMPTS:
            yield lost(job, MOST_ATTEMPTS, killed=worker.process.exitcode == -signal.SIGKILL)
        else:
            self._again.append(replace(job, configs=rest))

    def _end(self) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
        self._workers = []


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Start processes without the caller's script, which each of them would otherwise run again.

    Workers need nothing from it, and a script that calls plap outside ``if __name__ == "__main__"`` works.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _work(connection: Connection, threads: int, root: str | None) -> None:
    """What a child does: train jobs and send their records, until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if root is not None:
        os.environ["PLAP_DATA"] = root
    torch.set_num_threads(threads)
    jobs: queue.SimpleQueue[PackedJob] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                jobs.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)

    def say(message: _Message) -> None:
        try:
            connection.send(message)
        except OSError:
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        job = jobs.get()
        try:
            execute(job.unpack(), say)
        except InputError as error:
            say((str(error), "", False))
        except TrainingError as error:
            say((error.sentence, error.details, error.out_of_memory))
        else:
            say(None)
