"""Edges that lie: a given share of random edges in place of original ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.data.pairs import rank_pairs, sample_absent_pairs, sample_distinct, unrank_pairs
from plap.data.seeds import generator
from plap.errors import InputError
from plap.graph import Graph


class PerturbedGraph(NamedTuple):
    """A graph some of whose edges are random, and which."""

    graph: Graph
    random: Tensor
    """Boolean [entries], aligned with ``graph.indices`` and the columns of ``graph.edge_index``: both
    entries of a random edge are marked."""


def perturb_edges(graph: Graph, rate: float, seed: int = 0) -> PerturbedGraph:
    """Replace a share of the edges by random ones: r = random / all, and as many edges as before.

    Of E edges, k = ⌊r·E + ½⌋ chosen uniformly are removed, and k node pairs chosen uniformly among all
    pairs that were not joined are joined instead; every node is eligible, r = 1 replaces every edge. A
    random edge takes the weight of an edge that was removed, so the weights are the same as before.
    Self-loops, if the graph kept any, stay and are not counted. The time is near linear in the edges.

    The published code differs: its random edges are directed, may be self-loops and never touch the last
    node, and it removes fewer edges than it adds.

    Parameters
    ----------
    graph : Graph
    rate : float in [0, 1]
        The paper has 0.25, 0.5 and 1.
    seed : int

    Examples
    --------
    >>> import plap
    >>> ring = plap.Graph.from_edges([(k, (k + 1) % 8) for k in range(8)])
    >>> noisy, random = perturb_edges(ring, 0.25)
    >>> noisy.num_edges, int(random.sum()) // 2
    (8, 2)
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
        raise InputError(f"rate must be a number in [0, 1], not {rate!r}")
    receiver, source = graph.receivers().cpu().numpy(), graph.indices.cpu().numpy().astype(np.int64)
    upper, loops = graph.edges_once().cpu().numpy(), np.flatnonzero(source == receiver)
    rank = rank_pairs(source[upper], receiver[upper])
    count = math.floor(rate * upper.size + 0.5)
    absent = graph.num_nodes * (graph.num_nodes - 1) // 2 - upper.size
    if count > absent:
        raise InputError(
            f"the graph is too dense for a noise rate of {rate}: {count} random edges are wanted, "
            f"but only {absent} pairs of nodes are not joined"
        )
    rng = generator(seed)
    removed = sample_distinct(rng, upper.size, count)
    added = sample_absent_pairs(rng, graph.num_nodes, rank, count)
    kept = np.delete(np.arange(upper.size), removed)
    first, second = unrank_pairs(np.concatenate([rank[kept], added]))
    weight = graph.weight[torch.from_numpy(upper[np.concatenate([kept, rng.permutation(removed)])])]
    loop = torch.from_numpy(receiver[loops])
    ends = torch.from_numpy(np.stack([first, second]))
    noisy = Graph.from_edge_index(
        torch.cat([ends, ends.flip(0), torch.stack([loop, loop])], dim=1),
        torch.cat([weight, weight, graph.weight[torch.from_numpy(loops)]]),
        graph.num_nodes,
        self_loops="keep",
    )
    return PerturbedGraph(noisy.to(graph.device), _marked(noisy, added).to(graph.device))


def _marked(graph: Graph, ranks: np.ndarray) -> Tensor:
    """Whether each entry of ``graph`` belongs to one of the pairs ``ranks`` (ascending)."""
    receiver, source = graph.receivers().cpu().numpy(), graph.indices.cpu().numpy().astype(np.int64)
    low, high = np.minimum(receiver, source), np.maximum(receiver, source)
    if ranks.size == 0:
        return torch.zeros(graph.num_entries, dtype=torch.bool)
    rank = rank_pairs(low, high)
    nearest = ranks[np.minimum(np.searchsorted(ranks, rank), ranks.size - 1)]
    return torch.from_numpy((nearest == rank) & (low < high))
