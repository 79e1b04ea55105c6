"""A graph with features and labels: what every loader returns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from plap.features import select_rows
from plap.graph import Graph


@dataclass(frozen=True)
class Provenance:
    """Where the data came from and what was done to it on the way in."""

    source: str
    """The public project, the generator and its arguments, or the user's path."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of every file that was read, by name."""
    notes: tuple[str, ...] = ()
    """What was symmetrised, dropped, merged or made up, a sentence each."""


@dataclass(frozen=True)
class FixedSplits:
    """Splits that came with the data, one column each: boolean tensors of shape [N, S]."""

    train: Tensor
    val: Tensor
    test: Tensor


@dataclass(frozen=True)
class GraphData:
    """What every loader returns."""

    name: str
    graph: Graph
    x: Tensor
    """Features [N, F], float32; a torch sparse CSR tensor where that is smaller."""
    y: Tensor
    """int64 [N], -1 where unknown; or float32 [N, L] of 0 and 1 for multi-label data (NaN row: unknown)."""
    class_names: tuple[str, ...] = ()
    node_ids: tuple[str, ...] | tuple[int, ...] | None = None
    """The user's own names of the nodes; None: nodes are 0..N-1."""
    feature_names: tuple[str, ...] | None = None
    splits: FixedSplits | None = None
    directed_edge_index: Tensor | None = None
    """Edges exactly as the source has them, [2, E], where the source is directed or has self-loops."""
    graph_of_node: Tensor | None = None
    """int64 [N]: which of several disjoint graphs a node belongs to (PPI); None: there is only one."""
    provenance: Provenance = field(default_factory=lambda: Provenance("unknown"))

    @property
    def num_classes(self) -> int:
        """Classes (single-label) or labels (multi-label)."""
        if self.class_names:
            return len(self.class_names)
        return self.y.shape[1] if self.y.ndim == 2 else int(self.y.max().item()) + 1


def largest_component(data: GraphData) -> GraphData:
    """Keep the largest connected component; of several, the one with the smallest node index.

    Nodes keep their order, and ``node_ids`` names each by what it was called (or its index) before.
    """
    nodes = torch.from_numpy(_largest(data.graph))
    if nodes.shape[0] == data.graph.num_nodes:
        return data
    return _restrict(data, nodes)


def _largest(graph: Graph) -> np.ndarray:
    n = graph.num_nodes
    matrix = csr_matrix(
        (np.ones(graph.num_entries), graph.indices.numpy(), graph.indptr.numpy()), shape=(n, n)
    )
    _, component = connected_components(matrix, directed=False)
    sizes = np.bincount(component)
    first_node = np.unique(component, return_index=True)[1]
    largest = min(np.flatnonzero(sizes == sizes.max()), key=lambda c: first_node[c])
    return np.flatnonzero(component == largest)


def _restrict(data: GraphData, nodes: Tensor) -> GraphData:
    """The part of ``data`` on ``nodes``, a union of components in ascending order."""
    n = data.graph.num_nodes
    new_index = torch.full((n,), -1)
    new_index[nodes] = torch.arange(nodes.shape[0])

    def inside(edge_index: Tensor) -> Tensor:
        return new_index[edge_index][:, new_index[edge_index[0]] >= 0]

    kept = new_index[data.graph.receivers()] >= 0
    graph = Graph.from_edge_index(
        inside(data.graph.edge_index), data.graph.weight[kept], nodes.shape[0], self_loops="keep"
    )
    ids = range(n) if data.node_ids is None else data.node_ids
    note = f"Kept the largest connected component, {nodes.shape[0]} of {n} nodes."
    return replace(
        data,
        graph=replace(graph, info=data.graph.info),
        x=select_rows(data.x, nodes),
        y=data.y[nodes],
        node_ids=tuple(ids[k] for k in nodes.tolist()),
        splits=None if data.splits is None else _rows(data.splits, nodes),
        directed_edge_index=None if data.directed_edge_index is None else inside(data.directed_edge_index),
        graph_of_node=None if data.graph_of_node is None else data.graph_of_node[nodes],
        provenance=Provenance(data.provenance.source, data.provenance.files, (*data.provenance.notes, note)),
    )


def _rows(splits: FixedSplits, nodes: Tensor) -> FixedSplits:
    return FixedSplits(splits.train[nodes], splits.val[nodes], splits.test[nodes])
