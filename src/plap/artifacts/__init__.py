"""What a fit leaves on disk: written whole or not at all, checked in full when it is read."""

from plap.artifacts.digests import features_digest
from plap.artifacts.folder import check_writable
from plap.artifacts.model_file import ModelFile
from plap.artifacts.predictions import Predictions
from plap.artifacts.result import Result, estimate_size, load_metrics, load_model, write_result

__all__ = [
    "ModelFile",
    "Predictions",
    "Result",
    "check_writable",
    "estimate_size",
    "features_digest",
    "load_metrics",
    "load_model",
    "write_result",
]
