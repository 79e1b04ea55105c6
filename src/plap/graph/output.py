"""A graph as other libraries have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from torch import Tensor

from plap.checks import import_extra

if TYPE_CHECKING:
    import networkx
    from torch_geometric.data import Data


def scipy_matrix(
    indptr: Tensor, indices: Tensor, weight: Tensor | None, dtype: Any, copy: bool
) -> scipy.sparse.csr_array:
    """A SciPy CSR array of these rows; without weights every entry is 1."""
    n = indptr.shape[0] - 1
    if weight is None:
        values = np.ones(indices.shape[0], dtype=dtype or np.float64)
    else:
        values = weight.detach().cpu().numpy()
        values = values if dtype is None else values.astype(dtype, copy=False)
    parts = (values, indices.cpu().numpy(), indptr.cpu().numpy())
    return scipy.sparse.csr_array(parts, shape=(n, n), copy=copy)


def pyg_data(edge_index: Tensor, weight: Tensor, num_nodes: int, attributes: dict[str, Any]) -> Data:
    """PyG's ``Data`` of these edges."""
    from torch_geometric.data import Data  # noqa: PLC0415  (slow to import)

    return Data(edge_index=edge_index, edge_weight=weight, num_nodes=num_nodes, **attributes)


def networkx_graph(ends: Tensor, weight: Tensor, num_nodes: int) -> networkx.Graph[int]:
    """An undirected NetworkX graph of these edges."""
    graph: networkx.Graph[int] = import_extra("networkx", "networkx", "Graph.to_networkx").Graph()
    graph.add_nodes_from(range(num_nodes))
    rows = zip(*ends.tolist(), weight.tolist(), strict=True)
    graph.add_weighted_edges_from(rows)
    return graph
