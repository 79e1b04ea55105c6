"""How far a node concentrates on few of its neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph


def weight_entropy(weight: Tensor, graph: Graph, *, normalize: bool = True) -> Tensor:
    r"""Entropy of the weights that each node gives to its neighbours, in nats.

    .. math:: H_i = -\sum_{j \in N_i} a_{ij} \log a_{ij}, \qquad a_{ij} = A_{ij} / \sum_{j'} A_{ij'}

    0: all weight is on one neighbour; the logarithm of the number of neighbours: all count the same. The
    paper writes it with A in place of a; but A does not sum to 1 (where all degrees are equal, to 1 − β), so
    a node that mostly keeps its own features has a low "entropy" however it spreads the rest.

    Parameters
    ----------
    weight : Tensor, shape [entries] or [entries, heads], not negative
        In the order of ``graph.edge_index``.
    graph : Graph
    normalize : bool
        False: A in place of a, as the paper writes it.

    Returns
    -------
    Tensor, float64, shape [N] or [N, heads]
        NaN for a node without edges, and for one whose weights are all 0.

    Examples
    --------
    >>> import torch, plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> weight_entropy(torch.tensor([1.0, 0.5, 0.5, 1.0]), path)
    tensor([0.0000, 0.6931, 0.0000], dtype=torch.float64)
    """
    if weight.ndim not in (1, 2) or weight.shape[0] != graph.num_entries:
        raise InputError(f"weight must have shape [{graph.num_entries}], not {list(weight.shape)}")
    if not bool((weight >= 0).all()):
        raise InputError("weight must not be negative")
    weight = weight.detach().double()
    receivers = graph.receivers()
    empty = torch.zeros(graph.num_nodes, *weight.shape[1:], dtype=torch.float64)
    total = empty.index_add(0, receivers, weight)
    share = weight / total[receivers].clamp(min=torch.finfo(torch.float64).tiny) if normalize else weight
    entropy = empty.index_add(0, receivers, -torch.xlogy(share, share))
    return torch.where(total > 0, entropy, torch.nan)


def uniform_entropy(graph: Graph) -> Tensor:
    """Logarithm of each node's number of neighbours, the most that :func:`weight_entropy` can be; [N].

    Examples
    --------
    >>> import plap
    >>> uniform_entropy(plap.Graph.from_edges([(0, 1), (1, 2)], num_nodes=4))
    tensor([0.0000, 0.6931, 0.0000,    nan], dtype=torch.float64)
    """
    return weight_entropy(torch.ones(graph.num_entries), graph)
