"""Training: configurations, the loop, many runs as one program, tuning, ensembles, metrics."""

from plap.data.metrics import Interval, accuracy, accuracy_interval, macro_f1, micro_f1, roc_auc
from plap.split_masks import SplitLike
from plap.training.config import RunConfig
from plap.training.ensemble import Ensemble, combine, train_ensemble
from plap.training.loop import train_runs
from plap.training.modules import build_module
from plap.training.results import History, Progress, RunResult
from plap.training.space import SearchSpace
from plap.training.tuning import Trial, TuneResult, tune

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
    "build_module",
    "combine",
    "macro_f1",
    "micro_f1",
    "roc_auc",
    "train_ensemble",
    "train_runs",
    "tune",
]
