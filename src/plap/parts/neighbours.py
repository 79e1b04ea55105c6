"""Neighbour sampling, where PyG can do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from plap.data.dataset import GraphData
from plap.errors import InputError


def neighbour_loader(
    data: GraphData,
    num_neighbours: Sequence[int],
    *,
    nodes: Any = None,
    batch_size: int = 1024,
    **options: Any,
) -> Any:
    """PyG's ``NeighborLoader`` over a data set: batches of nodes with a sample of their neighbourhood.

    It needs the package pyg-lib or torch-sparse. Without either, :func:`plap.parts.partition` and
    :class:`plap.parts.PartLoader` make batches of METIS parts.

    Parameters
    ----------
    data : GraphData
        Dense features; sparse ones stay outside: take their rows by the batch's ``n_id``.
    num_neighbours : sequence of int
        How many neighbours to draw at each hop, -1 for all: one number a step of the model.
    nodes : indices or boolean mask, optional
        The nodes whose predictions are wanted, by default all.
    batch_size : int
    options :
        Further arguments of ``NeighborLoader``; batches are undirected unless ``subgraph_type`` is given.

    Returns
    -------
    torch_geometric.loader.NeighborLoader
        The first ``batch.batch_size`` nodes of a batch are the wanted ones.
    """
    import torch_geometric.typing as backends  # noqa: PLC0415  (slow to import)
    from torch_geometric.data import Data  # noqa: PLC0415
    from torch_geometric.loader import NeighborLoader  # noqa: PLC0415

    if not (backends.WITH_PYG_LIB or backends.WITH_TORCH_SPARSE):
        raise InputError(
            "neighbour sampling needs the package pyg-lib or torch-sparse, and neither is installed; "
            "METIS parts are the alternative: plap.parts.partition and plap.parts.PartLoader"
        )
    graph = data.graph
    whole = Data(edge_index=graph.edge_index, edge_weight=graph.weight, y=data.y, num_nodes=graph.num_nodes)
    if data.x.layout == torch.strided:
        whole.x = data.x
    options = {"subgraph_type": "bidirectional", **options}
    return NeighborLoader(whole, list(num_neighbours), input_nodes=nodes, batch_size=batch_size, **options)
