"""GCN's propagation matrix and GraphSAGE's, and the steps that multiply with them."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn import Linear

from plap.graph import Graph
from plap.memo import Memo
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.linear import Features, Network, sparse_product
from plap.sparse import tensor_from_scipy

_ADJACENCIES: Memo[Tensor] = Memo()
_MEANS: Memo[Tensor] = Memo()


def normalized_adjacency(graph: Graph) -> scipy.sparse.csr_array:
    r"""GCN's propagation matrix :math:`\hat D^{-1/2} (W + I) \hat D^{-1/2}`, in float64.

    As PyG computes it: a node that already has a self-loop keeps its weight, all others get one of weight 1.

    Examples
    --------
    >>> import plap
    >>> normalized_adjacency(plap.Graph.from_edges([(0, 1)])).toarray()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    W = graph.to_scipy(dtype=np.float64, copy=False)
    missing = (W.diagonal() == 0).astype(np.float64)
    W = scipy.sparse.csr_array(W + scipy.sparse.diags_array(missing))
    root = scipy.sparse.diags_array(1 / np.sqrt(W.sum(axis=1)))
    return scipy.sparse.csr_array(root @ W @ root)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def adjacency_tensor(graph: Graph) -> Tensor:
    """:func:`normalized_adjacency` as a torch CSR tensor, made once per graph."""
    return _ADJACENCIES.get(graph, lambda: tensor_from_scipy(normalized_adjacency(graph), torch.float64))


def differentiable_adjacency(graph: Graph) -> Tensor:
    """:func:`normalized_adjacency` of a graph whose weights require gradients, as a coalesced COO tensor."""
    n, edges = graph.num_nodes, graph.edge_index
    looped = edges[0][edges[0] == edges[1]]
    alone = torch.ones(n, dtype=torch.bool).index_fill(0, looped, value=False).nonzero().squeeze(1)
    weight = torch.cat([graph.weight, graph.weight.new_ones(alone.shape[0])])
    i, j = torch.cat([edges, torch.stack([alone, alone])], dim=1)
    root = weight.new_zeros(n).index_add(0, j, weight).rsqrt()
    A = torch.sparse_coo_tensor(
        torch.stack([j, i]), root[i] * weight * root[j], (n, n), check_invariants=False
    )
    return A.coalesce()


def adjacency_of(graph: Graph) -> Tensor:
    """:func:`normalized_adjacency` as a sparse tensor, differentiable in weights that require gradients."""
    A: Tensor = differentiable_adjacency(graph) if graph.weight.requires_grad else adjacency_tensor(graph)
    return A


def mean_adjacency(graph: Graph) -> scipy.sparse.csr_array:
    r"""The matrix :math:`D^{-1} W` of weighted means over neighbours, in float64.

    The row of a node without edges is 0; a self-loop of the graph makes a node its own neighbour.

    Examples
    --------
    >>> import plap
    >>> mean_adjacency(plap.Graph.from_edges([(0, 1), (1, 2)], [1.0, 3.0])).toarray()
    array([[0.  , 1.  , 0.  ],
           [0.25, 0.  , 0.75],
           [0.  , 1.  , 0.  ]])
    """
    W = graph.to_scipy(dtype=np.float64, copy=False)
    degree = W.sum(axis=1)
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1 / np.where(degree > 0, degree, 1)) @ W)


def neighbour_means(graph: Graph) -> Tensor:
    """:func:`mean_adjacency` as a sparse tensor, differentiable in weights that require gradients."""
    if not graph.weight.requires_grad:
        A: Tensor = _mean_tensor(graph)
        return A
    n, receiver = graph.num_nodes, graph.receivers()
    degree = graph.weight.new_zeros(n).index_add(0, receiver, graph.weight)
    entries = torch.stack([receiver, graph.indices.long()])
    return torch.sparse_coo_tensor(
        entries, graph.weight / degree[receiver], (n, n), check_invariants=False
    ).coalesce()


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _mean_tensor(graph: Graph) -> Tensor:
    return _MEANS.get(graph, lambda: tensor_from_scipy(mean_adjacency(graph), torch.float64))


class OnAdjacency(Network):
    """A module that multiplies with the normalised adjacency."""

    def __init__(self) -> None:
        super().__init__()
        self._graph_of = GraphArgument(cached=True)

    def _adjacency(self, edges: GraphLike, weight: Tensor | None, num_nodes: int) -> Tensor:
        return adjacency_of(self._graph_of(edges, weight, num_nodes))


def graph_convolution(A: Tensor, x: Features, linear: Linear) -> Tensor:
    """A (X Θ) + b, X dense or sparse."""
    return sparse_product(A, times(x, linear.weight)) + linear.bias


def mean_convolution(A: Tensor, x: Features, own: Linear, neighbours: Linear) -> Tensor:
    """X Θ + b + A (X Φ), where A takes means over neighbours; both maps take X as it is, dense or sparse."""
    result: Tensor = own(x) + sparse_product(A, neighbours(x))
    return result


def personalised_pagerank(A: Tensor, start: Tensor, K: int, alpha: float) -> Tensor:
    """K steps of Z ← (1 − α) A Z + α H from Z = H."""
    z = start
    for _ in range(K):
        z = (1 - alpha) * sparse_product(A, z) + alpha * start
    return z


def times(x: Features, weight: Tensor) -> Tensor:
    """Features [N, in], dense or sparse, times the transposed weight [out, in]."""
    if isinstance(x, Tensor) and x.layout == torch.strided:
        return x @ weight.t()
    return sparse_product(x, weight.t())


def start_as_pyg(linear: Linear) -> None:
    """Glorot's uniform weights and a zero bias, as PyG's layers draw them."""
    torch.nn.init.xavier_uniform_(linear.weight)
    if linear.bias is not None:
        torch.nn.init.zeros_(linear.bias)
