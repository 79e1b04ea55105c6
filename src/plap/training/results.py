"""What a training run leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from plap.training.config import RunConfig


@dataclass(frozen=True, eq=False)
class History:
    """One number an epoch, float64 [epochs] each."""

    train_loss: Tensor
    """Before the epoch's step, with dropout."""
    val_loss: Tensor
    """After the epoch's step, without dropout."""
    val_score: Tensor
    """The task's headline metric: accuracy, or micro-F1 for several labels per node."""


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run: how it went, and the model of its best epoch."""

    config: RunConfig
    best_epoch: int
    """Counted from 1; 0 where no epoch was finished, and then the state is the initial one."""
    epochs: int
    """Epochs trained."""
    seconds: float
    """Time of the batch it was trained in, shared out by epochs."""
    history: History
    val_score: float
    val_loss: float
    state: dict[str, Tensor]
    """For ``load_state_dict`` of :func:`plap.training.build_module`, in the dtype of the training."""
    logits: Tensor
    """[N, L], of every node, by the best epoch's weights and without dropout."""
    interrupted: bool = False
    """Whether Ctrl-C ended the run before its time."""


@dataclass(frozen=True)
class Progress:
    """How far a call of ``train_runs`` is; what its ``progress`` function is given after every epoch."""

    runs: int
    """Runs of the call."""
    finished: int
    """Runs that are through."""
    epoch: int
    """Epochs that the present batch has trained."""
    max_epochs: int
    """Epochs that it may train at most."""
    active: int
    """Runs of the present batch that are still being trained."""
    best_score: float
    """Best validation score among these."""
    done: float
    """From 0 to 1: the mean over all runs of 1 for a run that is through, ``epoch / max_epochs`` for one that
    is being trained, and 0 for one that has not begun. Early stopping makes it jump."""
    seconds: float
    """Since the call began."""
