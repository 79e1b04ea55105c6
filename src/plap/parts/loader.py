"""Mini-batches: several parts of a graph (Cluster-GCN), sampled neighbourhoods, or whole graphs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch_geometric.typing as backends
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader

from plap.checks import check_integer
from plap.data.dataset import GraphData
from plap.data.sampling import check_seed
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.parts.subgraph import Subgraph, induced, with_halo


class PartLoader:
    """Batches of parts of a graph: at random for training, in order and with a halo for evaluation.

    As in Cluster-GCN (Chiang et al., 2019), a training batch is the graph on the nodes of a few parts drawn
    at random, with the edges within and between them and the degrees that these edges give. Which parts go
    together depends only on the seed and the number of the epoch, so interrupted training can be resumed.

    Parameters
    ----------
    graph : Graph
    partition : Tensor, shape [N], integer
        The part of every node, as :func:`plap.parts.partition` gives it. Part numbers without nodes are
        skipped, and so are nodes with a negative part number.
    parts_per_batch : int
        More parts mix the classes better and keep more edges; fewer need less memory.
    seed : int

    Examples
    --------
    >>> import torch, plap
    >>> ring = plap.Graph.from_edges([(k, (k + 1) % 6) for k in range(6)])
    >>> loader = PartLoader(ring, torch.tensor([0, 0, 1, 1, 2, 2]), parts_per_batch=2)
    >>> [batch.graph.num_nodes for batch in loader.epoch(0)]
    [4, 2]
    >>> [piece.core_nodes.tolist() for piece in loader.halos(1)]
    [[0, 1, 2, 3], [4, 5]]

    A training step takes ``model(batch.rows(x), batch.graph)`` and compares with ``batch.rows(y)``.
    """

    def __init__(self, graph: Graph, partition: Tensor, parts_per_batch: int = 1, seed: int = 0) -> None:
        self.graph = check_graph(graph)
        self.parts_per_batch = check_integer("parts_per_batch", parts_per_batch, 1)
        self.seed = check_seed(seed)
        part = torch.as_tensor(partition)
        if part.shape != (graph.num_nodes,) or part.dtype.is_floating_point:
            raise InputError(f"partition must contain one integer for each of the {graph.num_nodes} nodes")
        numbers, sizes = part[part >= 0].unique(return_counts=True)
        if numbers.numel() == 0:
            raise InputError("partition must put at least one node into a part")
        nodes = part.argsort(stable=True)[(part < 0).sum() :].to(graph.device)
        self._parts: tuple[Tensor, ...] = nodes.split(sizes.tolist())

    def __len__(self) -> int:
        """Batches per epoch."""
        return math.ceil(len(self._parts) / self.parts_per_batch)

    def epoch(self, number: int) -> Iterator[Subgraph]:
        """The training batches of an epoch; each part is in exactly one of them."""
        for nodes in self.groups(number):
            yield induced(self.graph, nodes)

    def halos(self, hops: int) -> Iterator[Subgraph]:
        """The same number of parts at a time, in order, with their halo (see :func:`with_halo`)."""
        for nodes in self.groups():
            yield with_halo(self.graph, nodes, hops)

    def groups(self, epoch: int | None = None) -> Iterator[Tensor]:
        """The nodes of each batch: of one epoch in random order, or of all parts in their own order."""
        order = np.arange(len(self._parts))
        if epoch is not None:
            rng = np.random.default_rng([self.seed, check_integer("number", epoch, 0)])
            order = rng.permutation(len(self._parts))
        for start in range(0, order.size, self.parts_per_batch):
            yield torch.cat([self._parts[k] for k in order[start : start + self.parts_per_batch]])


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
        With dense features; sparse ones are not in the batches: select their rows by the batch's ``n_id``.
    num_neighbours : sequence of int
        How many neighbours to draw at each hop, -1 for all: one number per step of the model.
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
    if not (backends.WITH_PYG_LIB or backends.WITH_TORCH_SPARSE):
        raise InputError(
            "neighbour sampling needs the package pyg-lib or torch-sparse, and neither is installed; "
            "METIS parts are the alternative: plap.parts.partition and plap.parts.PartLoader"
        )
    features = {"x": data.x} if data.x.layout == torch.strided else {}
    whole = data.graph.to_pyg(y=data.y, **features)
    options = {"subgraph_type": "bidirectional", **options}
    return NeighborLoader(whole, list(num_neighbours), input_nodes=nodes, batch_size=batch_size, **options)


def pyg_graphs(data: GraphData) -> list[Data]:
    """The graphs of a collection one by one, to be batched by PyG's ``DataLoader``.

    A model is called with ``model(batch.x, batch.edge_index, batch.edge_weight)``; ``batch.n_id`` are the
    numbers of the batch's nodes in the collection.
    """
    if data.graph_of_node is None:
        raise InputError(f"{data.name} is one graph, not a collection")
    pieces = [induced(data.graph, data.graph_of_node == number) for number in data.graph_of_node.unique()]
    return [
        piece.graph.to_pyg(x=piece.rows(data.x).to_dense(), y=piece.rows(data.y), n_id=piece.nodes)
        for piece in pieces
    ]
