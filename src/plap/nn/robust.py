"""Models for graphs with edges that lie, to compare with: RUNG, Elastic GNN and GCN-Jaccard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import dropout, relu

from plap.checks import check_integer, check_number
from plap.graph import Graph
from plap.memo import Memo
from plap.nn.adjacency import (
    OnAdjacency,
    adjacency_of,
    adjacency_tensor,
    differentiable_adjacency,
    graph_convolution,
    start_as_pyg,
)
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.linear import (
    FeatureLinear,
    Features,
    Network,
    check_hidden,
    node_count,
    refuse_lost_features,
    sparse_product,
    wide,
)
from plap.penalties import MCP
from plap.propagation import propagate
from plap.sparse import scipy_from_tensor, tensor_from_scipy

_INCIDENCE: Memo[tuple[Tensor, Tensor]] = Memo()


class RUNG(Network):
    r"""RUNG of Hou, Feng, Derr and Liu (NeurIPS 2024): MCP message passing of an MLP's logits.

    .. math::
        F^{(0)} = \mathrm{MLP}(X), \quad
        F_i^{(k+1)} = \frac{\sum_j W_{ij} \psi_{ij} F_j^{(k)} / \sqrt{D_i D_j} + 2\mu F_i^{(0)}}
                           {\sum_j W_{ij} \psi_{ij} / D_i + 2\mu}, \quad
        \psi_{ij} = \Bigl(\frac{1}{y_{ij}} - \frac{1}{\gamma}\Bigr)_+

    with the edge norms y of F(k), and ψ a constant in the backward pass. The published code adds self-loops,
    whose weights would be infinite; here only the edges of the graph count.

    Shapes: x [N, in], dense or sparse; result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    gamma : float
        An edge that is longer counts for nothing.
    mu : float
        The published λ is 2μ: its default λ̂ = 1 / (1 + λ) = 0.9 is μ = 0.056.
    K : int
    dropout : float

    Examples
    --------
    >>> import torch, plap
    >>> plap.nn.RUNG(5, 16, 3)(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, gamma: float = 6.0,
        mu: float = 1 / 18, K: int = 10, dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.gamma, self.mu, self.K = gamma, mu, K
        self.dropout = check_number("dropout", dropout, least=0, below=1)
        self.detach_weights = True  # what an adaptive attack undoes
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)
        self._graph_of = GraphArgument(cached=True)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        graph = self._graph_of(edge_index, edge_weight, node_count(x))
        hidden = dropout(relu(check_hidden(x, self.lin1(x))), self.dropout, self.training)
        start = check_hidden(x, self.lin2(hidden))
        return propagate(
            wide(start), graph, penalty=MCP(self.gamma), mu=self.mu, K=self.K,
            detach_weights=self.detach_weights,
        ).to(start.dtype)  # fmt: skip


class ElasticGNN(Network):
    """Elastic GNN of Liu et al. (ICML 2021): elastic message passing of an MLP's logits.

    Shapes: x [N, in], dense or sparse; result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    lambda1, lambda2 : float, at least 0
        Weights of the ℓ21 norm of the gradient and of its square, see ``elastic_message_passing``.
    K : int
    dropout : float

    Examples
    --------
    >>> import torch, plap
    >>> plap.nn.ElasticGNN(5, 16, 3)(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, lambda1: float = 3.0,
        lambda2: float = 3.0, K: int = 10, dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.lambda1 = check_number("lambda1", lambda1, least=0)
        self.lambda2 = check_number("lambda2", lambda2, least=0)
        self.K = check_integer("K", K, 1)
        self.dropout = check_number("dropout", dropout, least=0, below=1)
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)
        self._graph_of = GraphArgument(cached=True)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        graph = self._graph_of(edge_index, edge_weight, node_count(x))
        hidden = self.lin1(x)
        refuse_lost_features(x, hidden)
        start: Tensor = self.lin2(dropout(relu(hidden), self.dropout, self.training))
        return elastic_message_passing(start, graph, self.lambda1, self.lambda2, self.K)


def elastic_message_passing(x: Tensor, graph: Graph, lambda1: float, lambda2: float, K: int) -> Tensor:
    r"""Minimise an ℓ21 and an ℓ2 norm of the gradient together, by K primal-dual steps from x.

    .. math::
        \min_F \lambda_1 \sum_{(i,j)} W_{ij} \|(\tilde\Delta F)_{ij}\|
               + \tfrac{\lambda_2}{2} \mathrm{tr}(F^\top \tilde L F) + \tfrac12 \|F - X\|^2

    with the incidence matrix :math:`\tilde\Delta` whose row of the edge (i, j) is
    :math:`F_i/\sqrt{d_i + 1} - F_j/\sqrt{d_j + 1}`, d the weighted degrees, and
    :math:`\tilde L = I - \tilde A`, where à is GCN's propagation matrix. Without weights that is the
    published objective, and with λ1 = 0 a step is one of APPNP. The result is differentiable in x, and in the
    weights of edges where these require gradients.

    Shapes: x [N, C]; result [N, C].

    Examples
    --------
    >>> import plap
    >>> g = plap.Graph.from_edges([(0, 1)])
    >>> result = elastic_message_passing(torch.tensor([[0.0], [4.0]]), g, lambda1=1.0, lambda2=0.0, K=200)
    >>> result.round(decimals=3)
    tensor([[0.7070], [3.2930]])
    """
    if graph.weight.requires_grad:
        A: Tensor = differentiable_adjacency(graph)
        difference, divergence = _differentiable_incidence(graph)
    else:
        A = adjacency_tensor(graph)
        apart, gathered = _incidence_tensors(graph)
        difference, divergence = partial(sparse_product, apart), partial(sparse_product, gathered)
    step = 1 / (1 + lambda2)
    dual_step = 1 / (2 * step)
    F, z, pull = x, x.new_zeros(graph.edges_once().numel(), x.shape[1]), torch.zeros_like(x)
    for _ in range(K):
        Y = step * x + (1 - step) * sparse_product(A, F)
        ahead = z + dual_step * difference(Y - step * pull)
        norm = ahead.norm(dim=1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        z = ahead * (lambda1 / norm).clamp(max=1)
        pull = divergence(z)
        F = Y - step * pull
    return F


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _incidence_tensors(graph: Graph) -> tuple[Tensor, Tensor]:
    return _INCIDENCE.get(graph, lambda: _incidence(graph))


def _incidence(graph: Graph) -> tuple[Tensor, Tensor]:
    """Δ̃ [edges, N], and its transpose with the weights of the edges, as torch CSR tensors."""
    once = graph.edges_once()
    ends, weight = graph.edge_index[:, once].numpy(), graph.weight[once].double().numpy()
    root = _inverse_root_degree(graph).numpy()
    rows = np.arange(ends.shape[1])
    matrix = scipy.sparse.csr_array(
        (np.concatenate([root[ends[0]], -root[ends[1]]]), (np.tile(rows, 2), ends.ravel())),
        shape=(rows.size, graph.num_nodes),
    )
    gathered = scipy.sparse.csr_array(matrix.T @ scipy.sparse.diags_array(weight))
    return tensor_from_scipy(matrix, torch.float64), tensor_from_scipy(gathered, torch.float64)


def _differentiable_incidence(
    graph: Graph,
) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """The products with both matrices of :func:`_incidence`, differentiable in the weights of the edges."""
    once = graph.edges_once()
    (i, j), weight = graph.edge_index[:, once], graph.weight[once].unsqueeze(1)
    root = _inverse_root_degree(graph).unsqueeze(1)

    def difference(f: Tensor) -> Tensor:
        scaled = root.to(f.dtype) * f
        return scaled[i] - scaled[j]

    def divergence(z: Tensor) -> Tensor:
        weighted = weight.to(z.dtype) * z
        total = z.new_zeros(graph.num_nodes, z.shape[1]).index_add(0, i, weighted).index_add(0, j, -weighted)
        return root.to(z.dtype) * total

    return difference, divergence


def _inverse_root_degree(graph: Graph) -> Tensor:
    """1/√(d + 1) with the weighted degrees d, [N]; a self-loop is what it is in Ã, in the place of the 1."""
    receivers, weight = graph.receivers(), graph.weight.double()
    looped = graph.indices == receivers
    ones = torch.ones(graph.num_nodes, dtype=torch.float64).index_fill(0, receivers[looped], 0.0)
    return ones.index_add(0, receivers, weight).rsqrt()


class GCNJaccard(OnAdjacency):
    """GCN on the edges whose ends have features in common (Wu et al., IJCAI 2019).

    Shapes: x [N, in], dense or sparse; result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    threshold : float, at least 0 and below 1
        An edge is kept if the Jaccard index of its ends' features (those that are not 0) is greater.
    dropout : float

    Examples
    --------
    >>> import torch, plap
    >>> x = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    >>> plap.nn.GCNJaccard(3, 16, 2)(x, torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([3, 2])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, threshold: float = 0.01,
        dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.threshold = check_number("threshold", threshold, least=0, below=1)
        self.dropout = check_number("dropout", dropout, least=0, below=1)
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)
        self._pruned: Memo[tuple[Features, Graph]] = Memo()
        self._start()

    def _start(self) -> None:
        for linear in (self.lin1, self.lin2):
            start_as_pyg(linear)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = adjacency_of(self.pruned(x, self._graph_of(edge_index, edge_weight, node_count(x))))
        first = graph_convolution(A, x, self.lin1)
        refuse_lost_features(x, first)
        return graph_convolution(A, dropout(relu(first), self.dropout, self.training), self.lin2)

    # What judges the edges is SciPy, which cannot be traced.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def pruned(self, x: Features, graph: Graph) -> Graph:
        """The graph without the edges that the features speak against; made once per graph and features."""
        if graph.weight.requires_grad or (isinstance(x, Tensor) and x.is_inference()):
            return self._prune(x, graph)
        version = (id(x), x._version if isinstance(x, Tensor) else None)
        return self._pruned.get(graph, lambda: (x, self._prune(x, graph)), version)[1]

    def _prune(self, x: Features, graph: Graph) -> Graph:
        edges = graph.edge_index
        kept = torch.from_numpy(feature_jaccard(x, edges)) > self.threshold
        return Graph.from_edge_index(edges[:, kept], graph.weight[kept], graph.num_nodes, self_loops="keep")


def feature_jaccard(x: Features, pairs: Tensor) -> np.ndarray:
    """Jaccard index of the features of the two nodes of each pair: those both have, over those either has.

    A node has a feature if it is not 0; the index is 0 where neither node has any.

    Shapes: x [N, F], dense or sparse; pairs [2, P]; result [P].

    Examples
    --------
    >>> feature_jaccard(torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]), torch.tensor([[0], [1]]))
    array([0.33333333])
    """
    if isinstance(x, Tensor):
        x = wide(x.detach().cpu())
        x = x.numpy() if x.layout == torch.strided else scipy_from_tensor(x)
    rows = scipy.sparse.csr_array(x).astype(bool).astype(np.float64)
    rows.eliminate_zeros()
    first, second = pairs.cpu().numpy()
    count = np.diff(rows.indptr)
    common = np.asarray(rows[first].multiply(rows[second]).sum(axis=1)).ravel()
    either = count[first] + count[second] - common
    result: np.ndarray = np.divide(common, either, out=np.zeros(common.size), where=either > 0)
    return result
