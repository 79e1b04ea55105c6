"""Edge weights of a trained model, pGNN's aggregation weights or GAT's attention, and their entropy."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import evaluating
from plap.models import model_of, models_with
from plap.nn.linear import Features


def learned_weights(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """The weight of each stored entry in a trained module.

    pGNN: α D^-1/2 M D^-1/2 of the last step (Eq. 12-14). GAT: the attention of the first layer, one column
    per head, without the attention of a node to itself.

    Parameters
    ----------
    module : PGNN, GAT, or that of a model with :attr:`plap.models.ModelKind.edge_weights`
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
    kind = model_of(module)
    if kind is None or kind.edge_weights is None:
        raise InputError(
            f"edge weights are learned by {models_with('edge_weights')}, not by {type(module).__name__}"
        )
    with evaluating(module):
        return kind.edge_weights(module, x, graph)


def relative_weights(weight: Tensor, graph: Graph) -> Tensor:
    """pGNN's weights [entries] relative to the receiver's average edge, the mean of both directions.

    An average edge of its two ends has weight 1. The factor D_j^-1/2 of the sender is left out, since the
    model does not choose it.

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


def weight_entropy(weight: Tensor, graph: Graph, *, normalize: bool = True) -> Tensor:
    r"""Entropy of the weights that each node gives to its neighbours, in nats.

    .. math:: H_i = -\sum_{j \in N_i} a_{ij} \log a_{ij}, \qquad a_{ij} = A_{ij} / \sum_{j'} A_{ij'}

    It is 0 if all weight is on one neighbour, and the logarithm of the number of neighbours if all count the
    same. The paper uses A instead of a; but A does not sum to 1 (on a regular graph it sums to 1 − β), so a
    node that mostly keeps its own features has a low "entropy" however it distributes the rest.

    Parameters
    ----------
    weight : Tensor, shape [entries] or [entries, heads], not negative
        In the order of ``graph.edge_index``.
    graph : Graph
    normalize : bool
        False: use A instead of a, as the paper does.

    Returns
    -------
    Tensor, float64, shape [N] or [N, heads]
        NaN for nodes without edges and for nodes whose weights are all 0.

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
    """Logarithm of each node's number of neighbours, the maximum of :func:`weight_entropy`; [N].

    Examples
    --------
    >>> import plap
    >>> uniform_entropy(plap.Graph.from_edges([(0, 1), (1, 2)], num_nodes=4))
    tensor([0.0000, 0.6931, 0.0000,    nan], dtype=torch.float64)
    """
    return weight_entropy(torch.ones(graph.num_entries), graph)
