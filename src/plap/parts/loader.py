"""Mini-batches of several parts, the Cluster-GCN way."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from plap.data.sampling import check_seed
from plap.errors import InputError
from plap.graph import Graph
from plap.parts.checks import check_count, check_graph
from plap.parts.subgraph import Subgraph, induced, with_halo


class PartLoader:
    """Batches of parts of a graph: at random for training, in order and with a halo for evaluation.

    As in Cluster-GCN (Chiang et al., 2019), a training batch is the graph on the nodes of a few parts drawn
    at random, with the edges within and between them and degrees of its own. Which parts go together depends
    only on the seed and the number of the epoch, so a training that was interrupted can be resumed.

    Parameters
    ----------
    graph : Graph
    partition : Tensor, shape [N], integer
        The part of every node, as :func:`plap.parts.partition` gives it. Numbers without nodes are left out,
        and so are nodes of a negative number.
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
        self.parts_per_batch = check_count("parts_per_batch", parts_per_batch, 1)
        self.seed = check_seed(seed)
        part = torch.as_tensor(partition)
        if part.shape != (graph.num_nodes,) or part.dtype.is_floating_point:
            raise InputError(f"partition must hold one integer for each of the {graph.num_nodes} nodes")
        numbers, sizes = part[part >= 0].unique(return_counts=True)
        if numbers.numel() == 0:
            raise InputError("partition must put at least one node into a part")
        nodes = part.argsort(stable=True)[(part < 0).sum() :].to(graph.device)
        self._parts: tuple[Tensor, ...] = nodes.split(sizes.tolist())

    def __len__(self) -> int:
        """Batches an epoch."""
        return math.ceil(len(self._parts) / self.parts_per_batch)

    def epoch(self, number: int) -> Iterator[Subgraph]:
        """The training batches of an epoch: every part is in one of them."""
        for nodes in self.groups(number):
            yield induced(self.graph, nodes)

    def halos(self, hops: int) -> Iterator[Subgraph]:
        """The same number of parts at a time, in order, with their halo (see :func:`with_halo`)."""
        for nodes in self.groups():
            yield with_halo(self.graph, nodes, hops)

    def groups(self, epoch: int | None = None) -> Iterator[Tensor]:
        """The nodes of each batch of an epoch, or of all parts in order: what is cut out, before it is."""
        order = np.arange(len(self._parts))
        if epoch is not None:
            rng = np.random.default_rng([self.seed, check_count("number", epoch, 0)])
            order = rng.permutation(len(self._parts))
        for start in range(0, order.size, self.parts_per_batch):
            yield torch.cat([self._parts[k] for k in order[start : start + self.parts_per_batch]])
