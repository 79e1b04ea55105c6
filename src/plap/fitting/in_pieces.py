"""The model and its rivals trained in pieces, on one process or on many."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.data.graph_data import GraphData
from plap.data.splits import Split
from plap.errors import InputError
from plap.fitting.comparison import Announce, Comparison, compare
from plap.fitting.models import Fitted, checked
from plap.fitting.settings import FitSettings, PieceSettings
from plap.minibatch import Checkpoint, Pieces, Ranks, train_in_pieces
from plap.minibatch.distributed import restarted_by_torchrun
from plap.parts import partition
from plap.training import RunConfig, RunResult, combine
from plap.training.loop import Report

_SUFFIX = ".checkpoint"


@dataclass(frozen=True, eq=False)
class TrainInPieces:
    """Trains each kind of model with some seeds, one after another; checkpoints go into ``folder``."""

    pieces: Pieces
    settings: FitSettings
    how: PieceSettings
    ranks: Ranks
    folder: Path

    def __call__(self, key: str, progress: Report | None) -> Fitted:
        """Train the model of this name."""
        config = self.settings.base(key)
        if key == "pgnn":
            config = replace(config, **self.settings.fixed)
        runs = []
        for k in range(self.settings.seeds):
            report = _part(progress, k, self.settings.seeds)
            runs.append(self._run(replace(config, seed=config.seed + k), report))
            if runs[-1].interrupted:
                break
        ensemble = combine(runs, multilabel=self.pieces.multilabel)
        return checked(Fitted(config, (), ensemble, any(run.interrupted for run in runs)))

    def _run(self, config: RunConfig, progress: Report | None) -> RunResult:
        checkpoint = Checkpoint(
            self.folder / f"{config.model}-{config.seed}{_SUFFIX}",
            self.how.checkpoint_every,
            resume=self.how.resume or restarted_by_torchrun(),
        )
        return train_in_pieces(
            self.pieces, config, ranks=self.ranks, evaluation=self.how.evaluation, checkpoint=checkpoint,
            progress=progress,
        )  # fmt: skip


def compare_in_pieces(
    data: GraphData,
    split: Split,
    settings: FitSettings,
    ranks: Ranks,
    folder: Path,
    announce: Announce | None = None,
) -> Comparison:
    """Train the model and its rivals as ``settings.pieces`` says, without a search.

    Every rank calls this function with equal arguments. Label propagation, which takes the whole graph, is
    left to the first.

    Parameters
    ----------
    data, split, settings, announce :
        As for :func:`plap.fitting.comparison.compare`.
    ranks : Ranks
    folder : path
        Where checkpoints are kept; they are removed at a good end.
    """
    how = settings.pieces
    if how is None:
        raise InputError("settings.pieces must say how to train in pieces")
    pieces = make_pieces(data, split, how, settings.seed, ranks)
    if ranks.first and not how.resume and not restarted_by_torchrun():
        remove_checkpoints(folder)
    if not ranks.first:
        settings = replace(settings, rivals=tuple(key for key in settings.rivals if key != "labels"))
    train = TrainInPieces(pieces, settings, how, ranks, folder)
    return compare(data, split, settings, announce, train)


def make_pieces(data: GraphData, split: Split, how: PieceSettings, seed: int, ranks: Ranks) -> Pieces:
    """METIS parts, cut by the first rank for all, or the graphs of a collection."""
    options: dict[str, Any] = {
        "parts_per_batch": how.parts_per_batch,
        "pieces_per_step": how.pieces_per_step,
        "seed": seed,
        "num_classes": data.num_classes if data.y.ndim == 1 else None,
    }
    if how.parts is not None:
        part = _cut_once(data, how.parts, seed, ranks)
        return Pieces(data.graph, data.x, data.y, split, part, **options)
    if data.graph_of_node is None:
        raise InputError(f"{data.name} is one graph: cut it into parts (--parts)")
    return Pieces.of_graphs(data.graph, data.x, data.y, split, data.graph_of_node, **options)


def remove_checkpoints(folder: Path) -> None:
    """Remove what :func:`compare_in_pieces` left in its folder, and the folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        for path in folder.glob(f"*{_SUFFIX}"):
            path.unlink()
        folder.rmdir()


def _cut_once(data: GraphData, parts: int, seed: int, ranks: Ranks) -> Tensor:
    content = partition(data.graph, parts, seed).numpy().tobytes() if ranks.first else None
    received = ranks.from_first(content)
    assert received is not None
    return torch.from_numpy(np.frombuffer(received, dtype=np.int64).copy())


def _part(progress: Report | None, number: int, count: int) -> Report | None:
    if progress is None:
        return None
    return lambda state: progress(replace(state, done=(number + state.done) / count))
