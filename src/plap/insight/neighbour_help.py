"""Whether a node's neighbours helped to classify it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import evaluating
from plap.nn.linear import Features


@dataclass(frozen=True, eq=False)
class NeighbourHelp:
    """A model's predictions for each node with its edges and without them."""

    label: Tensor
    """int64 [N]: the class whose probability is compared: the known one, otherwise the predicted one."""
    known: Tensor
    """Boolean [N]: whether ``label`` is known."""
    with_edges: Tensor
    """[N]: probability of ``label``."""
    without_edges: Tensor
    predicted_with: Tensor
    """int64 [N]: the most likely class."""
    predicted_without: Tensor

    @property
    def gain(self) -> Tensor:
        """[N]: how much the neighbours raise the probability of the class; negative where they lower it."""
        return self.with_edges - self.without_edges

    @property
    def helped(self) -> Tensor:
        """Boolean [N]: nodes with a known label, classified correctly with the edges and wrongly without."""
        return self.known & (self.predicted_with == self.label) & (self.predicted_without != self.label)

    @property
    def harmed(self) -> Tensor:
        """Boolean [N]: nodes with a known label, classified wrongly with the edges and correctly without."""
        return self.known & (self.predicted_with != self.label) & (self.predicted_without == self.label)


def neighbour_help(
    members: Sequence[torch.nn.Module], x: Features, graph: Graph, y: Tensor | None = None
) -> NeighbourHelp:
    """Compare an ensemble's predictions for every node with its edges and with these edges removed.

    The prediction for a node without edges depends only on its own features (pGNN: F = X there). One pass
    over the graph without any edges therefore gives exactly what removing the edges of each node in turn
    would give. The model is not trained again: it is the same model, evaluated without edges.

    Parameters
    ----------
    members : sequence of modules
        Each called as ``module(x, graph)``; their probabilities are averaged.
    x : Tensor or sparse matrix, shape [N, F]
    graph : Graph
    y : Tensor, int64, shape [N], optional
        Known classes, −1 where unknown.

    Examples
    --------
    >>> import torch, plap
    >>> graph = plap.Graph.from_edges([(0, 1)], num_nodes=3)
    >>> found = neighbour_help([plap.nn.PGNN(2, 4, 2)], torch.eye(3)[:, :2], graph)
    >>> float(found.gain[2])
    0.0
    """
    if not members:
        raise InputError("members must contain at least one model")
    if y is not None and (y.ndim != 1 or y.shape[0] != graph.num_nodes or y.is_floating_point()):
        raise InputError(f"y must have one integer class per node, shape [{graph.num_nodes}]")
    alone = Graph.from_edges([], num_nodes=graph.num_nodes)
    with_edges, without_edges = _probabilities(members, x, graph), _probabilities(members, x, alone)
    predicted = with_edges.argmax(1)
    known = torch.zeros_like(predicted, dtype=torch.bool) if y is None else y >= 0
    label = predicted if y is None else torch.where(known, y, predicted)
    if bool((label >= with_edges.shape[1]).any()):
        raise InputError(f"y has class {int(label.max())}, but the model has {with_edges.shape[1]} classes")
    asked = label.unsqueeze(1)
    return NeighbourHelp(
        label,
        known,
        with_edges.gather(1, asked).squeeze(1),
        without_edges.gather(1, asked).squeeze(1),
        predicted,
        without_edges.argmax(1),
    )


def _probabilities(members: Sequence[torch.nn.Module], x: Features, graph: Graph) -> Tensor:
    """Mean softmax, [N, classes]."""
    each = []
    for member in members:
        with evaluating(member):
            each.append(member(x, graph).softmax(1))
    return torch.stack(each).mean(0)
