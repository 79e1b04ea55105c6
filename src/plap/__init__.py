"""p-Laplacian message passing for graphs whose edges may lie."""

from plap import data, nn
from plap.calculus import divergence, energy, gradient, objective, p_laplacian
from plap.errors import InputError
from plap.estimator import PGNNClassifier
from plap.graph import Graph, GraphInfo
from plap.label_propagation import PLaplacianLabelPropagation
from plap.propagation import aggregation_weights, propagate
from plap.solution import SolveInfo, solve

__version__ = "0.1.0"

__all__ = [
    "Graph",
    "GraphInfo",
    "InputError",
    "PGNNClassifier",
    "PLaplacianLabelPropagation",
    "SolveInfo",
    "__version__",
    "aggregation_weights",
    "data",
    "divergence",
    "energy",
    "gradient",
    "nn",
    "objective",
    "p_laplacian",
    "propagate",
    "solve",
]
