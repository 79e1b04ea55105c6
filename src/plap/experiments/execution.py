"""Training the runs of a job in this process, and what an executor on other processes reports of its jobs."""

from __future__ import annotations

import hashlib
import itertools
import platform
import queue
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from plap import __version__
from plap.data import GraphData, Split
from plap.data.dataset import features_digest
from plap.errors import InputError
from plap.experiments.model_files import load_model_file
from plap.experiments.protocol import find_protocol
from plap.experiments.runs import Job, Record, Run, pack_history
from plap.nn import correct_and_smooth
from plap.training import RunConfig, RunResult, train_runs

Emit = Callable[[Record], None]

MOST_ATTEMPTS = 3
"""How many workers may be lost over a job before it is given up."""


@dataclass(frozen=True)
class RunFinished:
    """One run of a job has ended."""

    job: Job
    record: Record


@dataclass(frozen=True)
class JobCompleted:
    """The last run of a job has ended."""

    job: Job


@dataclass(frozen=True)
class JobFailed:
    """A job could not be completed; runs that ended before have been reported."""

    job: Job
    reason: str
    """One sentence."""
    details: str = ""
    """The traceback, unless the input was at fault."""
    out_of_memory: bool = False
    """Whether memory ran out, as far as that can be known."""


Event = RunFinished | JobCompleted | JobFailed


class Executor(Protocol):
    """Something that trains jobs."""

    def run(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        """Ask for jobs whenever there is room, until there are none left and all have ended.

        ``next_job`` may return None now and a job later, after an event has been handled.
        """
        ...


class TrainingError(Exception):
    """An error in training: one sentence, the traceback, and whether memory ran out."""

    def __init__(self, sentence: str, details: str, out_of_memory: bool = False) -> None:
        super().__init__(sentence, details, out_of_memory)
        self.sentence, self.details, self.out_of_memory = sentence, details, out_of_memory

    def failed(self, job: Job) -> JobFailed:
        """The error as the end of a job."""
        return JobFailed(job, self.sentence, self.details, self.out_of_memory)


def execute(job: Job, emit: Emit) -> None:
    """Train the job's runs and ``emit`` each as soon as it ends."""
    try:
        _execute(job, emit)
    except (InputError, KeyboardInterrupt):
        raise
    except Exception as error:
        sentence, details = _sentence(job, error), traceback.format_exc().strip()
        raise TrainingError(sentence, details, _is_out_of_memory(error)) from error


def _sentence(job: Job, error: Exception) -> str:
    """What happened, and where: in the user's own file if the error passed through it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if job.model_file is not None and frame.filename == job.model_file.path]
    frame = (own or frames)[-1]
    said = (str(error).strip().splitlines() or ["no message"])[0]
    place = f"{Path(frame.filename).name}, line {frame.lineno}"
    return f"{job.model} on {job.setting.dataset} ended in {type(error).__name__}: {said} ({place})"


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    # PyTorch's allocator for the CPU raises a plain RuntimeError
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


def _execute(job: Job, emit: Emit) -> None:
    if job.model_file is not None:
        load_model_file(job.model_file)
    protocol = find_protocol(job.setting.protocol)

    def drawn(config: RunConfig) -> int:
        return protocol.data_seed(job.setting.dataset, config.seed)

    for _, members in itertools.groupby(job.configs, key=drawn):
        group = list(members)
        if job.setting.alone:
            for config in group:
                _train(job, [config], emit)
        else:
            _train(job, group, emit)


def stream(job: Job) -> Iterator[Record]:
    """Train the job's runs and yield the record of each as soon as it ends."""
    records: queue.SimpleQueue[Record | BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            execute(job, records.put)
            records.put(None)
        except BaseException as error:
            records.put(error)

    threading.Thread(target=work, daemon=True).start()
    while (item := records.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item


def lost(job: Job, attempts: int, *, killed: bool) -> JobFailed:
    """What is reported of a job whose workers all died: killed by the system, or for another reason."""
    end = "was killed {} times (out of memory, perhaps)" if killed else "ended unexpectedly {} times"
    return JobFailed(
        job, f"{job.model} on {job.setting.dataset}: the worker {end.format(attempts)}", out_of_memory=killed
    )


def _train(job: Job, configs: list[RunConfig], emit: Emit) -> None:
    """Train runs on one graph, each with the split of its seed.

    Splits of different sizes are not trained together: padding would round sums differently in a resumed job.
    """
    protocol, dataset = find_protocol(job.setting.protocol), job.setting.dataset
    data = protocol.open(dataset, configs[0].seed)
    digest = _data_digest(protocol.name, dataset, protocol.data_seed(dataset, configs[0].seed))
    sizes: dict[tuple[int, int], list[tuple[RunConfig, Split]]] = {}
    for config in configs:
        parts = protocol.split(dataset, config.seed, job.setting.split)
        sizes.setdefault((int(parts.train.sum()), int(parts.val.sum())), []).append((config, parts))
    for members in sizes.values():
        _train_together(job, data, digest, members, emit)


def _train_together(
    job: Job, data: GraphData, digest: str, members: Sequence[tuple[RunConfig, Split]], emit: Emit
) -> None:
    task = find_protocol(job.setting.protocol).task(data)

    def finished(index: int, result: RunResult) -> None:
        config, parts = members[index]
        probabilities, predictions = task.probabilities(result.logits), task.predict(result.logits)
        if job.setting.correct_and_smooth:
            probabilities = correct_and_smooth(probabilities, data.graph, data.y, parts)
            predictions = task.decode(probabilities)
        said = predictions if task.metric.takes == "predictions" else probabilities
        score = task.metric.function(data.y[parts.test], said[parts.test])
        emit(_record(job.run(config), result, task.metric.label, score, parts, digest))

    train_runs(
        data.graph, data.x, data.y, [config for config, _ in members], [parts for _, parts in members],
        task=task, device=job.device, on_interrupt="raise", finished=finished,
    )  # fmt: skip


def _record(run: Run, result: RunResult, metric: str, score: float, parts: Split, digest: str) -> Record:
    history = result.history
    columns = np.stack([c.numpy() for c in (history.train_loss, history.val_loss, history.val_score)])
    finite = bool(np.isfinite(columns).all()) and bool(torch.isfinite(result.logits).all())
    return Record(
        run=run,
        split_digest=parts.digest,
        data_digest=digest,
        metric=metric,
        test_score=score,
        val_score=result.val_score,
        val_loss=result.val_loss,
        best_epoch=result.best_epoch,
        epochs=result.epochs,
        seconds=result.seconds,
        finite=finite,
        history=pack_history(columns),
        versions=versions(),
    )


@lru_cache(maxsize=4)
def _data_digest(protocol: str, dataset: str, data_seed: int) -> str:
    """SHA-256 over edges and features."""
    data = find_protocol(protocol).open_drawn(dataset, data_seed)
    return hashlib.sha256(f"{data.graph.digest} {features_digest(data.x)}".encode()).hexdigest()


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """The software that a result may depend on."""
    return (
        ("plap", __version__),
        ("python", platform.python_version()),
        ("torch", torch.__version__),
        ("torch_geometric", version("torch_geometric")),
    )
