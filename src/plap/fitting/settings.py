"""What a fit is asked for, besides the data and the split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from plap.training import RunConfig
from plap.training.config import StopBy
from plap.training.pieces.evaluation import EvaluateOn

Rival = Literal["mlp", "gcn", "labels"]


@dataclass(frozen=True)
class PieceSettings:
    """How to train in pieces instead of on the whole graph."""

    parts: int | None = None
    """METIS parts of the graph; None: the graphs of a collection."""
    parts_per_batch: int = 1
    """Parts, or graphs, a piece."""
    pieces_per_step: int = 1
    device: str = "auto"
    evaluation: EvaluateOn = "auto"
    checkpoint_every: int = 10
    resume: bool = False


@dataclass(frozen=True)
class FitSettings:
    """How to search, how long to train, what to compare with."""

    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration that the search must not change."""
    search: bool = True
    budget: int | Literal["auto"] = "auto"
    seeds: int = 8
    hidden: int = 16
    max_epochs: int = 1000
    patience: int = 200
    stop_by: StopBy = "accuracy"
    seed: int = 0
    memory_budget: int | None = None
    rivals: tuple[Rival, ...] = ("mlp", "labels")
    """MLP knows the features alone, label propagation the edges alone."""
    pieces: PieceSettings | None = None
    """None: on the whole graph."""

    def base(self, model: str) -> RunConfig:
        """The configuration that the search starts from."""
        return RunConfig(
            model=model,
            hidden=self.hidden,
            seed=self.seed,
            max_epochs=self.max_epochs,
            patience=self.patience,
            stop_by=self.stop_by,
        )
