"""Spectra of the graph p-Laplacian, and message passing as a filter (§4, Theorems 5-7, Proposition 1)."""

from plap.spectral.branches import Branch, Branches, eigenpair_branches
from plap.spectral.clustering import Clustering, spectral_clustering
from plap.spectral.defects import (
    DecompositionDefect,
    OrthogonalityDefect,
    decomposition_defect,
    orthogonality_defect,
)
from plap.spectral.frequencies import Spectrum, spectrum
from plap.spectral.largest import largest_eigenpair
from plap.spectral.operator import Eigenpair
from plap.spectral.regimes import Bounds, NodeRegimes, eigenvalue_bounds, node_regimes
from plap.spectral.response import (
    Bands,
    Response,
    filter_response,
    linear_gain,
    response_curves,
    response_rows,
    response_table,
    transfer,
)
from plap.spectral.second import cheeger_cut, second_eigenpair

__all__ = [
    "Bands",
    "Bounds",
    "Branch",
    "Branches",
    "Clustering",
    "DecompositionDefect",
    "Eigenpair",
    "NodeRegimes",
    "OrthogonalityDefect",
    "Response",
    "Spectrum",
    "cheeger_cut",
    "decomposition_defect",
    "eigenpair_branches",
    "eigenvalue_bounds",
    "filter_response",
    "largest_eigenpair",
    "linear_gain",
    "node_regimes",
    "orthogonality_defect",
    "response_curves",
    "response_rows",
    "response_table",
    "second_eigenpair",
    "spectral_clustering",
    "spectrum",
    "transfer",
]
