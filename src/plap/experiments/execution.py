"""Train the runs of a job, wherever that is: in this process, a child, or a machine of a cluster."""

from __future__ import annotations

import hashlib
import itertools
import platform
import queue
import threading
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

import numpy as np
import torch
from torch import Tensor

from plap.artifacts.digests import features_digest
from plap.data import GraphData, Split
from plap.experiments.models import find_model_spec
from plap.experiments.protocol import find_protocol
from plap.experiments.runs import Job, Record, Run, pack_history
from plap.nn import correct_and_smooth
from plap.training import RunConfig, RunResult, accuracy, micro_f1, train_runs

Emit = Callable[[Record], None]


def execute(job: Job, emit: Emit) -> None:
    """Train the job's runs and ``emit`` each as soon as it ends."""
    if job.model_file is not None:
        find_model_spec(job.model, job.model_file)
    protocol = find_protocol(job.setting.protocol)
    for draw, members in itertools.groupby(job.configs, key=lambda config: protocol.draw(config.seed)):
        group = list(members)
        if job.setting.alone:
            for config in group:
                _train(job, draw, [config], emit)
        else:
            _train(job, draw, group, emit)


def stream(job: Job) -> Iterator[Record]:
    """The same as an iterator."""
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


def _train(job: Job, draw: int, configs: list[RunConfig], emit: Emit) -> None:
    protocol = find_protocol(job.setting.protocol)
    data = protocol.open(job.setting.dataset, configs[0].seed)
    splits = [protocol.split(job.setting.dataset, config.seed, job.setting.split) for config in configs]
    digest = _data_digest(job.setting.protocol, job.setting.dataset, draw)

    def finished(index: int, result: RunResult) -> None:
        parts = splits[index]
        scores = _corrected(result, data, parts) if job.correct_and_smooth else result.logits
        emit(_record(job.run(configs[index]), result, scores, data, parts, digest))

    train_runs(
        data.graph, data.x, data.y, configs, splits,
        num_classes=data.num_classes, on_interrupt="raise", finished=finished,
    )  # fmt: skip


def _corrected(result: RunResult, data: GraphData, parts: Split) -> Tensor:
    """Probabilities after correct and smooth, with the labels of training nodes only."""
    return correct_and_smooth(result.logits.softmax(1), data.graph, data.y, parts)


def _record(
    run: Run, result: RunResult, scores: Tensor, data: GraphData, parts: Split, digest: str
) -> Record:
    metric, score = _score(scores, data.y, parts.test)
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


def _score(scores: Tensor, y: Tensor, test: Tensor) -> tuple[str, float]:
    if y.ndim == 1:
        return "accuracy", accuracy(y[test], scores[test].argmax(1))
    return "micro-F1", micro_f1(y[test], (scores[test] > 0).to(y.dtype))


@lru_cache(maxsize=4)
def _data_digest(protocol: str, dataset: str, draw: int) -> str:
    """SHA-256 over edges and features, as opened for the data seed ``draw``."""
    data = find_protocol(protocol).open(dataset, draw)
    return hashlib.sha256(f"{data.graph.digest} {features_digest(data.x)}".encode()).hexdigest()


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """What a result may depend on besides its run: the software."""
    import torch_geometric  # noqa: PLC0415

    from plap import __version__  # noqa: PLC0415

    return (
        ("plap", __version__),
        ("python", platform.python_version()),
        ("torch", torch.__version__),
        ("torch_geometric", torch_geometric.__version__),
    )
