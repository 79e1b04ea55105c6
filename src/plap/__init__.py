"""p-Laplacian message passing for graphs with unreliable edges."""

import importlib
from typing import TYPE_CHECKING, Any

from plap import data, penalties
from plap.calculus import divergence, energy, gradient, objective, p_laplacian
from plap.errors import InputError
from plap.graph import Graph, GraphInfo
from plap.propagation import MemoryNeeded, aggregation_weights, memory_needed, propagate
from plap.solving import SolveInfo, solve

if TYPE_CHECKING:
    from plap import experiments, insight, models, nn, parts, spectral, training
    from plap.data.tables import read_tables
    from plap.experiments.reproduction import reproduce
    from plap.fitting import FitResult, fit
    from plap.fitting.estimator import PGNNClassifier
    from plap.fitting.on_graph import OnGraph
    from plap.fitting.regressor import PGNNRegressor
    from plap.label_propagation import PLaplacianLabelPropagation

__version__ = "0.1.0"

__all__ = [
    "FitResult",
    "Graph",
    "GraphInfo",
    "InputError",
    "MemoryNeeded",
    "OnGraph",
    "PGNNClassifier",
    "PGNNRegressor",
    "PLaplacianLabelPropagation",
    "SolveInfo",
    "__version__",
    "aggregation_weights",
    "data",
    "divergence",
    "energy",
    "experiments",
    "fit",
    "gradient",
    "insight",
    "memory_needed",
    "models",
    "nn",
    "objective",
    "p_laplacian",
    "parts",
    "penalties",
    "propagate",
    "read_tables",
    "reproduce",
    "solve",
    "spectral",
    "training",
]


_LAZY = {
    **dict.fromkeys(("experiments", "insight", "models", "nn", "parts", "spectral", "training"), ""),
    "FitResult": "plap.fitting",
    "OnGraph": "plap.fitting.on_graph",
    "PGNNClassifier": "plap.fitting.estimator",
    "PGNNRegressor": "plap.fitting.regressor",
    "PLaplacianLabelPropagation": "plap.label_propagation",
    "fit": "plap.fitting",
    "read_tables": "plap.data.tables",
    "reproduce": "plap.experiments.reproduction",
}
"""Where a name is defined; the empty string stands for a module of plap of that name."""


def __dir__() -> list[str]:
    """All public names, so that completion offers those that are yet to be imported too."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import what needs Numba, PyTorch's compiler or scikit-learn, a second each, only when asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'plap' has no attribute {name!r}")
    if not _LAZY[name]:
        return importlib.import_module(f"plap.{name}")
    return getattr(importlib.import_module(_LAZY[name]), name)
