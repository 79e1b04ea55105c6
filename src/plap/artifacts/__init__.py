"""What a fit leaves on disk: written whole or not at all, checked in full when it is read."""

from plap.artifacts.digests import features_digest
from plap.artifacts.folder import check_writable
from plap.artifacts.predictions import Predictions
from plap.artifacts.result import ResultFiles, estimate_size, load_metrics, load_model, write_result
from plap.artifacts.saved_model import SavedModel

__all__ = [
    "Predictions",
    "ResultFiles",
    "SavedModel",
    "check_writable",
    "estimate_size",
    "features_digest",
    "load_metrics",
    "load_model",
    "write_result",
]
