"""Training: configurations, the loop, many runs as one program, training in pieces, tuning, ensembles."""

import importlib
from typing import TYPE_CHECKING, Any

from plap.data.metrics import Interval, accuracy, accuracy_interval, macro_f1, micro_f1, roc_auc
from plap.split_masks import SplitLike
from plap.training.config import RunConfig
from plap.training.ensemble import Ensemble, combine, train_ensemble
from plap.training.loop import train_runs
from plap.training.modules import build_module
from plap.training.results import History, Progress, RunResult, Trial, TuneResult
from plap.training.space import SearchSpace, architectures
from plap.training.tuning import tune

if TYPE_CHECKING:
    from plap.training import pieces

__all__ = [
    "Ensemble",
    "History",
    "Interval",
    "Progress",
    "RunConfig",
    "RunResult",
    "SearchSpace",
    "SplitLike",
    "Trial",
    "TuneResult",
    "accuracy",
    "accuracy_interval",
    "architectures",
    "build_module",
    "combine",
    "macro_f1",
    "micro_f1",
    "pieces",
    "roc_auc",
    "train_ensemble",
    "train_runs",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import training in pieces only when asked for."""
    if name == "pieces":
        return importlib.import_module("plap.training.pieces")
    raise AttributeError(f"module 'plap.training' has no attribute {name!r}")
