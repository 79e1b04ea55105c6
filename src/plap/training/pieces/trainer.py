"""Training in pieces: epochs, early stopping, checkpoints, on one process or on many."""

from __future__ import annotations

import json
import time

import numpy as np
import torch
from torch import Tensor

from plap.errors import InputError
from plap.models import find_model
from plap.training.config import RunConfig
from plap.training.devices import Ranks, choose_device
from plap.training.loop import ProgressCallback
from plap.training.modules import build_module, check_trainable
from plap.training.pieces import checkpoints
from plap.training.pieces.checkpoints import Checkpoint, Snapshot, StateDict
from plap.training.pieces.cutting import Pieces
from plap.training.pieces.model_on_pieces import EvaluateOn, Evaluation, Stepper
from plap.training.results import History, Progress, RunResult
from plap.training.stopping import EarlyStopping, Interrupts

_UNTIL_WHEN = ("max_epochs", "patience")
"""Fields of a configuration that decide when training ends but change none of its epochs."""


def train_in_pieces(
    pieces: Pieces,
    config: RunConfig,
    *,
    device: str | torch.device = "auto",
    ranks: Ranks | None = None,
    evaluation: EvaluateOn = "auto",
    checkpoint: Checkpoint | None = None,
    progress: ProgressCallback | None = None,
) -> RunResult:
    """Train one run piece by piece.

    Like :func:`plap.training.train_runs`, but with several steps of Adam per epoch, one for each step of
    ``pieces``; an epoch's training loss is the mean over its training nodes. Predictions are exact: when
    the nodes of a part are evaluated, everything outside the part that they depend on is included.

    Parameters
    ----------
    pieces : Pieces
    config : RunConfig
    device : str or torch.device
        "auto", "cpu", "cuda", "cuda:N" or "mps"; ignored if ``ranks`` is given, which has a device.
    ranks : Ranks, optional
        From :func:`join_ranks`; every process calls this function with equal arguments.
    evaluation : {"auto", "halos", "whole"}
        See :class:`plap.training.pieces.model_on_pieces.Evaluation`.
    checkpoint : Checkpoint, optional
    progress : function of a Progress, optional
        Called after every epoch, on every rank.

    Returns
    -------
    RunResult
        The same on every rank, except ``seconds``; tensors are on the CPU. After Ctrl-C, the best so far.

    Examples
    --------
    >>> from plap.data import csbm, split
    >>> data = csbm(phi=0.5, n=100, f=20, seed=1)
    >>> pieces = Pieces.of_parts(data.graph, data.x, data.y, split(data), 8, parts_per_batch=2, cache=False)
    >>> train_in_pieces(pieces, RunConfig(p=1.5, max_epochs=5)).epochs
    5
    """
    run = _Run(pieces, config, ranks or Ranks(choose_device(device)), evaluation, checkpoint)
    with Interrupts() as interrupts:
        try:
            while not run.over and not run.interrupted:
                run.train_epoch(interrupts)
                if progress is not None:
                    progress(run.progress())
        except KeyboardInterrupt:
            if run.has_company:  # the other ranks are waiting in the middle of an epoch
                raise
            run.interrupted = True
    return run.result()


class _Run:
    def __init__(
        self, pieces: Pieces, config: RunConfig, ranks: Ranks, on: EvaluateOn, checkpoint: Checkpoint | None
    ) -> None:
        self._pieces, self._config, self._ranks, self._checkpoint = pieces, config, ranks, checkpoint
        module = build_module(config, pieces.x.shape[1], pieces.task.num_outputs)
        check_trainable(find_model(config.model), module, weighted=pieces.weighted)
        self._module = module.to(ranks.device)
        self._stepper = Stepper(pieces, config, self._module, ranks)
        self._evaluation = Evaluation(pieces, config, self._module, ranks, on)
        self._history: list[tuple[float, float, float]] = []
        self._stopping = EarlyStopping([config])
        self._best = self._state()
        self._seconds = 0.0
        self.interrupted = False
        if checkpoint is not None:
            self._digest = _digest(pieces, config)
            self._resume(checkpoint)

    @property
    def has_company(self) -> bool:
        """Whether other processes train the same run."""
        return self._ranks.size > 1

    @property
    def over(self) -> bool:
        """Whether the run has ended by its own rules."""
        return bool(self._stopping.over[0])

    def train_epoch(self, interrupts: Interrupts) -> None:
        """All steps of an epoch, then validation."""
        begin = time.perf_counter()
        epoch, count = len(self._history), 0
        total = torch.zeros((), dtype=torch.float64, device=self._ranks.device)
        for shares in self._pieces.steps(epoch):
            total += self._stepper.step(epoch, shares)
            count += sum(share.labelled for share in shares)
        also = torch.stack([total, torch.full_like(total, float(interrupts.pending))])
        val_loss, val_score, (train_loss, pending) = self._evaluation.validate(also)
        self.interrupted = pending > 0
        if self._note(train_loss / count, val_loss, val_score):
            self._best = self._state()
        self._seconds += time.perf_counter() - begin
        self._save()

    def progress(self) -> Progress:
        """How far the run is."""
        epoch, limit = len(self._history), self._config.max_epochs
        score = float(self._stopping.best_score[0])
        done = 1.0 if self.over else epoch / limit
        return Progress(1, int(self.over), epoch, limit, int(not self.over), score, done, self._seconds)

    def result(self) -> RunResult:
        """The result of the best epoch."""
        self._module.load_state_dict(self._best)
        logits = self._evaluation.logits()
        history = History(*_columns(self._history))
        return RunResult(
            config=self._config,
            best_epoch=int(self._stopping.best_epoch[0]),
            epochs=len(self._history),
            seconds=self._seconds,
            history=history,
            val_score=float(self._stopping.best_score[0]),
            val_loss=float(self._stopping.best_loss[0]),
            state={name: value.cpu() for name, value in self._best.items()},
            logits=logits,
            interrupted=self.interrupted and not self.over,
        )

    def _note(self, train_loss: float, val_loss: float, val_score: float) -> bool:
        """Add an epoch to the history; returns whether it is the best so far."""
        self._history.append((train_loss, val_loss, val_score))
        return self._stopping.note(np.array([val_loss]), np.array([val_score])).size > 0

    def _state(self) -> StateDict:
        return {name: value.detach().clone() for name, value in self._module.state_dict().items()}

    def _save(self) -> None:
        epoch = len(self._history)
        if self._checkpoint is None or not self._ranks.first:
            return
        if epoch % self._checkpoint.every and not self.over and not self.interrupted:
            return
        snapshot = Snapshot(
            history=torch.tensor(self._history, dtype=torch.float64),
            seconds=self._seconds,
            state=self._state(),
            best=self._best,
            moments=checkpoints.moments_by_name(self._stepper.optimizer, self._stepper.names),
        )
        checkpoints.write(self._checkpoint.file, checkpoints.encode(snapshot, self._digest))

    def _resume(self, checkpoint: Checkpoint) -> None:
        """Continue from the checkpoint of the first rank, which decides for all whether there is one."""
        asked = self._ranks.first and checkpoint.resume
        content = self._ranks.from_first(checkpoints.read(checkpoint.file) if asked else None)
        if content is None:
            return
        snapshot = checkpoints.decode(content, self._digest, checkpoint.file)
        for losses in snapshot.history.tolist():
            if self.over:
                raise InputError(
                    f"the checkpoint {checkpoint.file} is of epoch {len(snapshot.history)}, but with these "
                    f"settings training ends with epoch {len(self._history)}; start without resuming"
                )
            self._note(*losses)
        self._module.load_state_dict(snapshot.state)
        checkpoints.load_moments(self._stepper.optimizer, self._stepper.names, snapshot.moments)
        self._seconds = snapshot.seconds
        self._best = {name: value.to(self._ranks.device) for name, value in snapshot.best.items()}


def _digest(pieces: Pieces, config: RunConfig) -> str:
    """Everything that an epoch depends on; resumed training may end earlier or later than planned before."""
    fields = {name: value for name, value in config.to_dict().items() if name not in _UNTIL_WHEN}
    return f"{json.dumps(fields, sort_keys=True)} {pieces.digest}"


def _columns(history: list[tuple[float, float, float]]) -> tuple[Tensor, ...]:
    return torch.tensor(history, dtype=torch.float64).reshape(-1, 3).unbind(1)
