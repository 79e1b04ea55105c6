"""Which of its own features and which of its neighbours made a model's prediction for a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from plap.checks import check_integer
from plap.data.tasks import Task
from plap.errors import InputError
from plap.graph import Graph
from plap.nn.edge_mask import weakened
from plap.nn.linear import Features
from plap.parts.subgraph import Subgraph, halo_size, with_halo

_POINTS = 8
"""Points of the path, by Gauss and Legendre's rule."""
_ENTRY = 20
"""A stored entry of the graph takes about as long as so many numbers of the features."""
DEFAULT_SIZE = 1_500_000
"""Numbers of the surroundings that go through the model at each point: some ten milliseconds."""


@dataclass(frozen=True, eq=False)
class NodeExplanation:
    """A prediction as a sum: that of an average node without edges, and what features and neighbours add."""

    node: int
    output: int
    """Which output is explained: a class; 0 for a number."""
    start: float
    """The prediction for a node with average features and no edges."""
    prediction: float
    """The prediction for the node: a probability, or a number in the unit of the labels."""
    features: Tensor
    """[F]: what each of the node's own features adds."""
    neighbours: Tensor
    """int64 [d]: nodes with an edge to the node."""
    shares: Tensor
    """[d]: what each of these edges adds."""
    hops: int
    """How far the surroundings reach that went through the model."""
    exact: bool
    """Whether that is as far as the model looks."""

    @property
    def rest(self) -> float:
        """What the sum misses because the path has finitely many points; close to 0."""
        return self.prediction - self.start - float(self.features.sum()) - float(self.shares.sum())

    def of_groups(self, groups: Sequence[str]) -> dict[str, float]:
        """What each column of a table adds, where several features come from one, largest effect first."""
        total: dict[str, float] = {}
        for name, value in zip(groups, self.features.tolist(), strict=True):
            total[name] = total.get(name, 0.0) + value
        return dict(sorted(total.items(), key=lambda item: -abs(item[1])))


def explain_node(
    members: Sequence[torch.nn.Module],
    x: Features,
    graph: Graph,
    node: int,
    task: Task,
    *,
    hops: int,
    output: int | None = None,
    average: Tensor | None = None,
    size: int = DEFAULT_SIZE,
) -> NodeExplanation | None:
    r"""Take a prediction apart by integrated gradients (Sundararajan et al., 2017).

    The path leads from a node with average features and no edges to the node as it is: its features and the
    weights of its own edges grow together, while everything around it stays (what an edge lacks in weight is
    a self-loop at both ends, see :func:`plap.nn.edge_mask.weakened`). The gradient along the path says what
    each feature and each edge adds, and the sum of all is the difference of the predictions at both ends.

    Parameters
    ----------
    members : sequence of modules
        Each called as ``module(x, graph)``, in evaluation mode; their mean, calibrated, is explained.
    x : Tensor, dense or sparse, shape [N, F]
    graph : Graph
    node : int
    task : Task
        Turns outputs of the members into probabilities or numbers.
    hops : int
        How far the model looks.
    output : int, optional
        Which class to explain, by default the predicted one.
    average : Tensor, shape [F], optional
        The features that the path starts from, by default their mean over all nodes.
    size : int
        How much of the surroundings may go through the model, in numbers: fewer hops are taken where they
        would be more.

    Returns
    -------
    NodeExplanation or None
        None where the direct neighbours alone are too many.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=60, f=4, d=5.0, seed=0)
    >>> found = explain_node([plap.nn.PGNN(4, 8, 2).eval()], data.x, data.graph, 7, data.task, hops=4)
    >>> found.features.shape, abs(found.rest) < 0.01
    (torch.Size([4]), True)
    """
    if not members:
        raise InputError("members must contain at least one model")
    node = check_integer("node", node, 0, graph.num_nodes - 1)
    near = _surroundings(graph, node, hops, x.shape[1], size)
    if near is None:
        return None
    ball, taken = near
    inside = ball.rows(x)
    inside = (inside.to_dense() if isinstance(inside, Tensor) else torch.from_numpy(inside.toarray())).float()
    here = int(ball.core.nonzero()[0, 0])
    own = inside[here]
    start = feature_means(x) if average is None else average
    path = _Path(members, task, ball.graph, inside, here, own, start.to(own.dtype))
    with torch.no_grad():
        said = path.prediction(torch.tensor(1.0))
        chosen = int(said.argmax()) if output is None else output
        first = float(path.prediction(torch.tensor(0.0))[chosen])
    features, entries = path.integral(chosen)
    source = ball.graph.indices.long()
    out = (ball.graph.receivers() == here) & (source != here)
    back = ball.graph.reverse_entries()[out]
    return NodeExplanation(
        node, chosen, first, float(said[chosen]), features, ball.nodes[source[out]],
        entries[out] + entries[back], taken, taken >= hops,
    )  # fmt: skip


def feature_means(x: Features) -> Tensor:
    """The mean of each feature, [F]."""
    if isinstance(x, Tensor):
        if x.layout == torch.strided:
            return x.mean(0)
        ones = torch.full((1, x.shape[0]), 1 / x.shape[0], dtype=x.dtype)
        mean: Tensor = (x.t() @ ones.t()).to_dense().squeeze(1)
        return mean
    return torch.from_numpy(np.asarray(x.mean(axis=0)).ravel()).float()


def _surroundings(
    graph: Graph, node: int, hops: int, features: int, size: int
) -> tuple[Subgraph, int] | None:
    """As many hops around a node as may go through the model."""
    core = torch.tensor([node])
    for taken in range(hops, 0, -1):
        if halo_size(graph, core, taken) <= size // _ENTRY:
            ball = with_halo(graph, core, taken)
            if ball.nodes.shape[0] * features + _ENTRY * ball.graph.num_entries <= size:
                return ball, taken
    return (with_halo(graph, core, 0), 0) if hops == 0 else None


@dataclass(frozen=True, eq=False)
class _Path:
    """The prediction for a node as its features and edges grow from the average of all and from nothing."""

    members: Sequence[torch.nn.Module]
    task: Task
    graph: Graph
    x: Tensor
    here: int
    own: Tensor
    start: Tensor

    def prediction(self, share: Tensor, row: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """[L], at a point of the path; ``row`` and ``mask`` are its features and edges unless given."""
        row = self.start + share * (self.own - self.start) if row is None else row
        mask = self._mask(share) if mask is None else mask
        where = torch.zeros(self.x.shape[0], 1, dtype=torch.bool)
        where[self.here] = True
        x = torch.where(where, row, self.x)
        graph = weakened(self.graph, mask)
        total = sum(self.task.probabilities(member(x, graph)[self.here]) for member in self.members)
        return self.task.calibrated(total / len(self.members))

    def _mask(self, share: Tensor) -> Tensor:
        """1 for every entry, and ``share`` for those of the node's own edges."""
        receiver, source = self.graph.receivers(), self.graph.indices.long()
        own = ((receiver == self.here) | (source == self.here)) & (receiver != source)
        return torch.where(own, share, torch.ones(()))

    def integral(self, output: int) -> tuple[Tensor, Tensor]:
        """What each feature [F] and each entry of the graph [entries] adds.

        An edge acts as a power of its weight, steep at 0, so the points are close to each other there.
        """
        nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
        features = torch.zeros_like(self.own)
        entries = torch.zeros(self.graph.num_entries)
        for at, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            share = torch.tensor(float(at**2))
            row = (self.start + share * (self.own - self.start)).requires_grad_()
            mask = self._mask(share).requires_grad_()
            said = self.prediction(share, row, mask)[output]
            to_row, to_mask = torch.autograd.grad(said, (row, mask), allow_unused=True)
            step = float(2 * at * weight)
            if to_row is not None:
                features += step * to_row * (self.own - self.start)
            if to_mask is not None:
                entries += step * to_mask
        return features, entries
