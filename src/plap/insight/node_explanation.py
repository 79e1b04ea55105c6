"""Which of its own features and which of its neighbours made a model's prediction for a node."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.checks import check_integer
from plap.data.tasks import Task
from plap.errors import InputError
from plap.graph import Graph
from plap.graph.graph import check_graph
from plap.insight.members import as_members, evaluating
from plap.nn.linear import Features
from plap.nn.plaplacian_conv import PLaplacianConv, weakened
from plap.parts.subgraph import Subgraph, halo_size, with_halo
from plap.sparse import scipy_from_tensor

Key = TypeVar("Key")

_MOST = 48
"""Edges, and groups of features, that are left out one at a time."""
_ENTRY = 20
"""A stored entry of the graph takes about as long as so many numbers of dense features."""
DEFAULT_SIZE = 2_000_000
"""Numbers that go through the model at a time: some ten milliseconds."""


@dataclass(frozen=True, eq=False)
class NodeExplanation:
    """What a model would predict for a node if one thing about it were different.

    Predictions are probabilities of one class, or numbers in the unit of the labels.
    """

    node: int
    output: int
    """Which output is explained: a class; 0 for a number."""
    prediction: float
    """As things are."""
    without_edges: float
    """If the node had no edges."""
    average_features: float
    """If all its own features were average."""
    features: dict[str, float]
    """By the name of a column or feature: if it were average. The largest difference comes first."""
    neighbours: dict[int, float]
    """By the node at the other end: if this edge were not there. The largest difference comes first."""
    num_neighbours: int
    """Neighbours in all; of more than 48, those were taken to which the prediction is most sensitive."""
    hops: int
    """How far the surroundings reach that went through the model."""
    exact: bool
    """Whether that is as far as the model looks, and no layer of it measures lengths on the graph that it is
    given (``unit="auto"``, :class:`plap.penalties.Quantile`)."""


def explain_node(
    members: torch.nn.Module | Sequence[torch.nn.Module],
    x: Features,
    graph: Graph,
    node: int,
    task: Task,
    *,
    hops: int,
    groups: Sequence[str] | None = None,
    output: int | None = None,
    average: Tensor | None = None,
    size: int = DEFAULT_SIZE,
) -> NodeExplanation | None:
    r"""Predict for a node without each of its edges in turn, and with each of its features made average.

    Only the surroundings of the node go through the model, with the degrees that they have in the whole
    graph, so the predictions are those on the whole graph as long as the surroundings are complete. The model
    is not trained again.

    Parameters
    ----------
    members : module, or a sequence of modules
        Each called as ``module(x, graph)``, in evaluation mode; their mean, calibrated, is explained.
    x : Tensor, dense or sparse, shape [N, F]
    graph : Graph
    node : int
    task : Task
        Turns outputs of the members into probabilities or numbers.
    hops : int
        How far the model looks.
    groups : sequence of F strings, optional
        The column that each feature comes from; by default each feature is its own, ``feature 0`` and so on.
        Of more than 48, those are taken in which the node is farthest from the average.
    output : int, optional
        Which class to explain, by default the predicted one.
    average : Tensor, shape [F], optional
        By default the mean over all nodes.
    size : int
        How much of the surroundings may go through the model at once, in numbers: fewer hops are taken where
        they would be more.

    Returns
    -------
    NodeExplanation or None
        None where the direct neighbours alone are too many.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=60, f=4, d=5.0, seed=0)
    >>> found = explain_node([plap.nn.PGNN(4, 8, 2).eval()], data.x, data.graph, 7, data.task, hops=4)
    >>> sorted(found.features)
    ['feature 0', 'feature 1', 'feature 2', 'feature 3']
    >>> found.num_neighbours == len(found.neighbours)
    True
    """
    members = as_members(members)
    node = check_integer("node", node, 0, check_graph(graph).num_nodes - 1)
    if not isinstance(task, Task):
        raise InputError(f"task must be a plap.data.Task, not {type(task).__name__}")
    hops, width = check_integer("hops", hops, 0), x.shape[1]
    if output is not None:
        check_integer("output", output, 0, task.num_outputs - 1)
    ball, taken = _surroundings(graph, node, hops, size)
    if ball is None:
        return None
    names = [f"feature {k}" for k in range(width)] if groups is None else list(groups)
    if len(names) != width:
        raise InputError(f"groups must have one name per feature, {width}, not {len(names)}")
    middle = feature_means(x) if average is None else average
    if middle.shape != (width,):
        raise InputError(f"average must have one number per feature, {width}, not {list(middle.shape)}")
    with ExitStack() as modes:
        for member in members:
            modes.enter_context(evaluating(member))
        near = _Surroundings(members, task, ball, ball.rows(x), middle, size)
        return _explained(near, names, output, node, taken, exact=taken >= hops and not _measuring(members))


def _measuring(members: Sequence[torch.nn.Module]) -> bool:
    """Whether a layer measures lengths on the graph that it is given."""
    layers = (layer for member in members for layer in member.modules())
    return any(isinstance(layer, PLaplacianConv) and layer.measures_lengths for layer in layers)


def _explained(
    near: _Surroundings, names: Sequence[str], output: int | None, node: int, hops: int, *, exact: bool
) -> NodeExplanation:
    """What the surroundings say of each variant of the node."""
    said = near.predictions([_Variant()])[0]
    chosen = int(said.argmax()) if output is None else output
    edges = near.edges(chosen)
    kept = near.columns(names)
    variants = [
        _Variant(cut=near.every_edge),
        _Variant(columns=torch.arange(len(names))),
        *(_Variant(columns=columns) for columns in kept.values()),
        *(_Variant(cut=edges[k : k + 1]) for k in range(edges.shape[0])),
    ]
    values = [float(value) for value in near.predictions(variants)[:, chosen]]
    alone, plain, *others = values
    now = float(said[chosen])
    ends = near.nodes[near.source[edges]].tolist()
    return NodeExplanation(
        node, chosen, now, alone, plain,
        _largest_first(dict(zip(kept, others[: len(kept)], strict=True)), now),
        _largest_first(dict(zip(ends, others[len(kept) :], strict=True)), now),
        near.every_edge.shape[0], hops, exact,
    )  # fmt: skip


def feature_means(x: Features) -> Tensor:
    """The mean of each feature, [F]."""
    if isinstance(x, Tensor) and x.layout == torch.strided:
        return x.mean(0)
    matrix = scipy_from_tensor(x) if isinstance(x, Tensor) else x
    return torch.from_numpy(np.asarray(matrix.mean(axis=0)).ravel()).float()


def _largest_first(values: dict[Key, float], now: float) -> dict[Key, float]:
    return dict(sorted(values.items(), key=lambda item: -abs(item[1] - now)))


def _surroundings(graph: Graph, node: int, hops: int, size: int) -> tuple[Subgraph | None, int]:
    """As many hops around a node as may go through the model at once."""
    core = torch.tensor([node])
    for taken in range(hops, 0, -1):
        if _ENTRY * halo_size(graph, core, taken) <= size:
            return with_halo(graph, core, taken), taken
    return (with_halo(graph, core, 0), 0) if hops == 0 else (None, 0)


@dataclass(frozen=True, eq=False)
class _Variant:
    """What is different: edges of the node that are not there, features that are average."""

    cut: Tensor | None = None
    """Positions of entries whose receiver is the node."""
    columns: Tensor | None = None


class _Surroundings:
    """A node and what is around it, ready to be predicted in many variants at once."""

    def __init__(
        self,
        members: Sequence[torch.nn.Module],
        task: Task,
        ball: Subgraph,
        x: Features,
        average: Tensor,
        size: int,
    ) -> None:
        self.members, self.task, self.graph, self.nodes = members, task, ball.graph, ball.nodes
        self.sparse = not isinstance(x, Tensor) or x.layout != torch.strided
        if self.sparse:
            self.x = scipy.sparse.csr_array(scipy_from_tensor(x) if isinstance(x, Tensor) else x)
        else:
            self.x = x.float()
        self.here = int(ball.core.nonzero()[0, 0])
        row = self.x[[self.here]].toarray()[0] if self.sparse else self.x[self.here]
        self.own = torch.as_tensor(row, dtype=torch.float32)
        self.average = average.float()
        numbers = self.x.nnz if self.sparse else self.x.numel()
        self.at_once = max(1, size // (numbers + _ENTRY * (self.graph.num_entries + self.graph.num_nodes)))
        self.receiver, self.source = self.graph.receivers(), self.graph.indices.long()
        own = (self.receiver == self.here) & (self.source != self.here)
        self.every_edge = own.nonzero().squeeze(1)
        self.reverse = self.graph.reverse_entries()

    def edges(self, output: int) -> Tensor:
        """Entries of the node's edges; of many, those whose weight the prediction is most sensitive to."""
        if self.every_edge.shape[0] <= _MOST:
            return self.every_edge
        with torch.enable_grad():
            mask = torch.ones(self.graph.num_entries, requires_grad=True)
            x = self._features([_Variant()])
            said = self._outputs(x, weakened(self.graph, mask), 1)[0, output]
            (slope,) = torch.autograd.grad(said, mask)
        both = slope[self.every_edge] + slope[self.reverse[self.every_edge]]
        return self.every_edge[both.abs().topk(_MOST).indices]

    def columns(self, names: Sequence[str]) -> dict[str, Tensor]:
        """Features by the name of their column; of many, those farthest from the average."""
        away = (self.own - self.average).abs().tolist()
        groups: dict[str, list[int]] = {}
        for k, name in enumerate(names):
            groups.setdefault(name, []).append(k)
        ranked = sorted(groups.items(), key=lambda item: -sum(away[k] for k in item[1]))
        return {name: torch.tensor(columns) for name, columns in ranked[:_MOST]}

    def predictions(self, variants: Sequence[_Variant]) -> Tensor:
        """[variants, L]: what the ensemble predicts for the node in each."""
        parts = [variants[k : k + self.at_once] for k in range(0, len(variants), self.at_once)]
        return torch.cat(
            [self._outputs(self._features(part), self._graphs(part), len(part)) for part in parts]
        )

    def _outputs(self, x: Features, graph: Graph, count: int) -> Tensor:
        rows = self.here + self.graph.num_nodes * torch.arange(count)
        each = [self.task.probabilities(member(x, graph)[rows]) for member in self.members]
        return self.task.calibrated(sum(each[1:], each[0]) / len(each))

    def _features(self, variants: Sequence[_Variant]) -> Features:
        """The features of all variants below each other."""
        rows = []
        for variant in variants:
            row = self.own.clone()
            if variant.columns is not None:
                row[variant.columns] = self.average[variant.columns]
            rows.append(row)
        if not self.sparse:
            x = self.x.repeat(len(variants), 1)
            x[self.here :: self.graph.num_nodes] = torch.stack(rows)
            return x
        above, below = self.x[: self.here], self.x[self.here + 1 :]
        blocks = [
            block for row in rows for block in (above, scipy.sparse.csr_array(row[None].numpy()), below)
        ]
        return scipy.sparse.vstack(blocks, format="csr")

    def _graphs(self, variants: Sequence[_Variant]) -> Graph:
        """The graphs of all variants side by side, without edges between them."""
        n, entries = self.graph.num_nodes, torch.arange(self.graph.num_entries)
        kept = []
        for variant in variants:
            there = torch.ones_like(entries, dtype=torch.bool)
            if variant.cut is not None:
                there[variant.cut] = there[self.reverse[variant.cut]] = False
            kept.append(entries[there])
        shift = torch.cat([torch.full_like(part, k * n) for k, part in enumerate(kept)])
        position = torch.cat(kept)
        ends = torch.stack([self.source[position], self.receiver[position]]) + shift
        weight = self.graph.weight[position]
        return Graph.from_edge_index(ends, weight, n * len(variants), symmetrize="error", self_loops="keep")
