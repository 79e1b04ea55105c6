"""Training in child processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from plap.errors import InputError
from plap.experiments.executors import MOST_ATTEMPTS, Completed, Event, Failed, Finished, lost
from plap.experiments.runs import Job, PackedJob, Record
from plap.training import RunConfig

_Message = tuple[str, object]


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    job: Job | None = None
    ended: set[RunConfig] = field(default_factory=set)
    """Configurations of the present job that have been reported."""


class LocalProcesses:
    """So many child processes, each with so many threads.

    Children end with their parent, however that ends. One that is lost (killed by the system for want of
    memory, say) is replaced, and the runs that it had not reported are trained again.

    Parameters
    ----------
    workers : int
    threads : int
        Of each worker. A run's result is the same again for the same number of threads.
    data_root : path, optional
        Folder of the benchmark data sets, for the workers; by default ``$PLAP_DATA``.
    """

    def __init__(self, workers: int, threads: int = 1, data_root: Path | None = None) -> None:
        self._count, self._threads, self._data_root = workers, threads, data_root
        self._workers: list[_Worker] = []
        self._attempts: dict[tuple[object, ...], int] = {}
        self._again: list[Job] = []

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        """See :class:`plap.experiments.executors.Executor`."""
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
        arguments = (theirs, self._threads, self._data_root)
        return _Worker(context.Process(target=_work, args=arguments, daemon=True), ours)

    def _hear(self, worker: _Worker) -> Iterator[Event]:
        job = worker.job
        assert job is not None
        try:
            kind, content = worker.connection.recv()
        except (EOFError, OSError):
            yield from self._lose(worker, job)
            return
        if kind == "record":
            assert isinstance(content, Record)
            worker.ended.add(content.run.config)
            yield Finished(job, content)
            return
        worker.job = None
        if kind == "completed":
            yield Completed(job)
        else:
            assert isinstance(content, tuple)
            yield Failed(job, *content)

    def _lose(self, worker: _Worker, job: Job) -> Iterator[Event]:
        self._workers.remove(worker)
        worker.process.join()
        rest = tuple(config for config in job.configs if config not in worker.ended)
        if not rest:
            yield Completed(job)
            return
        name = (job.setting, job.model, rest)
        self._attempts[name] = self._attempts.get(name, 0) + 1
        if self._attempts[name] >= MOST_ATTEMPTS:
            yield lost(job, MOST_ATTEMPTS)
        else:
            self._again.append(replace(job, configs=rest))

    def _end(self) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
        self._workers = []


def _work(connection: Connection, threads: int, data_root: Path | None) -> None:
    """A child's life: jobs in, records out, until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if data_root is not None:
        os.environ["PLAP_DATA"] = str(data_root.absolute())
    import torch  # noqa: PLC0415

    from plap.experiments.execution import TrainingError, execute  # noqa: PLC0415

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
            execute(job.unpack(), lambda record: say(("record", record)))
        except InputError as error:
            say(("failed", (str(error), "")))
        except TrainingError as error:
            say(("failed", (error.sentence, error.details)))
        else:
            say(("completed", None))
