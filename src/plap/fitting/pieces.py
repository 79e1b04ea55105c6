"""The model and its rivals trained in pieces, on one process or on many."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.splits import Split
from plap.data.tasks import Task
from plap.errors import InputError
from plap.fitting.search import Fitted, checked
from plap.fitting.settings import MODEL, FitSettings, PieceSettings
from plap.parts import partition
from plap.training import RunConfig, RunResult, combine
from plap.training.devices import restart_count, run_id
from plap.training.loop import ProgressCallback
from plap.training.pieces import Checkpoint, Pieces, Ranks, checkpoints, train_in_pieces

_SUFFIX = ".checkpoint"
_MARKER = "run-id"
"""File beside the checkpoints that says whose they are."""


@dataclass(frozen=True, eq=False)
class TrainInPieces:
    """Trains each kind of model with some seeds, one after another; checkpoints go into ``folder``.

    With ``resume`` each goes on from its own, where there is one.
    """

    pieces: Pieces
    settings: FitSettings
    how: PieceSettings
    ranks: Ranks
    folder: Path
    resume: bool

    def __call__(self, key: str, progress: ProgressCallback | None) -> Fitted:
        """Train the model of this name."""
        config, seeds = self.settings.config(key), self.settings.members
        runs = []
        for k in range(seeds):
            report = _part(progress, k, seeds)
            runs.append(self._run(config.with_values(seed=config.seed + k), report))
            if runs[-1].interrupted:
                break
        ensemble = combine(runs, self.pieces.task)
        return checked(Fitted(config, (), ensemble, any(run.interrupted for run in runs)))

    def _run(self, config: RunConfig, progress: ProgressCallback | None) -> RunResult:
        checkpoint = Checkpoint(
            _place(self.folder, config.model, config.seed), self.how.checkpoint_every, resume=self.resume
        )
        return train_in_pieces(
            self.pieces, config, ranks=self.ranks, evaluation=self.how.evaluation, checkpoint=checkpoint,
            progress=progress,
        )  # fmt: skip


def prepare_pieces(
    data: GraphData,
    split: Split,
    settings: FitSettings,
    ranks: Ranks,
    folder: Path,
    task: Task | None = None,
) -> TrainInPieces:
    """Cut the graph as ``settings.pieces`` says, and decide whether to go on from checkpoints.

    Every rank calls this function with equal arguments. The first decides for all whether to resume: because
    ``settings.pieces`` says so, or because torchrun has restarted the same training. If not, what an earlier
    training left is removed, last of all that comes before training: a call that is refused costs nobody a
    checkpoint.

    Parameters
    ----------
    data, split, settings :
        As for :func:`plap.fit`.
    ranks : Ranks
    folder : path
        Where checkpoints are kept.
    task : Task, optional
        By default the data's own.
    """
    how = settings.pieces
    if how is None:
        raise InputError("settings.pieces must say how to train in pieces")
    pieces = make_pieces(data, split, how, settings.seed, ranks, task)
    resume = _agree_to_resume(folder, how, ranks)
    if ranks.first and not resume:
        remove_checkpoints(folder)
        checkpoints.write(folder / _MARKER, run_id().encode())
    return TrainInPieces(pieces, settings, how, ranks, folder, resume)


def make_pieces(
    data: GraphData, split: Split, how: PieceSettings, seed: int, ranks: Ranks, task: Task | None = None
) -> Pieces:
    """METIS parts, cut by the first rank for all, or the graphs of a collection."""
    options: dict[str, Any] = {
        "parts_per_batch": how.parts_per_batch,
        "pieces_per_step": how.pieces_per_step,
        "seed": seed,
        "task": task or data.task,
    }
    if how.parts is not None:
        part = _cut_once(data, how.parts, seed, ranks)
        return Pieces(data.graph, data.x, data.y, split, part, **options)
    if data.graph_of_node is None:
        raise InputError(f"{data.name} is one graph: cut it into parts (--parts)")
    return Pieces.of_graphs(data.graph, data.x, data.y, split, data.graph_of_node, **options)


def remove_checkpoints(folder: Path) -> None:
    """Remove what :func:`prepare_pieces` left in its folder, and the folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        for written in (_MARKER, f"*{_SUFFIX}"):  # first the marker: without it nobody goes on from the rest
            for path in (*folder.glob(written), *folder.glob(f".{written}.*.part")):
                path.unlink()
        folder.rmdir()


def first_checkpoint(folder: Path, settings: FitSettings) -> Path:
    """The one that a training by these settings writes before all others."""
    return _place(folder, MODEL, settings.seed)


def _place(folder: Path, model: str, seed: int) -> Path:
    return folder / f"{model}-{seed}{_SUFFIX}"


def _agree_to_resume(folder: Path, how: PieceSettings, ranks: Ranks) -> bool:
    """Whether to go on from checkpoints, as the first rank decides for all.

    Torchrun's processes do so where they are of the same training, by its run id. One without a name is
    taken for the same if torchrun has started processes anew, whichever machine's.
    """
    anew = ranks.most(restart_count()) > 0
    resume = False
    if ranks.first:
        named = run_id() not in ("", "none")
        ours = checkpoints.read(folder / _MARKER) == run_id().encode()
        resume = how.resume or (ours and (named or anew))
    return ranks.from_first(b"resume" if resume else None) is not None


def _cut_once(data: GraphData, parts: int, seed: int, ranks: Ranks) -> Tensor:
    content = partition(data.graph, parts, seed).numpy().tobytes() if ranks.first else None
    received = ranks.from_first(content)
    assert received is not None
    return torch.from_numpy(np.frombuffer(received, dtype=np.int64).copy())


def _part(progress: ProgressCallback | None, number: int, count: int) -> ProgressCallback | None:
    if progress is None:
        return None
    return lambda state: progress(replace(state, done=(number + state.done) / count))
