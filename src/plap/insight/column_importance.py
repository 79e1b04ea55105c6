"""Which columns of a table a model relies on: how much worse it is when one of them is shuffled."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from plap.data.tasks import Task
from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import evaluating


def column_importance(
    members: Sequence[torch.nn.Module],
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
    members : sequence of modules
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
    if not members:
        raise InputError("members must contain at least one model")
    if len(groups) != x.shape[1]:
        raise InputError(f"groups must have one name per feature, {x.shape[1]}, not {len(groups)}")
    dense = x.to_dense()
    sign = 1 if task.metric.higher_is_better else -1

    def score(features: Tensor) -> float:
        probabilities = torch.zeros(int(nodes.sum()), task.num_outputs)
        for member in members:
            with evaluating(member):
                probabilities += task.probabilities(member(features, graph)[nodes])
        return sign * task.scores(y[nodes], probabilities / len(members))[task.metric.name]

    whole = score(dense)
    order = torch.randperm(dense.shape[0], generator=torch.Generator().manual_seed(seed))
    lost = {}
    for name in dict.fromkeys(groups):
        own = [k for k, group in enumerate(groups) if group == name]
        shuffled = dense.clone()
        shuffled[:, own] = dense[:, own][order]
        lost[name] = whole - score(shuffled)
    return dict(sorted(lost.items(), key=lambda item: -item[1]))
