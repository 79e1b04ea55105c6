"""Runs on a small graph side by side, on one core each.

On a small graph the threads of one batch wait for one another more than they work, so batches go to processes
instead. These are forks, as those of PyTorch's data loaders: they share the data, start at once and use one
thread each. Only Linux forks safely, so elsewhere all runs stay in this process.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, ForkProcess
from multiprocessing.synchronize import Event
from typing import Any

import torch
from torch import Tensor

from plap.graph import Graph
from plap.nn.linear import Features
from plap.split_masks import SplitLike, split_for
from plap.training.config import RunConfig
from plap.training.loop import (
    DEFAULT_BUDGET,
    ProgressCallback,
    epoch_cost,
    make_batches,
    run_bytes,
    train_runs,
)
from plap.training.results import Progress, RunResult
from plap.training.stopping import Deadline, Interrupts, TimeLimit

_MOST_ENTRIES = 500_000
"""Entries of a graph up to which one core per batch is better than all cores for one."""
_WORTH_FORKING = 3e8
"""Cost of all epochs of all runs below which processes cost more than they bring: some tenths of a second."""
_SECONDS = 0.2
"""Between two looks at Ctrl-C, the clock and the progress."""


class WorkerDiedError(RuntimeError):
    """A process ended without its result."""


def train_side_by_side(
    graph: Graph,
    x: Features,
    y: Tensor,
    configs: Sequence[RunConfig],
    split: SplitLike,
    *,
    progress: ProgressCallback | None = None,
    time_limit: TimeLimit = None,
    **options: Any,
) -> list[RunResult]:
    """As :func:`plap.training.train_runs` with one split, on as many processes as PyTorch has threads.

    If it is a :class:`plap.split_masks.BaggedSplit`, every run divides it by its own seed. Where processes
    cannot be forked, or do not pay, it is :func:`plap.training.train_runs` itself. A process has one thread,
    so results are those of ``torch.set_num_threads(1)``. Ctrl-C ends all runs, which keep their best so far.
    """
    deadline = Deadline.of(time_limit)
    workers = processes_for(graph)
    given = (graph, x, y)
    parts = {seed: split_for(split, seed) for seed in {config.seed for config in configs}}
    splits = [parts[config.seed] for config in configs]
    if workers == 1 or not pays(graph, configs, options):
        return train_runs(*given, configs, splits, progress=progress, time_limit=deadline, **options)
    batches = _batches(configs, graph, x, y, workers)
    if len(batches) == 1:
        return train_runs(*given, configs, splits, progress=progress, time_limit=deadline, **options)
    meter = _Meter(progress, [[configs[run].max_epochs for run in batch] for batch in batches])
    results: dict[int, RunResult] = {}
    with Interrupts() as interrupts, _Pool(min(workers, len(batches))) as pool:
        work = [[configs[run] for run in batch] for batch in batches]

        def train(number: int, report: ProgressCallback, stop: Event) -> list[RunResult]:
            return train_runs(
                *given,
                work[number],
                [splits[run] for run in batches[number]],
                progress=_stopping_at(stop, report),
                time_limit=deadline,
                **options,
            )

        for number, answer in pool.run(train, len(batches), interrupts):
            if isinstance(answer, Progress):
                meter(number, answer)
            else:
                results.update(zip(batches[number], answer, strict=True))
                meter.end(number)
    return [results[run] for run in range(len(configs))]


def processes_for(graph: Graph) -> int:
    """How many processes train on this graph at a time: on Linux, without a GPU, one per thread if small."""
    alone = (
        sys.platform != "linux"
        or graph.device.type != "cpu"
        or graph.num_entries > _MOST_ENTRIES
        or torch.cuda.is_available()
        or multiprocessing.current_process().daemon
    )
    return 1 if alone else torch.get_num_threads()


def _cost(configs: Iterable[RunConfig], graph: Graph) -> float:
    """What all epochs of these runs cost."""
    return sum(config.max_epochs * epoch_cost(config, graph.num_nodes) for config in configs)


def pays(graph: Graph, configs: Sequence[RunConfig], options: Mapping[str, Any]) -> bool:
    """Whether there is enough to do for several processes, on the CPU."""
    on_cpu = str(options.get("device", "auto")) in ("auto", "cpu")
    return on_cpu and len(configs) > 1 and _cost(configs, graph) >= _WORTH_FORKING


def _batches(
    configs: Sequence[RunConfig], graph: Graph, x: Features, y: Tensor, workers: int
) -> list[list[int]]:
    """The batches of ``train_runs``, the longest first, at least one per process if there are runs enough."""
    outputs = y.shape[1] if y.ndim == 2 else 2
    sizes = [
        run_bytes(config, graph.num_nodes, x.shape[1], outputs, 4, graph.num_entries) for config in configs
    ]
    batches = make_batches(configs, sizes, DEFAULT_BUDGET // workers)
    while len(batches) < workers and max(map(len, batches)) > 1:
        longest = max(batches, key=len)
        batches.remove(longest)
        batches += [longest[: len(longest) // 2], longest[len(longest) // 2 :]]
    return sorted(batches, key=lambda batch: -_cost((configs[run] for run in batch), graph))


def _stopping_at(stop: Event, report: ProgressCallback) -> ProgressCallback:
    """``report`` that ends the training, as Ctrl-C does, once ``stop`` is set; it looks now and then."""
    told = 0.0

    def progress(state: Progress) -> None:
        nonlocal told
        now = time.monotonic()
        if now < told + _SECONDS:
            return
        told = now
        if stop.is_set():
            raise KeyboardInterrupt
        report(state)

    return progress


@dataclass(frozen=True)
class _Worker:
    process: ForkProcess
    line: Connection
    """Numbers of batches go out; progress and results come in."""


class _Pool:
    """Forked processes that take numbered tasks and end with the ``with`` block."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._context: ForkContext = multiprocessing.get_context("fork")
        self._stop = self._context.Event()
        self._workers: list[_Worker] = []

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.line.close()
            worker.process.join(_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def run(self, train: Any, tasks: int, interrupts: Interrupts) -> Any:
        """Yield (number, Progress) and at the end of each task (number, its results)."""
        waiting = iter(range(tasks))
        busy: dict[Connection, int] = {}
        for _ in range(self._size):
            worker = self._fork(train)
            busy[worker.line] = number = next(waiting)
            worker.line.send(number)
        while busy:
            for line in wait([*busy], timeout=_SECONDS):
                assert isinstance(line, Connection)
                number, answer = busy[line], self._received(line)
                yield number, answer
                if isinstance(answer, Progress):
                    continue
                del busy[line]
                following = next(waiting, None)
                if following is not None:
                    busy[line] = following
                    line.send(following)
            if interrupts.pending:
                self._stop.set()

    def _fork(self, train: Any) -> _Worker:
        mine, theirs = self._context.Pipe()
        before = [worker.line for worker in self._workers]
        process = self._context.Process(
            target=_work, args=(train, theirs, self._stop, [mine, *before]), daemon=True
        )
        process.start()
        theirs.close()
        self._workers.append(_Worker(process, mine))
        return self._workers[-1]

    def _received(self, line: Connection) -> Progress | list[RunResult]:
        try:
            answer = pickle.loads(line.recv_bytes())  # written by this very program
        except EOFError:
            raise WorkerDiedError("a training process was killed, perhaps for lack of memory") from None
        if isinstance(answer, BaseException):
            raise answer
        found: Progress | list[RunResult] = answer
        return found


def _work(train: Any, line: Connection, stop: Event, others: list[Connection]) -> None:
    """What a worker does: tasks by their numbers until the line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        other.close()
    torch.set_num_threads(1)

    def send(message: object) -> None:
        line.send_bytes(pickle.dumps(message))

    while True:
        try:
            number = line.recv()
        except EOFError:
            return
        try:
            send([_compact(result) for result in train(number, send, stop)])
        except Exception as error:  # the parent raises it
            send(error)


def _compact(result: RunResult) -> RunResult:
    """The same with tensors of their own, because a view is pickled with all that it is a view of."""
    state = {name: value.clone() for name, value in result.state.items()}
    return replace(result, state=state, logits=result.logits.clone())


class _Meter:
    """The progress of all batches together."""

    def __init__(self, progress: ProgressCallback | None, limits: list[list[int]]) -> None:
        self._progress = progress
        self._sizes = [len(batch) for batch in limits]
        self._done = [0.0] * len(limits)
        self._finished = [0] * len(limits)
        self._start = time.perf_counter()

    def end(self, number: int) -> None:
        """Note that a batch is through; the next report counts it."""
        self._done[number], self._finished[number] = 1.0, self._sizes[number]

    def __call__(self, number: int, state: Progress) -> None:
        """Report what a batch reported, as part of the whole."""
        if self._progress is None:
            return
        self._done[number], self._finished[number] = state.done, state.finished
        runs = sum(self._sizes)
        done = sum(done * size for done, size in zip(self._done, self._sizes, strict=True)) / runs
        self._progress(
            replace(
                state, runs=runs, finished=sum(self._finished), done=done,
                seconds=time.perf_counter() - self._start,
            )
        )  # fmt: skip
