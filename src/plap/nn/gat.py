"""Graph attention."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import elu

from plap.graph import Graph
from plap.memo import Memo
from plap.nn.adjacency import start_as_pyg, times
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.linear import FeatureLinear, Features, Network, dropout, dropped_product, node_count

_EDGES: Memo[Tensor] = Memo()


@torch.compiler.disable  # type: ignore[untyped-decorator]
def edges_with_loops(graph: Graph) -> Tensor:
    """Both directions of every edge and a self-loop at every node, [2, E + N]; made once for each graph.

    Examples
    --------
    >>> import plap
    >>> edges_with_loops(plap.Graph.from_edges([(0, 1)]))
    tensor([[1, 0, 0, 1],
            [0, 1, 0, 1]])
    """
    from torch_geometric.utils import add_self_loops, remove_self_loops  # noqa: PLC0415  (slow to import)

    def make() -> Tensor:
        edges: Tensor = add_self_loops(remove_self_loops(graph.edge_index)[0], num_nodes=graph.num_nodes)[0]
        return edges

    return _EDGES.get(graph, make)


class GAT(Network):
    """Two layers of PyG's ``GATConv``, as in Veličković et al. (2018).

    ``heads`` heads of ``hidden_channels`` units each, concatenated, ELU, then one head to the classes. A
    node attends to its neighbours and to itself. Edge weights are accepted and ignored, because attention
    does not use them. On the CPU the sum over neighbours is one sparse product per head, which needs no array
    of size edges × channels and cannot be differentiated twice.

    Shapes: x [N, in], dense or sparse (multiplied as sparse, dropout included); result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    heads : int
    dropout : float
        Share of the features, of the hidden units and of the attention coefficients of both layers that is
        dropped in training.

    Examples
    --------
    >>> import torch
    >>> model = GAT(5, 8, 3, heads=8)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, heads: int = 8, dropout: float = 0.6
    ) -> None:
        super().__init__()
        from plap.nn.attention import AttentionConv  # noqa: PLC0415  (PyG is slow to import)

        self.dropout = dropout
        self._graph_of = GraphArgument(cached=True)
        width = heads * hidden_channels
        self.lin = FeatureLinear(in_channels, width, bias=False)
        self._start()
        options = {"dropout": dropout, "add_self_loops": False}
        self.conv1 = AttentionConv(width, hidden_channels, heads, **options)
        self.conv1.lin = _Nothing()  # self.lin takes its place
        self.conv2 = AttentionConv(width, out_channels, **options)

    def _start(self) -> None:
        start_as_pyg(self.lin)

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        edges = edges_with_loops(self._graph_of(edge_index, edge_weight, node_count(x)))
        hidden = dropout(elu(self.conv1(self._embed(x), edges)), self.dropout, self.training)
        result: Tensor = self.conv2(hidden, edges)
        return result

    def _embed(self, x: Features) -> Tensor:
        """X Θ after dropout of X."""
        if isinstance(x, Tensor) and x.layout == torch.strided:
            x = dropout(x, self.dropout, self.training)
        elif self.training and self.dropout > 0:
            return dropped_product(x, self.lin.weight.t(), self.dropout)
        return times(x, self.lin.weight)


class _Nothing(torch.nn.Identity):
    """In the place of a layer's linear map."""

    def reset_parameters(self) -> None:
        """There is nothing to draw."""


class DeepGAT(Network):
    """PyG's GAT of several layers, with ELU and dropout between them, which the paper uses on PPI.

    Shapes: x [N, in], dense; result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
        Hidden units are those of each head.
    num_layers, heads : int
    dropout : float
        Share of the hidden units, and of the attention coefficients, that is dropped in training.

    Examples
    --------
    >>> import torch
    >>> model = DeepGAT(5, 8, 3, num_layers=3, heads=2)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 3, heads: int = 4,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        from torch_geometric.nn.models import GAT as PyGGAT  # noqa: PLC0415, N811  (slow to import)

        self._graph_of = GraphArgument(cached=True)
        self.gat = PyGGAT(
            in_channels, heads * hidden_channels, num_layers, out_channels,
            dropout=dropout, act="elu", heads=heads, add_self_loops=False,
        )  # fmt: skip

    def forward(self, x: Tensor, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        result: Tensor = self.gat(x, edges_with_loops(self._graph_of(edge_index, edge_weight, node_count(x))))
        return result
