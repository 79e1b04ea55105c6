"""p-Laplacian message passing for graphs whose edges may lie."""

from typing import TYPE_CHECKING, Any

from plap import data, penalties
from plap.calculus import divergence, energy, gradient, objective, p_laplacian
from plap.errors import InputError
from plap.footprint import MemoryNeeded, memory_needed
from plap.graph import Graph, GraphInfo
from plap.label_propagation import PLaplacianLabelPropagation
from plap.propagation import aggregation_weights, propagate
from plap.solving import SolveInfo, solve

if TYPE_CHECKING:
    from plap import insight, minibatch, nn, parts, spectral, training
    from plap.estimator import PGNNClassifier

__version__ = "0.1.0"

__all__ = [
    "Graph",
    "GraphInfo",
    "InputError",
    "MemoryNeeded",
    "PGNNClassifier",
    "PLaplacianLabelPropagation",
    "SolveInfo",
    "__version__",
    "aggregation_weights",
    "data",
    "divergence",
    "energy",
    "gradient",
    "insight",
    "memory_needed",
    "minibatch",
    "nn",
    "objective",
    "p_laplacian",
    "parts",
    "penalties",
    "propagate",
    "solve",
    "spectral",
    "training",
]


def __getattr__(name: str) -> Any:
    """Import what needs Numba or PyTorch's compiler, a second each, only when it is asked for."""
    import importlib  # noqa: PLC0415

    if name in ("insight", "minibatch", "nn", "parts", "spectral", "training"):
        return importlib.import_module(f"plap.{name}")
    if name == "PGNNClassifier":
        return importlib.import_module("plap.estimator").PGNNClassifier
    raise AttributeError(f"module 'plap' has no attribute {name!r}")
