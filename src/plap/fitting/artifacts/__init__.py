"""What a fit leaves on disk: written whole or not at all, checked in full when it is read."""

from plap.fitting.artifacts.folder import check_writable
from plap.fitting.artifacts.result import (
    Predictions,
    ResultFiles,
    estimate_size,
    load_metrics,
    load_model,
    write_result,
)
from plap.fitting.artifacts.saved_model import SavedModel

__all__ = [
    "Predictions",
    "ResultFiles",
    "SavedModel",
    "check_writable",
    "estimate_size",
    "load_metrics",
    "load_model",
    "write_result",
]
