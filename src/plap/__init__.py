"""p-Laplacian message passing for graphs whose edges may lie."""

from plap.calculus import divergence, energy, gradient, objective, p_laplacian
from plap.errors import InputError
from plap.graph import Graph, GraphInfo
from plap.propagation import aggregation_weights, propagate

__version__ = "0.1.0"

__all__ = [
    "Graph",
    "GraphInfo",
    "InputError",
    "__version__",
    "aggregation_weights",
    "divergence",
    "energy",
    "gradient",
    "objective",
    "p_laplacian",
    "propagate",
]
