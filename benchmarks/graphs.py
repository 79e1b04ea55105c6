"""Graphs to measure on."""

from __future__ import annotations

import numpy as np

from plap import Graph


def power_law(nodes: int, entries: int, seed: int = 0) -> Graph:
    """About ``entries`` stored entries, degrees falling as a power of the rank, nodes in random order."""
    rng = np.random.default_rng(seed)
    share = (np.arange(nodes) + 20.0) ** -0.6
    bounds = np.cumsum(share / share.sum())
    wanted = int(entries / 2 * 1.01)
    ends = np.searchsorted(bounds, rng.random((wanted, 2))).clip(max=nodes - 1)
    return Graph.from_edges(rng.permutation(nodes)[ends], num_nodes=nodes)


def communities(count: int, nodes: int, entries: int, seed: int = 0) -> Graph:
    """So many power-law graphs one after another, a tenth of all edges between any two nodes."""
    inside = power_law(nodes // count, int(0.9 * entries) // count, seed).edge_index.numpy()
    shifted = [inside + k * (nodes // count) for k in range(count)]
    across = np.random.default_rng(seed).integers(nodes, size=(2, entries // 20))
    return Graph.from_edges(np.concatenate([*shifted, across], axis=1).T, num_nodes=nodes)
