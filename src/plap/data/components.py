"""Connected components of a graph with features and labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from plap.data.features import select_rows
from plap.data.graph_data import FixedSplits, GraphData, Provenance
from plap.graph import Graph


def largest_component(data: GraphData) -> GraphData:
    """Keep the largest connected component; of several, the one with the smallest node index.

    Nodes keep their order, and ``node_ids`` names each by what it was called (or its index) before.
    """
    nodes = torch.from_numpy(_largest(data.graph))
    if nodes.shape[0] == data.graph.num_nodes:
        return data
    return _restrict(data, nodes)


def _largest(graph: Graph) -> np.ndarray:
    _, component = connected_components(graph.to_scipy(weighted=False, copy=False), directed=False)
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

    ids = range(n) if data.node_ids is None else data.node_ids
    note = f"Kept the largest connected component, {nodes.shape[0]} of {n} nodes."
    return replace(
        data,
        graph=replace(data.graph.subgraph(nodes), info=data.graph.info),
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
