"""The models that pGNN is compared with, as plain modules: MLP, GCN, SGC, APPNP and GPRGNN.

They take what :class:`plap.nn.PGNN` takes and give logits. Each applies dropout to its hidden units only
(GPRGNN also before its propagation), so that all of them multiply the same features.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn import Linear, Parameter
from torch.nn.functional import dropout, relu

from plap.graph import Graph
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.linear import FeatureLinear, Features, sparse_product


def normalized_adjacency(graph: Graph) -> scipy.sparse.csr_array:
    r"""GCN's propagation matrix :math:`\hat D^{-1/2} (W + I) \hat D^{-1/2}`, in float64.

    As PyG computes it: a node that has a self-loop keeps its weight instead of getting one of 1.

    Examples
    --------
    >>> import plap
    >>> normalized_adjacency(plap.Graph.from_edges([(0, 1)])).toarray()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    n = graph.num_nodes
    parts = (graph.weight.detach().double().numpy(), graph.indices.numpy(), graph.indptr.numpy())
    W = scipy.sparse.csr_array(parts, shape=(n, n))
    missing = (W.diagonal() == 0).astype(np.float64)
    W = scipy.sparse.csr_array(W + scipy.sparse.diags_array(missing))
    root = scipy.sparse.diags_array(1 / np.sqrt(W.sum(axis=1)))
    return scipy.sparse.csr_array(root @ W @ root)


class _OnGraph(torch.nn.Module):
    """A module that multiplies with the normalised adjacency of the last graph it saw."""

    def __init__(self) -> None:
        super().__init__()
        self._graph_of = GraphArgument(cached=True)
        self._known: tuple[Graph, scipy.sparse.csr_array] | None = None

    def _adjacency(self, edges: GraphLike, weight: Tensor | None, num_nodes: int) -> scipy.sparse.csr_array:
        graph = self._graph_of(edges, weight, num_nodes)
        if self._known is None or self._known[0] is not graph:
            self._known = (graph, normalized_adjacency(graph))
        return self._known[1]


class MLP(torch.nn.Module):
    """Two linear layers on the features alone; the edges are taken and ignored."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)

    def forward(
        self, x: Features, edge_index: GraphLike | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The logits, [N, out]."""
        result: Tensor = self.lin2(dropout(relu(self.lin1(x)), self.dropout, self.training))
        return result


class GCN(_OnGraph):
    """Two graph convolutions of Kipf and Welling (2017): A (X Θ) + b."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)
        for linear in (self.lin1, self.lin2):
            torch.nn.init.xavier_uniform_(linear.weight)
            torch.nn.init.zeros_(linear.bias)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = self._adjacency(edge_index, edge_weight, x.shape[0])
        hidden = sparse_product(A, _times(x, self.lin1.weight)) + self.lin1.bias
        hidden = dropout(relu(hidden), self.dropout, self.training)
        return sparse_product(A, hidden @ self.lin2.weight.t()) + self.lin2.bias


class SGC(_OnGraph):
    """Simplified graph convolution of Wu et al. (2019): A^K X Θ + b."""

    def __init__(self, in_channels: int, out_channels: int, K: int = 2) -> None:
        super().__init__()
        self.K = K
        self.lin = FeatureLinear(in_channels, out_channels)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = self._adjacency(edge_index, edge_weight, x.shape[0])
        z = _times(x, self.lin.weight)
        for _ in range(self.K):
            z = sparse_product(A, z)
        return z + self.lin.bias


class APPNP(_OnGraph):
    """Personalised PageRank of an MLP's logits (Gasteiger et al., 2019): Z ← (1 − α) A Z + α H."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, K: int = 10, alpha: float = 0.1,
        dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.K, self.alpha, self.dropout = K, alpha, dropout
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = self._adjacency(edge_index, edge_weight, x.shape[0])
        start: Tensor = self.lin2(dropout(relu(self.lin1(x)), self.dropout, self.training))
        z = start
        for _ in range(self.K):
            z = (1 - self.alpha) * sparse_product(A, z) + self.alpha * start
        return z


class GPRGNN(_OnGraph):
    """Generalised PageRank of an MLP's logits (Chien et al., 2021): Σ_k γ_k A^k H with learned γ."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, K: int = 10, alpha: float = 0.1,
        dropout: float = 0.5, dprate: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.K, self.dropout, self.dprate = K, dropout, dprate
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)
        powers = (1 - alpha) ** torch.arange(K + 1, dtype=torch.float64)
        self.gamma = Parameter(torch.cat([alpha * powers[:-1], powers[-1:]]).float())

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = self._adjacency(edge_index, edge_weight, x.shape[0])
        z = self.lin2(dropout(relu(self.lin1(x)), self.dropout, self.training))
        z = dropout(z, self.dprate, self.training)
        result = self.gamma[0] * z
        for k in range(1, self.K + 1):
            z = sparse_product(A, z)
            result = result + self.gamma[k] * z
        return result


def _times(x: Features, weight: Tensor) -> Tensor:
    """Features [N, in], dense or sparse, times the transposed weight [out, in]."""
    if isinstance(x, Tensor) and x.layout == torch.strided:
        return x @ weight.t()
    return sparse_product(x, weight.t())
