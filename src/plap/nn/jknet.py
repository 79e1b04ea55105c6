"""Jumping knowledge."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import relu

from plap.nn.adjacency import OnAdjacency, graph_convolution, personalised_pagerank, start_as_pyg
from plap.nn.graph_argument import GraphLike
from plap.nn.linear import FeatureLinear, Features, Network, dropout, node_count

LSTM_LAYERS = 4
"""The "layers" of the paper's LSTM: PyG's is half as many times ``hidden`` units wide in each direction."""


class JumpingHead(Network):
    """From the outputs of all layers to the logits: LSTM attention, K steps of APPNP, a linear map.

    Parameters
    ----------
    hidden_channels, out_channels : int
    K, alpha :
        Steps and teleport probability.
    """

    def __init__(self, hidden_channels: int, out_channels: int, K: int, alpha: float) -> None:
        super().__init__()
        from torch_geometric.nn import JumpingKnowledge  # noqa: PLC0415  (slow to import)

        self.K, self.alpha = K, alpha
        self.jump = JumpingKnowledge("lstm", hidden_channels, LSTM_LAYERS)
        self.lin = Linear(hidden_channels, out_channels)

    def forward(self, layers: Sequence[Tensor], A: Tensor) -> Tensor:
        """The logits [N, out] of the layers' outputs, [N, hidden] each; A as for GCN."""
        result: Tensor = self.lin(personalised_pagerank(A, self.jump(list(layers)), self.K, self.alpha))
        return result


class JKNet(OnAdjacency):
    """Two GCN layers, and for every node an LSTM's attention to them (Xu et al., 2018), as in the paper.

    ReLU and dropout after each layer; then K steps of APPNP and a linear map to the classes.

    Shapes: x [N, in], dense or sparse; result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    K : int
    alpha : float
        Teleport probability; 1 disables the steps of APPNP.
    dropout : float
        Share of the hidden units of each layer that is dropped in training.

    Examples
    --------
    >>> import torch
    >>> model = JKNet(5, 16, 3, K=10, alpha=0.1)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, K: int = 10, alpha: float = 0.1,
        dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.dropout = dropout
        self.lin1 = FeatureLinear(in_channels, hidden_channels)
        self.lin2 = Linear(hidden_channels, hidden_channels)
        self._start()
        self.head = JumpingHead(hidden_channels, out_channels, K, alpha)

    def _start(self) -> None:
        for linear in (self.lin1, self.lin2):
            start_as_pyg(linear)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        A = self._adjacency(edge_index, edge_weight, node_count(x))
        first = dropout(relu(graph_convolution(A, x, self.lin1)), self.dropout, self.training)
        second = dropout(relu(graph_convolution(A, first, self.lin2)), self.dropout, self.training)
        result: Tensor = self.head([first, second], A)
        return result
