"""What a fit is asked for, besides the data and the split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from plap.training import RunConfig
from plap.training.config import StopBy, Stopping
from plap.training.pieces.evaluation import EvaluateOn

MODEL = "pgnn"
"""The model that a fit is for; see :mod:`plap.models`."""

LABEL_PROPAGATION = "labels"
"""The rival that is not trained; every other is a name of :mod:`plap.models`."""


@dataclass(frozen=True)
class PieceSettings:
    """How to train in pieces instead of on the whole graph."""

    parts: int | None = None
    """Number of METIS parts of the graph; None: the graphs of a collection."""
    parts_per_batch: int = 1
    """Parts, or graphs, per piece."""
    pieces_per_step: int = 1
    device: str = "auto"
    evaluation: EvaluateOn = "auto"
    checkpoint_every: int = 10
    """Epochs between checkpoints."""
    resume: bool = False


@dataclass(frozen=True)
class FitSettings:
    """How to search, how long to train, what to compare with."""

    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration that the search must not change."""
    search: bool = True
    budget: int | Literal["auto"] = "auto"
    """Epochs that the search may spend, over all runs."""
    seeds: int | None = None
    """Number of ensemble members; 8 by default, 1 in pieces."""
    hidden: int = 16
    max_epochs: int = 1000
    patience: int = 200
    stop_by: StopBy = "accuracy"
    stopping: Stopping = "progress"
    """What patience counts from, see :class:`plap.training.RunConfig`."""
    seed: int = 0
    memory_budget: int | str | None = None
    rivals: tuple[str, ...] = ("mlp", LABEL_PROPAGATION)
    """What the model is compared with: MLP uses the features alone, label propagation the edges alone."""
    pieces: PieceSettings | None = None
    """None: on the whole graph."""

    @property
    def members(self) -> int:
        """Number of ensemble members."""
        return self.seeds or (8 if self.pieces is None else 1)

    def config(self, model: str) -> RunConfig:
        """The configuration of ``model`` that a search starts from; ``fixed`` concerns :data:`MODEL` only."""
        return RunConfig(
            model,
            **{
                "hidden": self.hidden,
                "seed": self.seed,
                "max_epochs": self.max_epochs,
                "patience": self.patience,
                "stop_by": self.stop_by,
                "stopping": self.stopping,
                **(self.fixed if model == MODEL else {}),
            },
        )
