"""What a trained model makes of each edge: pGNN's aggregation weights, GAT's attention."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import evaluating
from plap.nn import PGNN
from plap.nn.adjacency import times
from plap.nn.gat import GAT, edges_with_loops
from plap.nn.linear import Features


def learned_weights(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """How much each stored entry counts in a trained module.

    pGNN: α D^-1/2 M D^-1/2 of the last step (Eq. 12-14). GAT: the attention of the first layer, one column
    per head; what a node pays to itself is not in it.

    Parameters
    ----------
    module : PGNN or GAT
    x : Tensor or sparse matrix, shape [N, F]
    graph : Graph

    Returns
    -------
    Tensor, shape [entries] or [entries, heads]
        In the order of ``graph.edge_index``.

    Examples
    --------
    >>> import torch, plap
    >>> graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> learned_weights(plap.nn.PGNN(3, 4, 2, p=2, mu=1), torch.eye(3), graph)
    tensor([0.3536, 0.3536, 0.3536, 0.3536])
    """
    if isinstance(module, PGNN):
        with evaluating(module):
            weight: Tensor = module(x, graph, return_aggregation_weights=True)[1][1]
        return weight
    if isinstance(module, GAT):
        return _attention(module, x, graph)
    raise InputError(f"weights of edges are learned by PGNN and GAT, not by {type(module).__name__}")


def relative_weights(weight: Tensor, graph: Graph) -> Tensor:
    """pGNN's weights [entries] in units of the receiver's average edge, the mean of both directions.

    1 is what an edge of its two ends counts on average. The factor D_j^-1/2 of the sender is left out,
    since it is no choice of the model.

    Examples
    --------
    >>> import torch, plap
    >>> star = plap.Graph.from_edges([(0, 1), (0, 2)])
    >>> relative_weights(torch.tensor([3.0, 1.0, 1.0, 1.0]), star)
    tensor([1.2500, 0.7500, 1.2500, 0.7500])
    """
    receivers = graph.receivers()
    count = torch.bincount(receivers, minlength=graph.num_nodes)
    weight = weight.double() * graph.degree.sqrt()[graph.indices.long()]
    mean = torch.zeros(graph.num_nodes, dtype=torch.float64).index_add(0, receivers, weight)
    mean = mean / count.clamp(min=1)
    relative = weight / mean.clamp(min=torch.finfo(torch.float64).tiny)[receivers]
    return ((relative + relative[graph.reverse_entries()]) / 2).float()


def _attention(module: GAT, x: Features, graph: Graph) -> Tensor:
    edges = edges_with_loops(graph)
    with evaluating(module):
        _, (_, attention) = module.conv1(times(x, module.lin.weight), edges, return_attention_weights=True)
    own = graph.receivers() == graph.indices
    result = torch.empty(graph.num_entries, attention.shape[1], dtype=attention.dtype)
    first = graph.num_entries - int(own.sum())
    result[~own] = attention[:first]
    result[own] = attention[first + graph.indices[own].long()]
    return result
