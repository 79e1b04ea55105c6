"""How the predictions for single nodes came about, and where nodes lie, as page and terminal show it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.tasks import Multiclass, Task
from plap.errors import InputError
from plap.fitting.artifacts import SavedModel
from plap.fitting.comparison import Comparison
from plap.fitting.prediction import member_configs, predict_nodes
from plap.insight.members import load_members, members_of, node_embeddings, tsne
from plap.insight.node_explanation import NodeExplanation, explain_node, feature_means
from plap.insight.trust import can_be_judged, edge_trust
from plap.models import find_model, models_with
from plap.parts.subgraph import halo_size, with_halo
from plap.reporting.node_sections import FeaturePart, MapNode, NeighbourPart, NodeSections, NodeStory
from plap.reporting.number_text import number, shortened, shown
from plap.sparse import select_rows
from plap.training import RunConfig
from plap.training.modules import halo_of

_FEATURES, _NEIGHBOURS = 8, 12
"""Rows of an explanation."""


def is_explainable(config: RunConfig, task: Task) -> bool:
    """Whether predictions of a model are taken apart."""
    return find_model(config.model).pair_states is not None and (task.one_class_per_node or task.numeric)


def check_explainable(config: RunConfig, task: Task) -> None:
    """Refuse a model whose predictions are not taken apart."""
    if not (task.one_class_per_node or task.numeric):
        raise InputError("predictions of several labels per node cannot be explained")
    if not is_explainable(config, task):
        raise InputError(
            f"predictions of {models_with('pair_states')} can be explained, not those of {config.model}"
        )


def hops_of(configs: Sequence[RunConfig], members: Sequence[torch.nn.Module]) -> int:
    """How far the members of a model that can be explained look."""
    halos = [halo_of(config, member) for config, member in zip(configs, members, strict=True)]
    return max(halo.hops for halo in halos if halo is not None)  # a model with states of pairs has one


@dataclass(frozen=True, eq=False)
class Storyteller:
    """Says how the predictions of an ensemble for the nodes of one graph came about."""

    members: Sequence[torch.nn.Module]
    """In evaluation mode; their mean is explained."""
    hops: int
    """How far they look."""
    data: GraphData
    task: Task
    probabilities: Tensor
    """[N, L], of every node."""
    known: Tensor | None
    """Labels as the task has them."""
    trust: Tensor | None
    """[entries]: of every edge, NaN where it was not judged."""

    @classmethod
    def of_model(cls, model: SavedModel, data: GraphData) -> Storyteller:
        """For a model that was read from a folder, and a graph with the features that it was fitted with."""
        configs = member_configs(model)
        for config in configs:
            check_explainable(config, model.task)
        members = load_members(configs, model.states, data.x.shape[1], model.task.num_outputs)
        said = torch.from_numpy(predict_nodes(model, data).probabilities)
        trust = edge_trust(members, data.x, data.graph) if can_be_judged(data.graph) else None
        return cls(
            members, hops_of(configs, members), data, model.task, said,
            model.task.recoded(data.y, data.task), trust,
        )  # fmt: skip

    @cached_property
    def _average(self) -> Tensor:
        return feature_means(self.data.x)

    @cached_property
    def _decided(self) -> Tensor:
        return self.task.decode(self.probabilities)

    def story_of(self, node: Any) -> NodeStory:
        """How the prediction of a node came about, by its id."""
        ids = list(self.data.node_ids)
        try:
            position = ids.index(node) if node in ids else list(map(str, ids)).index(str(node))
        except ValueError:
            raise InputError(f"{self.data.name} has no node {node!r}") from None
        story = self.story(position)
        if story is None:
            raise InputError(f"the node {node!r} has too many neighbours to explain its prediction")
        return story

    def story(self, node: int, why: str = "") -> NodeStory | None:
        """How a node's prediction came about; None where it has too many neighbours to say."""
        data, task, columns = self.data, self.task, self.data.columns
        table = None if columns is None else columns.transform
        groups = data.feature_names if table is None else table.groups or data.feature_names
        kind = 0 if task.numeric else int(self._decided[node])
        found = explain_node(
            self.members, data.x, data.graph, node, task, hops=self.hops, output=kind, average=self._average,
            groups=groups,
        )  # fmt: skip
        if found is None:
            return None
        others = list(found.neighbours)[:_NEIGHBOURS]
        return NodeStory(
            node=str(data.node_ids[node]),
            why=why,
            predicted=self._words([node])[0],
            kind=kind,
            known=None if self.known is None else task.words(self.known[[node]])[0],
            prediction=found.prediction,
            without_edges=found.without_edges,
            average_features=found.average_features,
            features=self._features(found),
            num_features=data.x.shape[1] if groups is None else len(set(groups)),
            neighbours=[self._neighbour(found, other) for other in others],
            num_neighbours=found.num_neighbours,
            links=self._links(torch.tensor(others)),
            hops=None if found.exact else found.hops,
        )

    def _words(self, nodes: list[int]) -> list[str]:
        task = self.task
        if task.numeric:
            return [shown(value, share=False) for value in self._decided[nodes].tolist()]
        return [str(word) for word in task.words(self._decided[nodes])]

    def _neighbour(self, found: NodeExplanation, other: int) -> NeighbourPart:
        return NeighbourPart(
            str(self.data.node_ids[other]),
            self._words([other])[0],
            0 if self.task.numeric else int(self._decided[other]),
            found.neighbours[other],
            self._trust(found.node, other),
        )

    def _trust(self, node: int, other: int) -> float | None:
        if self.trust is None:
            return None
        graph = self.data.graph
        begin, end = int(graph.indptr[node]), int(graph.indptr[node + 1])
        at = int(torch.searchsorted(graph.indices[begin:end].contiguous(), other))
        value = float(self.trust[begin + at])
        return None if math.isnan(value) else value

    def _links(self, nodes: Tensor) -> list[tuple[int, int]]:
        """Pairs of positions of nodes that have an edge."""
        if nodes.shape[0] < 2:
            return []
        order = nodes.argsort()
        inner = self.data.graph.subgraph(nodes)
        pairs = order[inner.edge_index[:, inner.edges_once()]]
        return [(int(i), int(j)) for i, j in pairs.t().tolist()]

    def _features(self, found: NodeExplanation) -> list[FeaturePart]:
        """The columns of the table, or the features, with the largest effect, and what the node has there."""
        data = self.data
        shown_ones = list(found.features.items())[:_FEATURES]
        if data.columns is not None and data.columns.transform is not None and data.columns.transform.groups:
            cells: Mapping[str, object] = data.columns.frame.row(found.node, named=True)
        else:
            row = select_rows(data.x, torch.tensor([found.node])).to_dense()[0].tolist()
            names = data.feature_names or [f"feature {k}" for k in range(len(row))]
            cells = dict(zip(names, row, strict=True))
        return [FeaturePart(name, _cell(cells.get(name)), without) for name, without in shown_ones]


def _cell(value: object) -> str:
    return "–" if value is None else shortened(number(value), 40)


_STEPS = 400
"""Of t-SNE, which takes between one and two seconds for 400 nodes."""
_MAP_SIZE = 6_000_000
"""Numbers that may go through the model for the map; where the surroundings of its nodes are more, fewer hops
of them are taken."""
_LEAST_MAPPED = 10
_ENTRY = 20
"""A stored entry of the graph takes about as long as so many numbers of the features."""


@dataclass(frozen=True)
class _Effort:
    """How much is done for the page, so that it takes a second or two on a large graph too."""

    uncertain: int
    """Nodes that are taken apart because they are the least certain."""
    wrong: int
    """Nodes that are taken apart because they are wrong, the most certain ones."""
    mapped: int
    """Nodes of the map."""
    members: int | None
    """Members of the ensemble that are asked; None: all."""

    @classmethod
    def for_graph(cls, data: GraphData) -> _Effort:
        large = _ENTRY * data.graph.num_entries + data.x.shape[0] > 20_000_000
        return cls(2, 2, 200, 1) if large else cls(3, 3, 400, None)


def node_sections(comparison: Comparison, trust: Tensor | None) -> NodeSections:
    """Explanations of a few telling nodes and a map of held-out ones; empty where the task has neither.

    Parameters
    ----------
    comparison : Comparison
    trust : Tensor, shape [entries], optional
        Of every edge, NaN where it was not judged.
    """
    task = comparison.task
    explainable = all(is_explainable(run.config, task) for run in comparison.fitted.members)
    if comparison.interrupted or not explainable:
        return NodeSections()
    effort = _Effort.for_graph(comparison.data)
    teller = storyteller(comparison, trust, effort.members)
    stories = [teller.story(node, why) for node, why in _telling_nodes(comparison, effort)]
    sections = NodeSections([story for story in stories if story is not None], not task.numeric)
    return sections if task.numeric else _with_map(sections, comparison, teller, effort)


def storyteller(comparison: Comparison, trust: Tensor | None, members: int | None = None) -> Storyteller:
    """What explains predictions of a fit, by the first ``members`` of the ensemble or by all."""
    data, fitted, task = comparison.data, comparison.fitted, comparison.task
    runs = fitted.members[:members]
    for run in runs:
        check_explainable(run.config, task)
    asked = members_of(runs, data.x.shape[1], task.num_outputs)
    hops = hops_of([run.config for run in runs], asked)
    return Storyteller(asked, hops, data, task, comparison.model.probabilities, data.y, trust)


def _telling_nodes(comparison: Comparison, effort: _Effort) -> list[tuple[int, str]]:
    """Nodes that somebody will ask about, and why."""
    said, test, task = comparison.model.probabilities, comparison.split.test, comparison.task
    if task.numeric:
        off = (said[:, 0] - comparison.data.y).abs().masked_fill(~test, -1.0)
        worst = off.topk(min(effort.uncertain + effort.wrong, int(test.sum()))).indices.tolist()
        return [(node, "held out, far from its true number") for node in worst]
    assert isinstance(task, Multiclass)
    margin, unseen = task.margins(said), ~comparison.learned_from
    count = min(effort.uncertain, int(unseen.sum()))
    doubtful = margin.masked_fill(~unseen, 2.0).topk(count, largest=False).indices.tolist()
    chosen = [(node, "least certain") for node in doubtful]
    wrong = test & ~task.correct(comparison.data.y, said)
    count = min(effort.wrong, int(wrong.sum()))
    surest = margin.masked_fill(~wrong, -1.0).topk(count).indices.tolist()
    why = "held out, among the most confident errors"
    return chosen + [(node, why) for node in surest if node not in dict(chosen)]


def _with_map(
    sections: NodeSections, comparison: Comparison, teller: Storyteller, effort: _Effort
) -> NodeSections:
    """With held-out nodes in the plane, by t-SNE of their embeddings; of many a random sample."""
    data = comparison.data
    test = comparison.split.test.nonzero().squeeze(1)
    named = replace(sections, classes=data.class_names, held_out=test.shape[0])
    if test.shape[0] < _LEAST_MAPPED or find_model(comparison.fitted.config.model).embeddings is None:
        return named
    seed = comparison.settings.seed
    draws = torch.Generator().manual_seed(seed)
    chosen = test[torch.randperm(test.shape[0], generator=draws)[: effort.mapped]].sort().values
    hops = teller.hops
    while hops > 1 and _ENTRY * halo_size(data.graph, chosen, hops) > _MAP_SIZE:
        hops -= 1
    near = with_halo(data.graph, chosen, hops)
    states = node_embeddings(teller.members[0], near.rows(data.x), near.graph)[near.core]
    plane = tsne(states, seed=seed, steps=_STEPS)
    said = comparison.task.decode(comparison.model.probabilities)[chosen].tolist()
    dots = [
        MapNode(str(data.node_ids[node]), float(x), float(y), kind, predicted)
        for node, (x, y), kind, predicted in zip(
            chosen.tolist(), plane, data.y[chosen].tolist(), said, strict=True
        )
    ]
    return replace(named, map=dots, map_hops=None if hops == teller.hops else hops)
