"""The paper's models: pGNN, and pGNN inside GCN and JKNet."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import relu

from plap.nn.adjacency import adjacency_of
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.jknet import JumpingHead
from plap.nn.linear import (
    FeatureLinear,
    Features,
    Network,
    check_hidden,
    check_sizes,
    dropout,
    node_count,
)
from plap.nn.plaplacian_conv import AggregationWeights, PLaplacianConv, entry_mask


class PGNN(Network):
    r"""The pGNN of Fu, Zhao and Bian (Eq. 15-17): linear, ReLU, dropout, propagate, linear.

    .. math::
        F^{(0)} = \mathrm{ReLU}(X \Theta^{(1)}), \quad
        F^{(k+1)} = \alpha^{(k)} D^{-1/2} M^{(k)} D^{-1/2} F^{(k)} + \beta^{(k)} F^{(0)}, \quad
        Z = F^{(K)} \Theta^{(2)}

    The result is the logits Z, as with PyG's models: train with ``torch.nn.functional.cross_entropy``.

    Shapes: x [N, in], dense or sparse (torch CSR or COO, or SciPy; multiplied as sparse); result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    p, mu, K, and further keywords :
        As in :class:`PLaplacianConv`.
    dropout : float
        Share of the hidden units that is dropped in training.

    Examples
    --------
    >>> import torch, plap
    >>> model = plap.nn.PGNN(5, 16, 3, p=1.5, mu=0.1, K=4, dropout=0.5)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        p: float | None = None,
        mu: float = 0.1,
        K: int = 4,
        dropout: float = 0.5,
        **options: Any,
    ) -> None:
        super().__init__()
        check_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        self.dropout = dropout
        self.lin = FeatureLinear(in_channels, hidden_channels)
        self.conv = PLaplacianConv(hidden_channels, out_channels, p, mu, K, **options)

    def embed(self, x: Features) -> Tensor:
        """F(0): what is propagated, [N, hidden]."""
        node_count(x)
        return dropout(relu(check_hidden(x, self.lin(x))), self.dropout, self.training)

    def forward(
        self,
        x: Features,
        edge_index: GraphLike,
        edge_weight: Tensor | None = None,
        *,
        return_aggregation_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AggregationWeights]:
        """The logits, [N, out]; see :class:`PLaplacianConv` for ``return_aggregation_weights``."""
        hidden = self.embed(x)
        result: Tensor | tuple[Tensor, AggregationWeights] = self.conv(
            hidden, edge_index, edge_weight, return_aggregation_weights=return_aggregation_weights
        )
        return result


class GCNPlusPGNN(Network):
    r"""A p-Laplacian layer whose aggregation weights are the edge weights of the GCN layer that follows.

    .. math::
        F^{(0)} = \mathrm{ReLU}(X \Theta^{(0)}), \quad
        H = \mathrm{ReLU}(F^{(K)} \Theta^{(1)}), \quad
        Z = \hat B^{-1/2} (A + I) \hat B^{-1/2} H \Theta^{(2)}

    with :math:`A = \alpha D^{-1/2} M D^{-1/2}` of the K-th step, receivers in rows, and :math:`\hat B` its
    row sums plus 1: PyG's ``GCNConv`` with these edge weights. A is not symmetric. The gradient flows
    through it. A self-loop kept in the graph has weight 1 here, like that of every other node.

    Shapes: x [N, in], dense or sparse; result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    p, mu, K, and further keywords :
        As in :class:`plap.nn.PLaplacianConv`.
    dropout : float
        Share of the hidden units, before the p-Laplacian layer and after it, that is dropped in training.

    Examples
    --------
    >>> import torch
    >>> model = GCNPlusPGNN(5, 16, 3, p=1.5, mu=0.1, K=4)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, p: float | None = None,
        mu: float = 0.1, K: int = 4, dropout: float = 0.5, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        from torch_geometric.nn import GCNConv  # noqa: PLC0415  (slow to import)

        check_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        self.dropout = dropout
        self._graph_of = GraphArgument(cached=True)
        self.lin = FeatureLinear(in_channels, hidden_channels)
        self.conv1 = PLaplacianConv(hidden_channels, hidden_channels, p, mu, K, **options)
        self.conv2 = GCNConv(hidden_channels, out_channels)
        self.conv2.explain = False  # an explainer's mask is in the weights that it is given

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        graph = self._graph_of(edge_index, edge_weight, node_count(x))
        hidden = dropout(relu(check_hidden(x, self.lin(x))), self.dropout, self.training)
        explained = self.conv1.explain  # then the layer masks the edges itself
        given = (edge_index, edge_weight) if explained else (graph,)
        hidden, (edges, weights) = self.conv1(hidden, *given, return_aggregation_weights=True)
        hidden = dropout(relu(hidden), self.dropout, self.training)
        if explained or graph.num_self_loops:
            other = edges[0] != edges[1]
            edges, weights = edges[:, other], weights[other]
        result: Tensor = self.conv2(hidden, edges, weights.to(hidden.dtype))
        return result


class JKNetPlusPGNN(Network):
    """JKNet with p-Laplacian layers in place of its GCN layers.

    Linear, ReLU, dropout, then twice a p-Laplacian layer with ReLU and dropout; the LSTM's attention to the
    two, steps of APPNP and the last linear map are those of :class:`plap.nn.baselines.JKNet`.

    Shapes: x [N, in], dense or sparse; result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    p, mu, K, and further keywords :
        As in :class:`plap.nn.PLaplacianConv`.
    steps, alpha :
        Steps of APPNP and their teleport probability.
    dropout : float
        Share of the hidden units, before the first p-Laplacian layer and after each, that is dropped in
        training.

    Examples
    --------
    >>> import torch
    >>> model = JKNetPlusPGNN(5, 16, 3, p=1.5, mu=0.1, K=4, alpha=0.5)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, p: float | None = None,
        mu: float = 0.1, K: int = 4, steps: int = 10, alpha: float = 0.1, dropout: float = 0.5,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        check_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        self.dropout = dropout
        self._graph_of = GraphArgument(cached=True)
        self.lin = FeatureLinear(in_channels, hidden_channels)
        self.conv1 = PLaplacianConv(hidden_channels, hidden_channels, p, mu, K, **options)
        self.conv2 = PLaplacianConv(hidden_channels, hidden_channels, p, mu, K, **options)
        self.head = JumpingHead(hidden_channels, out_channels, steps, alpha)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        graph = self._graph_of(edge_index, edge_weight, node_count(x))
        hidden = dropout(relu(check_hidden(x, self.lin(x))), self.dropout, self.training)
        given = (edge_index, edge_weight) if self.conv1.explain else (graph,)
        first = dropout(relu(check_hidden(x, self.conv1(hidden, *given))), self.dropout, self.training)
        second = dropout(relu(self.conv2(first, *given)), self.dropout, self.training)
        if self.conv1.explain:
            graph = graph.with_weight(graph.weight * entry_mask(graph, edge_index, self.conv1.edge_mask))
        result: Tensor = self.head([first, second], adjacency_of(graph))
        return result
