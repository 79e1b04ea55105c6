"""From a comparison to the parts of its page about single nodes: explanations and the map."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.fitting.comparison import Comparison
from plap.fitting.node_stories import Storyteller, check_explainable, hops_of, is_explainable
from plap.insight.embeddings import node_embeddings, tsne
from plap.insight.members import members_of
from plap.models import find_model
from plap.parts.subgraph import halo_size, with_halo
from plap.reporting.node_sections import MapNode, NodeSections

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
    if comparison.interrupted or not is_explainable(comparison.fitted.config, task):
        return NodeSections()
    effort = _Effort.for_graph(comparison.data)
    teller = storyteller(comparison, trust, effort.members)
    stories = [teller.story(node, why) for node, why in _telling_nodes(comparison, effort)]
    sections = NodeSections([story for story in stories if story is not None], not task.numeric)
    return sections if task.numeric else _with_map(sections, comparison, teller, effort)


def storyteller(comparison: Comparison, trust: Tensor | None, members: int | None = None) -> Storyteller:
    """What explains predictions of a fit, by the first ``members`` of the ensemble or by all."""
    data, fitted, task = comparison.data, comparison.fitted, comparison.task
    check_explainable(fitted.config, task)
    asked = members_of(fitted.ensemble.runs, data.x.shape[1], task.num_outputs)[:members]
    hops = hops_of(fitted.config, asked[0])
    return Storyteller(asked, hops, data, task, comparison.model.probabilities, data.y, trust)


def _telling_nodes(comparison: Comparison, effort: _Effort) -> list[tuple[int, str]]:
    """Nodes that somebody will ask about, and why."""
    said, test, task = comparison.model.probabilities, comparison.split.test, comparison.task
    if task.numeric:
        off = (said[:, 0] - comparison.data.y).abs().masked_fill(~test, -1.0)
        worst = off.topk(min(effort.uncertain + effort.wrong, int(test.sum()))).indices.tolist()
        return [(node, "held out, far from its true number") for node in worst]
    decided = task.decode(said)
    other = said.scatter(1, decided[:, None], -1.0).amax(1)
    margin = said.gather(1, decided[:, None]).squeeze(1) - other
    doubtful = margin.topk(min(effort.uncertain, margin.shape[0]), largest=False).indices.tolist()
    chosen = [(node, "least certain") for node in doubtful]
    wrong = test & (decided != comparison.data.y)
    count = min(effort.wrong, int(wrong.sum()))
    surest = margin.masked_fill(~wrong, -2.0).topk(count).indices.tolist()
    return chosen + [(node, "held out, wrong and yet certain") for node in surest if node not in dict(chosen)]


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
