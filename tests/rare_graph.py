"""Graphs with a rare class and with numbers, as tests of metrics, thresholds and rivals need them."""

from __future__ import annotations

import numpy as np
import torch

from plap import Graph
from plap.data import GraphData


def rare_graph(nodes: int = 800, share: float = 0.05, seed: int = 0) -> GraphData:
    """A few nodes are fraud: their features differ a little, and they are often joined to one another."""
    rng = np.random.default_rng(seed)
    y = (rng.permutation(nodes) < share * nodes).astype(np.int64)
    x = rng.standard_normal((nodes, 6)).astype(np.float32)
    x[:, 0] += 1.2 * y
    x[:, 1] -= 0.8 * y
    fraud = np.flatnonzero(y)
    edges = np.stack([rng.integers(nodes, size=4 * nodes), rng.integers(nodes, size=4 * nodes)])
    ring = np.stack([rng.choice(fraud, 3 * fraud.size), rng.choice(fraud, 3 * fraud.size)])
    graph = Graph.from_edge_index(torch.from_numpy(np.concatenate([edges, ring], 1)), num_nodes=nodes)
    return GraphData("rare", graph, torch.from_numpy(x), torch.from_numpy(y), ("fair", "fraud"))


def number_graph(nodes: int = 400, seed: int = 0) -> GraphData:
    """Numbers near 1000; the first feature says something about them, and edges join near ones."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(nodes)
    edges = np.stack([rng.integers(nodes, size=12 * nodes), rng.integers(nodes, size=12 * nodes)])
    edges = edges[:, np.abs(z[edges[0]] - z[edges[1]]) < 0.5]
    x = np.column_stack([z + rng.standard_normal(nodes), rng.standard_normal((nodes, 3))]).astype(np.float32)
    y = 1000 + 200 * z + 20 * rng.standard_normal(nodes)
    y[:20] = np.nan
    graph = Graph.from_edge_index(torch.from_numpy(edges), num_nodes=nodes)
    return GraphData("numbers", graph, torch.from_numpy(x), torch.from_numpy(y))
