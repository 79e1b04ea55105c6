"""What a model relies on: whether a node's neighbours helped, and how much worse it is without a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plap.checks import check_integer
from plap.data.tasks import Task
from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import as_members, check_features, evaluating
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
    members: Sequence[torch.nn.Module] | torch.nn.Module, x: Features, graph: Graph, y: Tensor | None = None
) -> NeighbourHelp:
    """Compare an ensemble's predictions for every node with its edges and with these edges removed.

    The prediction for a node without edges depends only on its own features (pGNN: F = X there). One pass
    over the graph without any edges therefore gives exactly what removing the edges of each node in turn
    would give. The model is not trained again: it is the same model, evaluated without edges.

    Parameters
    ----------
    members : sequence of modules, or one module
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
    members = as_members(members)
    check_features(x, graph)
    if y is not None and (
        not isinstance(y, Tensor) or y.shape != (graph.num_nodes,) or y.is_floating_point()
    ):
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


def column_importance(
    members: Sequence[torch.nn.Module] | torch.nn.Module,
    x: Tensor,
    graph: Graph,
    groups: Sequence[str],
    task: Task,
    y: Tensor,
    nodes: Tensor,
    *,
    seed: int = 0,
) -> dict[str, float]:
    """How much the headline metric falls when the values of a column are shuffled among all nodes.

    A node's own values and those of its neighbours are shuffled alike, so a column counts whichever way it
    acts. Columns that say the same may each look unimportant, because the other one is still there.

    Parameters
    ----------
    members : sequence of modules, or one module
        Each called as ``module(x, graph)``; their probabilities are averaged.
    x : Tensor, shape [N, F]
    graph : Graph
    groups : sequence of F strings
        The column that each feature comes from.
    task : Task
        Whose headline metric counts.
    y : Tensor
        Labels, one row per node.
    nodes : boolean Tensor, shape [N]
        Nodes that are scored; they must not be those that were trained on.
    seed : int
        Random seed of the shuffling.

    Returns
    -------
    dict
        The loss of each column, in the unit of the metric and largest first; negative where the model is
        better without.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=60, f=4, d=5.0, seed=0)
    >>> model, nodes = plap.nn.PGNN(4, 8, 2), torch.ones(60, dtype=torch.bool)
    >>> found = column_importance([model], data.x, data.graph, "aabb", data.task, data.y, nodes)
    >>> sorted(found)
    ['a', 'b']
    """
    members = as_members(members)
    check_features(x, graph)
    if not isinstance(x, Tensor):
        raise InputError(f"x must be a tensor, not {type(x).__name__}")
    if not isinstance(y, Tensor) or y.shape[:1] != (graph.num_nodes,):
        raise InputError(f"y must be a tensor with one row per node, {graph.num_nodes}")
    if not isinstance(nodes, Tensor) or nodes.dtype != torch.bool or nodes.shape != (graph.num_nodes,):
        raise InputError(f"nodes must be a boolean mask of the {graph.num_nodes} nodes")
    if len(groups) != x.shape[1]:
        raise InputError(f"groups must have one name per feature, {x.shape[1]}, not {len(groups)}")
    dense = x.to_dense()
    sign = 1 if task.metric.higher_is_better else -1

    def score(features: Tensor) -> float:
        probabilities = torch.zeros(int(nodes.sum()), task.num_outputs)
        for member in members:
            with evaluating(member):
                probabilities += task.probabilities(member(features, graph)[nodes])
        scores = task.scores(y[nodes], probabilities / len(members))
        if task.metric.name not in scores:
            raise InputError(f"nodes must be such that {task.metric.label} has a value on their labels")
        return sign * scores[task.metric.name]

    whole = score(dense)
    order = torch.randperm(
        dense.shape[0], generator=torch.Generator().manual_seed(check_integer("seed", seed, 0))
    )
    lost = {}
    for name in dict.fromkeys(groups):
        own = [k for k, group in enumerate(groups) if group == name]
        shuffled = dense.clone()
        shuffled[:, own] = dense[:, own][order]
        lost[name] = whole - score(shuffled)
    return dict(sorted(lost.items(), key=lambda item: -item[1]))
