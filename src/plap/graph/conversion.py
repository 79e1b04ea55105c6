"""Edges as users and other libraries have them: checked on the way in (errors name the position), and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.checks import check_integer, import_extra
from plap.errors import InputError
from plap.graph.building import MAX_NODES

if TYPE_CHECKING:
    import networkx
    from torch_geometric.data import Data


class EdgeList(NamedTuple):
    """What :meth:`plap.Graph.from_edge_index` takes."""

    edge_index: Tensor
    edge_weight: Tensor | None
    num_nodes: int | None


def from_pairs(edges: Any, weight: Any, num_nodes: int | None) -> EdgeList:
    """From anything that NumPy can turn into an [E, 2] integer array."""
    try:
        array = np.asarray(edges)
    except ValueError:
        raise InputError("edges must have shape [E, 2], but its rows differ in length") from None
    if array.size == 0:
        array = np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"edges must have shape [E, 2], not {list(array.shape)}")
    if array.dtype.kind not in "iu":
        raise InputError(f"edges must hold integer node indices, not {array.dtype}")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.max(initial=0) >= 2**63:
        raise InputError("edges contains an index of 2^63 or more")
    edge_index = torch.from_numpy(np.ascontiguousarray(array.T).astype(np.int64, copy=False))
    if weight is not None and not isinstance(weight, Tensor):  # a tensor may require gradients
        weight = weight_tensor(np.asarray(weight))
    return EdgeList(edge_index, weight, num_nodes)


def from_scipy(matrix: scipy.sparse.sparray | scipy.sparse.spmatrix) -> EdgeList:
    """From a square SciPy sparse matrix; entries of one place are summed, and stored zeros are no edges."""
    if not scipy.sparse.issparse(matrix):
        advice = "; scipy.sparse.csr_array(matrix) makes one" if isinstance(matrix, np.ndarray) else ""
        raise InputError(f"matrix must be a SciPy sparse matrix, not {type(matrix).__name__}{advice}")
    _check_square(matrix)
    csr = matrix.tocsr()
    if not csr.has_canonical_format or not csr.data.all():
        csr = csr.copy()  # it may be the caller's own
        csr.sum_duplicates()
        csr.eliminate_zeros()
    coo = csr.tocoo()
    return EdgeList(torch.from_numpy(np.stack([coo.row, coo.col])), weight_tensor(coo.data), matrix.shape[0])


def from_torch_sparse(matrix: Tensor) -> EdgeList:
    """From a square torch sparse matrix; entries of one place are summed, and stored zeros are no edges."""
    if not isinstance(matrix, Tensor):
        advice = "; Graph.from_scipy takes it" if scipy.sparse.issparse(matrix) else ""
        raise InputError(f"matrix must be a torch sparse matrix, not {type(matrix).__name__}{advice}")
    _check_square(matrix)
    coo = matrix.to_sparse(layout=torch.sparse_coo).coalesce()
    kept = coo.values() != 0
    return EdgeList(coo.indices()[:, kept], coo.values()[kept], matrix.shape[0])


def from_networkx(graph: networkx.Graph[Any], weight: str | None) -> EdgeList:
    """From a NetworkX graph; both directions of each edge of an undirected one."""
    kind = import_extra("networkx", "networkx", "Graph.from_networkx").Graph
    if not isinstance(graph, kind):
        raise InputError(f"graph must be a networkx.Graph, not {type(graph).__name__}")
    position = {node: k for k, node in enumerate(graph)}
    edges = [(position[u], position[v]) for u, v in graph.edges()]
    weights = None
    if weight is not None:
        weights = np.array([_edge_attribute(*edge) for edge in graph.edges(data=weight, default=1.0)])
    if not graph.is_directed():
        back = [k for k, (u, v) in enumerate(edges) if u != v]
        edges += [edges[k][::-1] for k in back]
        weights = None if weights is None else np.concatenate([weights, weights[back]])
    return from_pairs(edges, weights, graph.number_of_nodes())


def from_pyg(data: Data) -> EdgeList:
    """From a PyG ``Data``."""
    from torch_geometric.data import Data, HeteroData  # noqa: PLC0415  (slow to import)

    if not isinstance(data, Data):
        advice = "; data.to_homogeneous() makes one" if isinstance(data, HeteroData) else ""
        raise InputError(f"data must be a torch_geometric.data.Data, not {type(data).__name__}{advice}")
    if data.edge_index is None:
        raise InputError("data.edge_index is missing")
    return EdgeList(data.edge_index, data.get("edge_weight"), data.num_nodes)


def _check_square(matrix: Any) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"matrix must be square, not of shape {tuple(matrix.shape)}")


def weight_tensor(values: np.ndarray) -> Tensor:
    """A tensor of real numbers; integers become float32."""
    if values.dtype.kind not in "biuf":
        raise InputError(f"weight must hold real numbers, not {values.dtype}")
    dtype = np.float64 if values.dtype.kind == "f" and values.dtype.itemsize >= 8 else np.float32
    return torch.from_numpy(np.ascontiguousarray(values, dtype=dtype))


def _edge_attribute(source: object, target: object, value: object) -> float:
    """Weight of one NetworkX edge."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        edge = (source, target)
        raise InputError(f"weight must be a number on every edge, not {value!r} on {edge}") from None


def endpoints(edge_index: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets as NumPy arrays, checked for shape and type."""
    if not isinstance(edge_index, Tensor):
        raise InputError(f"edge_index must be a tensor, not {type(edge_index).__name__}")
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InputError(f"edge_index must have shape [2, E], not {list(edge_index.shape)}")
    if edge_index.dtype.is_floating_point or edge_index.dtype.is_complex or edge_index.dtype == torch.bool:
        raise InputError(f"edge_index must hold integer node indices, not {edge_index.dtype}")
    array = edge_index.detach().as_subclass(Tensor).cpu().numpy()
    if array.dtype == np.uint64:
        array = array.astype(np.int64)  # what overflows becomes negative and is refused as such
    return array[0], array[1]


def count_nodes(source: np.ndarray, target: np.ndarray, num_nodes: int | None) -> int:
    """N, after checking that every index is in [0, N)."""
    for row, index in enumerate((source, target)):
        if index.size and index.min() < 0:
            at = int(np.argmax(index < 0))
            raise InputError(f"edge_index[{row}, {at}] = {index[at]} is negative")
    largest = max((int(index.max()) for index in (source, target) if index.size), default=-1)
    if largest >= MAX_NODES:
        row = int(source.max() < MAX_NODES)
        index = (source, target)[row]
        at = int(np.argmax(index >= MAX_NODES))
        raise InputError(
            f"edge_index[{row}, {at}] = {index[at]} is too large: nodes are numbered from 0 to 2^31 - 1"
        )
    if num_nodes is None:
        return largest + 1
    num_nodes = check_integer("num_nodes", num_nodes, 0)
    if largest >= num_nodes:
        for row, index in enumerate((source, target)):
            if index.size and index.max() >= num_nodes:
                at = int(np.argmax(index >= num_nodes))
                raise InputError(
                    f"edge_index[{row}, {at}] = {index[at]} is out of range: num_nodes is {num_nodes}"
                )
    if num_nodes > MAX_NODES:
        raise InputError(f"num_nodes = {num_nodes} is too large: a graph has at most 2^31 nodes")
    return num_nodes


def checked_weights(edge_weight: Tensor | None, count: int) -> Tensor | None:
    """Weights on the CPU, checked."""
    if edge_weight is None:
        return None
    if not isinstance(edge_weight, Tensor):
        raise InputError(f"edge_weight must be a tensor, not {type(edge_weight).__name__}")
    if edge_weight.shape == (count, 1):
        edge_weight = edge_weight.squeeze(1)
    if edge_weight.shape != (count,):
        raise InputError(f"edge_weight must have shape [{count}], not {list(edge_weight.shape)}")
    if edge_weight.dtype.is_complex:
        raise InputError(f"edge_weight must be real, not {edge_weight.dtype}")
    weight = edge_weight.cpu()
    if weight.dtype not in (torch.float32, torch.float64):
        weight = weight.float()
    bad = ~(torch.isfinite(weight) & (weight > 0))
    if bool(bad.any()):
        at = int(bad.int().argmax())
        raise InputError(f"edge_weight[{at}] = {float(weight[at])} is not a positive finite number")
    return weight


def ascending_nodes(nodes: Any, num_nodes: int, device: torch.device) -> Tensor:
    """Node indices in ascending order, from integers without repetition or a boolean mask."""
    try:
        given = torch.as_tensor(nodes, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"nodes must be integers or a mask, not {type(nodes).__name__}") from None
    mask = given.dtype == torch.bool
    if mask:
        if given.shape != (num_nodes,):
            raise InputError(f"a mask of nodes must have shape [{num_nodes}], not {list(given.shape)}")
        given = given.nonzero().squeeze(1)
    if given.numel() == 0:
        raise InputError("nodes must name at least one node")
    if mask:
        return given
    if given.ndim != 1 or given.dtype.is_floating_point or given.dtype.is_complex:
        raise InputError(f"nodes must be integers of shape [M], not {given.dtype} {list(given.shape)}")
    ordered = given.long().sort().values
    for node in (int(ordered[0]), int(ordered[-1])):
        if not 0 <= node < num_nodes:
            raise InputError(f"nodes contains {node}, but the graph has the nodes 0 to {num_nodes - 1}")
    if bool((ordered[1:] == ordered[:-1]).any()):
        raise InputError(f"nodes contains {int(ordered[:-1][ordered[1:] == ordered[:-1]][0])} twice")
    return ordered


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
