"""p-Laplacian message passing for graphs whose edges may lie."""

from plap.errors import InputError
from plap.graph import Graph, GraphInfo

__version__ = "0.1.0"

__all__ = ["Graph", "GraphInfo", "InputError", "__version__"]
