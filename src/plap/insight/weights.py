"""What a trained model makes of each edge: pGNN's aggregation weights, GAT's attention, as the models say."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import evaluating
from plap.models import model_of, models_with
from plap.nn.linear import Features


def learned_weights(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """How much each stored entry counts in a trained module.

    pGNN: α D^-1/2 M D^-1/2 of the last step (Eq. 12-13). GAT: the attention of the first layer, one column
    per head; what a node pays to itself is not in it.

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
            f"weights of edges are learned by {models_with('edge_weights')}, not by {type(module).__name__}"
        )
    with evaluating(module):
        return kind.edge_weights(module, x, graph)


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
    return ((relative + relative[reverse_entries(graph)]) / 2).float()


def reverse_entries(graph: Graph) -> Tensor:
    """The place of entry (j, i) for every entry (i, j), [entries].

    Examples
    --------
    >>> import plap
    >>> reverse_entries(plap.Graph.from_edges([(0, 1), (0, 2)]))
    tensor([2, 3, 0, 1])
    """
    return torch.argsort(graph.indices, stable=True)
