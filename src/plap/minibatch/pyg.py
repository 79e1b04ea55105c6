"""The graphs of a collection as PyG has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plap.data.dataset import GraphData
from plap.errors import InputError
from plap.parts import induced

if TYPE_CHECKING:
    from torch_geometric.data import Data


def pyg_graphs(data: GraphData) -> list[Data]:
    """The graphs of a collection one by one, for PyG's ``DataLoader`` to batch.

    A batch goes into a model as ``model(batch.x, batch.edge_index, batch.edge_weight)``; ``batch.n_id`` says
    which nodes of the collection it has.
    """
    if data.graph_of_node is None:
        raise InputError(f"{data.name} is one graph, not a collection")
    pieces = [induced(data.graph, data.graph_of_node == number) for number in data.graph_of_node.unique()]
    return [
        piece.graph.to_pyg(x=piece.rows(data.x).to_dense(), y=piece.rows(data.y), n_id=piece.nodes)
        for piece in pieces
    ]
