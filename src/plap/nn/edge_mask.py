"""Edge masks of PyG's explainers, as the weights of a graph."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph

_LEAST = 1e-12
"""What stands for a weight of 0, so that an edge that is masked out still has a gradient."""


def masked_graph(graph: Graph, edge_index: Graph | Tensor, mask: Tensor) -> Graph:
    r"""The graph with each edge kept as far as its mask says; what is taken from it goes to its two ends.

    An edge of weight w and mask m gets the weight w m, and each of its ends a self-loop of weight w (1 − m).
    Degrees stay as they are, so a mask weakens an edge as such and not only in comparison with the other
    edges of its nodes: masks of 1 give the graph, and masks of 0 a graph on which every node keeps its own
    features. The operator itself does not change if all weights are multiplied by a number, so without the
    loops masks that are all equal would have no effect.

    Parameters
    ----------
    graph : Graph
        What :meth:`plap.Graph.from_edge_index` makes of ``edge_index``, without self-loops.
    edge_index : Tensor, shape [2, E]
    mask : Tensor, shape [E]
        From 0 to 1; where both directions of an edge are given, their mean counts.

    Examples
    --------
    >>> edges = torch.tensor([[0, 1], [1, 2]])
    >>> path = Graph.from_edge_index(edges)
    >>> masked_graph(path, edges, torch.tensor([0.25, 1.0])).to_scipy().toarray().round(6)
    array([[0.75, 0.25, 0.  ],
           [0.25, 0.75, 1.  ],
           [0.  , 1.  , 0.  ]], dtype=float32)
    """
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise InputError("an explanation needs the edges as an edge_index of shape [2, E]")
    if mask.shape != (edge_index.shape[1],):
        raise InputError(f"the edge mask has shape {list(mask.shape)} for {edge_index.shape[1]} edges")
    both = Graph.from_edge_index(edge_index, mask.clamp(min=_LEAST), graph.num_nodes, symmetrize="mean")
    return weakened(graph, both.weight)


def weakened(graph: Graph, mask: Tensor) -> Graph:
    """The graph with each stored entry kept as far as ``mask`` [entries] says; see :func:`masked_graph`.

    Both entries of an edge must have the same mask, and a self-loop the mask 1.

    Examples
    --------
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> weakened(path, torch.tensor([1.0, 1.0, 0.5, 0.5])).degree.round(decimals=6)
    tensor([1., 2., 1.], dtype=torch.float64)
    """
    nodes = torch.arange(graph.num_nodes, device=graph.device)
    kept = graph.weight * mask.clamp(min=_LEAST)
    taken = torch.zeros_like(nodes, dtype=kept.dtype).index_add(0, graph.receivers(), graph.weight - kept)
    return Graph.from_edge_index(
        torch.cat([graph.edge_index, nodes.expand(2, -1)], 1),
        torch.cat([kept, taken]).clamp(min=_LEAST),
        graph.num_nodes,
        symmetrize="sum",
        self_loops="keep",
    )
