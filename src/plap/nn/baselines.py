"""The models that pGNN is compared with, as plain modules: MLP, GCN, SAGE, SGC, APPNP, GPRGNN, GAT and JKNet.

They take what :class:`plap.nn.PGNN` takes and give logits. Each applies dropout to its hidden units only, so
that all of them multiply the same features; GPRGNN also before its propagation, GAT also to its features and
its attention.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Linear, Parameter
from torch.nn.functional import dropout, relu

from plap.nn.adjacency import (
    OnAdjacency,
    graph_convolution,
    mean_convolution,
    neighbour_means,
    normalized_adjacency,
    personalised_pagerank,
    start_as_pyg,
    times,
)
from plap.nn.gat import GAT, DeepGAT
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.jknet import JKNet
from plap.nn.linear import FeatureLinear, Features, Network, node_count, sparse_product

__all__ = ["APPNP", "GAT", "GCN", "GPRGNN", "MLP", "SAGE", "SGC", "DeepGAT", "JKNet", "normalized_adjacency"]


class MLP(Network):
    """Two linear layers on the features alone; edges are accepted and ignored."""

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


class GCN(OnAdjacency):
    """Two graph convolutions of Kipf and Welling (2017): A (X Θ) + b."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)
        self._start()

    def _start(self) -> None:
        for linear in (self.lin1, self.lin2):
            start_as_pyg(linear)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = self._adjacency(edge_index, edge_weight, node_count(x))
        hidden = dropout(relu(graph_convolution(A, x, self.lin1)), self.dropout, self.training)
        return graph_convolution(A, hidden, self.lin2)


class SAGE(Network):
    """Two layers of GraphSAGE with mean aggregator (Hamilton et al., 2017): X Θ + D⁻¹ W X Φ + b.

    Weights of edges weigh the mean. All neighbours count: none are sampled.

    Examples
    --------
    >>> path = torch.tensor([[0, 1], [1, 2]])
    >>> SAGE(3, 16, 2)(torch.eye(3), path).shape
    torch.Size([3, 2])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.own1 = FeatureLinear(in_channels, hidden_channels)
        self.neighbours1 = FeatureLinear(in_channels, hidden_channels, bias=False)
        self.own2 = Linear(hidden_channels, out_channels)
        self.neighbours2 = Linear(hidden_channels, out_channels, bias=False)
        self._graph_of = GraphArgument(cached=True)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = neighbour_means(self._graph_of(edge_index, edge_weight, node_count(x)))
        hidden = relu(mean_convolution(A, x, self.own1, self.neighbours1))
        hidden = dropout(hidden, self.dropout, self.training)
        return mean_convolution(A, hidden, self.own2, self.neighbours2)


class SGC(OnAdjacency):
    """Simplified graph convolution of Wu et al. (2019): A^K X Θ + b.

    Examples
    --------
    >>> path = torch.tensor([[0, 1], [1, 2]])
    >>> SGC(3, 2)(torch.eye(3), path).shape
    torch.Size([3, 2])
    """

    def __init__(self, in_channels: int, out_channels: int, K: int = 2) -> None:
        super().__init__()
        self.K = K
        self.lin = FeatureLinear(in_channels, out_channels)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = self._adjacency(edge_index, edge_weight, node_count(x))
        z = times(x, self.lin.weight)
        for _ in range(self.K):
            z = sparse_product(A, z)
        return z + self.lin.bias


class APPNP(OnAdjacency):
    """Personalised PageRank of an MLP's logits (Gasteiger et al., 2019): Z ← (1 − α) A Z + α H.

    Examples
    --------
    >>> path = torch.tensor([[0, 1], [1, 2]])
    >>> APPNP(3, 16, 2, K=10, alpha=0.1)(torch.eye(3), path).shape
    torch.Size([3, 2])
    """

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
        A = self._adjacency(edge_index, edge_weight, node_count(x))
        start: Tensor = self.lin2(dropout(relu(self.lin1(x)), self.dropout, self.training))
        return personalised_pagerank(A, start, self.K, self.alpha)


class GPRGNN(OnAdjacency):
    """Generalised PageRank of an MLP's logits (Chien et al., 2021): Σ_k γ_k A^k H with learned γ.

    Examples
    --------
    >>> path = torch.tensor([[0, 1], [1, 2]])
    >>> GPRGNN(3, 16, 2, K=10, alpha=0.1)(torch.eye(3), path).shape
    torch.Size([3, 2])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, K: int = 10, alpha: float = 0.1,
        dropout: float = 0.5, dprate: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.K, self.dropout, self.dprate = K, dropout, dprate
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, out_channels)
        self.alpha = alpha
        self.gamma = Parameter(torch.empty(K + 1))
        self._start()

    @torch.no_grad()
    def _start(self) -> None:
        """The γ of personalised PageRank."""
        powers = (1 - self.alpha) ** torch.arange(self.K + 1, dtype=torch.float64)
        self.gamma.copy_(torch.cat([self.alpha * powers[:-1], powers[-1:]]))

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = self._adjacency(edge_index, edge_weight, node_count(x))
        z = self.lin2(dropout(relu(self.lin1(x)), self.dropout, self.training))
        z = dropout(z, self.dprate, self.training)
        result = self.gamma[0] * z
        for k in range(1, self.K + 1):
            z = sparse_product(A, z)
            result = result + self.gamma[k] * z
        return result
