"""The last step of every loader of a user's own files: checked parts to a :class:`GraphData`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.data.dataset import GraphData, Provenance
from plap.graph import Graph, Symmetrize
from plap.sparse import compact

if TYPE_CHECKING:
    from plap.data.tables.node_columns import NodeColumns


def assemble(
    *,
    name: str,
    source: str,
    files: dict[str, str],
    edge_index: Tensor,
    weight: Tensor | None,
    num_nodes: int,
    x: Tensor | None,
    y: Tensor | None,
    class_names: tuple[str, ...] = (),
    feature_names: tuple[str, ...] | None = None,
    node_ids: tuple[str, ...] | tuple[int, ...] = (),
    notes: tuple[str, ...] = (),
    symmetrize: Symmetrize = "max",
    columns: NodeColumns | None = None,
) -> GraphData:
    """Build the graph, make features up if there are neither any nor raw columns, and note that."""
    graph = Graph.from_edge_index(edge_index, weight, num_nodes, symmetrize=symmetrize)
    if columns is not None:
        x, feature_names = torch.zeros(num_nodes, 0), ()
    if x is None:
        x, feature_names = structural_features(graph), STRUCTURAL_NAMES
        notes = (
            *notes,
            f"No features were given: {', '.join(STRUCTURAL_NAMES)} were computed from the edges.",
        )
    return GraphData(
        name=name,
        graph=graph,
        x=compact(x),
        y=torch.full((num_nodes,), -1) if y is None else y,
        class_names=class_names,
        node_ids=node_ids,
        feature_names=feature_names,
        provenance=Provenance(source, files, notes),
        columns=columns,
    )


STRUCTURAL_NAMES = ("log_degree", "log_neighbour_degree", "return_probability", "log_pagerank")
_DAMPING = 0.85
_STEPS = 30
_TOLERANCE = 1e-3


def structural_features(graph: Graph) -> Tensor:
    r"""Return four features of every node, float32 [N, 4], in time linear in the edges.

    ======================  ===========================================================================
    log_degree              :math:`\log(1 + D_i)`
    log_neighbour_degree    :math:`\log(1 + \sum_j W_{ij} D_j / D_i)`, how busy the neighbours are
    return_probability      :math:`\sum_j W_{ij}^2 / (D_i D_j)`, of a walk to be back after two steps:
                            high where neighbours have few others
    log_pagerank            :math:`\log(1 + N \pi_i)`, damping 0.85, to a thousandth
    ======================  ===========================================================================

    A node without edges has zero in all but the last.

    Examples
    --------
    >>> import plap
    >>> structural_features(plap.Graph.from_edges([(0, 1)], num_nodes=3))[:, 2]
    tensor([1., 1., 0.])
    """
    n = graph.num_nodes
    if n == 0:
        return torch.zeros(0, len(STRUCTURAL_NAMES))
    # Vectors of the matrix's own type: SciPy would copy all its entries for another.
    matrix = graph.to_scipy(copy=False)
    degree = graph.degree.detach().cpu().numpy().astype(matrix.dtype)
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
    back = inverse * ((matrix.power(2) if graph.is_weighted else matrix) @ inverse)
    columns = [
        np.log1p(degree),
        np.log1p(inverse * (matrix @ degree)),
        back,
        np.log1p(n * _pagerank(matrix, inverse)),
    ]
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


def _pagerank(matrix: scipy.sparse.csr_array, inverse_degree: np.ndarray) -> np.ndarray:
    """Stationary probabilities of a walk that restarts anywhere; from a node without edges it always does."""
    n = matrix.shape[0]
    rank = np.full(n, 1 / n, dtype=inverse_degree.dtype)
    stuck = inverse_degree == 0
    for _ in range(_STEPS):
        walked = matrix @ (rank * inverse_degree)
        restart = 1 - _DAMPING * (1 - float(rank[stuck].sum()))
        following = _DAMPING * walked + restart / n
        change = float(np.abs(following - rank).sum())
        rank = following
        if change < _TOLERANCE:
            break
    return rank
