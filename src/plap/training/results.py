"""What training returns: how a run went, its result, the progress of a call, and what a search tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from plap.training.config import RunConfig


@dataclass(frozen=True, eq=False)
class History:
    """One value per epoch and field, each float64 [epochs]."""

    train_loss: Tensor
    """Before the epoch's step, with dropout."""
    val_loss: Tensor
    """After the epoch's step, without dropout."""
    val_score: Tensor
    """The task's metric: by default accuracy, micro-F1 for several labels per node, R² for numbers. One for
    which lower is better is negated."""


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run: how it went, and the model of its best epoch."""

    config: RunConfig
    best_epoch: int
    """Counted from 1; 0 where no epoch was finished, and then the state is the initial one; the logits are 0
    if the run had not begun when its time was over."""
    epochs: int
    """Epochs trained."""
    seconds: float
    """Its share of the time that its batch took; an epoch's time is divided among the active runs."""
    history: History
    val_score: float
    val_loss: float
    state: dict[str, Tensor]
    """For ``load_state_dict`` of :func:`plap.training.build_module`, in the dtype of the training."""
    logits: Tensor
    """[N, L], of every node, with the weights of the best epoch and without dropout."""
    interrupted: bool = False
    """Whether Ctrl-C ended the run early."""
    out_of_time: bool = False
    """Whether a time limit did."""


@dataclass(frozen=True)
class Progress:
    """How far a call of ``train_runs`` is; passed to its ``progress`` function after every epoch."""

    runs: int
    """Number of runs of the call."""
    finished: int
    """How many of them have ended."""
    epoch: int
    """Epochs that the current batch has trained."""
    max_epochs: int
    """The most epochs that it may train."""
    active: int
    """Runs of the current batch that are still being trained."""
    best_score: float
    """Best validation score among these."""
    done: float
    """From 0 to 1: the mean over all runs of 1 for a run that is through, ``epoch / max_epochs`` for one that
    is being trained, and 0 for one that has not begun. Early stopping makes it jump."""
    seconds: float
    """Since the call began."""


def part_of(
    progress: Callable[[Progress], None] | None, begin: float, end: float
) -> Callable[[Progress], None] | None:
    """``progress`` for the part of a longer call from ``begin`` to ``end``, both from 0 to 1."""
    if progress is None:
        return None
    return lambda state: progress(replace(state, done=begin + (end - begin) * state.done))


@dataclass(frozen=True)
class Trial:
    """One run of a search."""

    config: RunConfig
    rung: int
    """0 is the first and shortest."""
    epochs: int
    best_epoch: int
    val_score: float
    val_loss: float
    seconds: float

    @classmethod
    def of(cls, run: RunResult, rung: int) -> Trial:
        """What a search keeps of a run of this rung."""
        return cls(run.config, rung, run.epochs, run.best_epoch, run.val_score, run.val_loss, run.seconds)


@dataclass(frozen=True)
class TuneResult:
    """The winner and everything that was tried."""

    best: RunConfig
    trials: tuple[Trial, ...]
    best_run: RunResult
    """Of the first seeds, the run with the best validation score, whatever its rung: what there is after
    Ctrl-C."""
    interrupted: bool = False
    runners_up: tuple[RunConfig, ...] = ()
    """The other finalists that validation cannot tell from the winner, best first: their scores are at most
    two standard errors behind. They use edges if the winner does, and do without them otherwise."""
    finalists: tuple[RunResult, ...] = ()
    """Runs of the winner and of these in the last rung: members of an ensemble need not be trained again."""
