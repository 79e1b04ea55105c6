"""Predictions of a trained ensemble for any graph with the same features."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars
import torch
from torch import Tensor

from plap.data.columns import ColumnDrift
from plap.data.dataset import GraphData, features_digest
from plap.data.resolve import as_graph_data
from plap.data.tables.assembly import STRUCTURAL_NAMES, apply_columns, structural_features
from plap.data.tables.options import TableOptions
from plap.data.tasks import Task
from plap.errors import InputError
from plap.fitting.artifacts import Predictions, SavedModel
from plap.graph import Graph
from plap.insight.members import load_members
from plap.models import find_model
from plap.nn.linear import Features
from plap.sparse import compact, select_rows
from plap.training import RunConfig
from plap.training.devices import choose_device

_ADDED_LATER = {"stopping"}
"""Fields that a model saved by an earlier version may lack: they have no part in predictions."""


def predict_nodes(model: SavedModel, data: GraphData, *, device: str = "cpu") -> Predictions:
    """Predictions for every node of ``data``; its own labels, where it has any, are recoded beside them.

    Parameters
    ----------
    model : SavedModel
        What :func:`plap.fitting.artifacts.load_model` gave; its features are compared with those of ``data``.
    data : GraphData
    device : {"auto", "cpu", "cuda", "cuda:N", "mps"}
    """
    data = as_fitted(model, data)
    probabilities = member_probabilities(
        member_configs(model), model.states, data.graph, data.x, model.task, device=device
    )
    known, moved = model.task.recoded(data.y, data.task), drift_of(model, data)
    return Predictions(
        data.node_ids,
        model.task,
        probabilities.numpy(),
        ["unlabelled"] * data.graph.num_nodes,
        None if known is None else known.numpy(),
        notes=(*data.notes, *moved.sentences),
        drift=moved.to_json(),
        same_rows=None if data.named and model.named is not False else partial(_same_rows, model, data),
    )


def _same_rows(model: SavedModel, data: GraphData, count: int) -> bool | None:
    """Whether the first ``count`` nodes are those of a fit with as many, in the same order.

    True: they have its features. None: they have its edges only, or features that are the same at all nodes;
    graphs such as grids have that in common without being the same.
    """
    n, x, graph = data.graph.num_nodes, data.x, data.graph
    if not 0 < count <= n:
        return False
    if count < n:
        x, graph = select_rows(x, torch.arange(count)), graph.subgraph(torch.arange(count))
    same_features = features_digest(x) == model.features_digest
    same_edges = graph.num_edges > 0 and graph.digest == model.graph_digest
    if same_features and (same_edges or not _constant(x)):
        return True
    return None if same_features or same_edges else False


def _constant(x: Tensor) -> bool:
    """Whether all nodes have the same features."""
    rows = torch.arange(x.shape[0])
    return features_digest(select_rows(x, rows[1:])) == features_digest(select_rows(x, rows[:-1]))


def member_configs(model: SavedModel) -> list[RunConfig]:
    """The configuration of each member."""
    found = []
    for saved in model.configs or [model.config] * len(model.states):
        config = RunConfig.from_dict(dict(saved))
        if set(config.to_dict()) - set(saved) - _ADDED_LATER - set(find_model(config.model).later):
            raise InputError(f"{model.path}: model.json does not have the whole configuration")
        found.append(config)
    return found


def read_like(model: SavedModel, source: Any, options: TableOptions | None = None) -> GraphData:
    """What :func:`plap.fit` takes as data, its tables read as those that the model was fitted on.

    Labels are not needed: one that cannot be used is unknown.
    """
    return as_fitted(model, as_graph_data(source, like(model, options or TableOptions())))


def like(model: SavedModel, options: TableOptions) -> TableOptions:
    """How to read tables for a prediction: as those of the fit, where ``options`` does not say otherwise."""
    raw = model.columns is None and model.feature_names != STRUCTURAL_NAMES
    asked = replace(options, raw_features=raw, keep_labels=False, encode=False)
    found = asked.following(model.table)
    if found.task is None and (model.task.numeric or model.task.one_class_per_node):
        found = replace(found, task="numbers" if model.task.numeric else "classes")
    return found


def as_fitted(model: SavedModel, data: GraphData) -> GraphData:
    """``data`` with the features that the model was fitted with, made of its raw columns where that is so.

    Columns are found by name in any order; a column that the model needs and ``data`` lacks is refused.
    """
    if model.columns is not None and (model.columns.columns or data.columns is not None):
        if data.columns is None:
            has = "no table of nodes" if data.feature_names == STRUCTURAL_NAMES else "a matrix of features"
            raise InputError(f"the model was fitted on the columns of a table, and {data.name} has {has}")
        if data.columns.transform is not model.columns:
            data = apply_columns(data, model.columns)
    elif model.feature_names == STRUCTURAL_NAMES and data.feature_names != STRUCTURAL_NAMES:
        data = replace(data, x=structural_features(data.graph), feature_names=STRUCTURAL_NAMES, columns=None)
    elif data.columns is not None and data.columns.transform is None:
        raise InputError(f"the model was fitted on raw features: read {data.name} with raw_features=True")
    data = _in_order(data, model.feature_names)
    model.check_features(data.x.shape[1], data.feature_names)
    relations = data.relations
    if model.relations and relations is None:
        names = ", ".join(model.relations)
        raise InputError(f"the model was fitted on the relations {names}, and {data.name} has none")
    if relations is not None and relations.factors is None:
        if not model.relations:
            return replace(data, relations=None)
        graph = relations.graph(data.graph, model.relations)
        strange = [name for name in relations.names if name not in model.relations]
        said = [
            f"The relation {name!r} is new to the model; its edges count as they are." for name in strange
        ]
        origin = replace(data.provenance, notes=(*data.provenance.notes, *said))
        kept = replace(relations, factors=model.relations)
        data = replace(data, graph=graph, relations=kept, provenance=origin)
    return data


def _in_order(data: GraphData, wanted: Sequence[str] | None) -> GraphData:
    """``data`` with these features, if it has all of them under their names; else as it is."""
    mine = data.feature_names
    if wanted is None or mine is None or tuple(mine) == tuple(wanted) or not set(wanted) <= set(mine):
        return data
    place = {name: k for k, name in enumerate(mine)}
    x = data.x.to_dense()[:, [place[name] for name in wanted]]
    return replace(data, x=compact(x), feature_names=tuple(wanted))


@dataclass(frozen=True)
class Drift:
    """How far the columns and the edges of a graph are from those that a model was fitted on."""

    columns: tuple[ColumnDrift, ...]
    neighbours_before: float | None
    """Mean number of neighbours of a node in the graph of the fit."""
    neighbours_now: float
    weights: tuple[bool | None, bool] = (None, False)
    """Whether the edges of the fit had weights, and whether these have; None: not known."""

    @property
    def edges_moved(self) -> bool:
        """Whether nodes have more than half as many neighbours again, or fewer by that factor."""
        before = self.neighbours_before
        if before is None or not before:
            return False
        return not 1 / _NOTABLE_RATIO <= self.neighbours_now / before <= _NOTABLE_RATIO

    @property
    def sentences(self) -> tuple[str, ...]:
        """What moved, one sentence each."""
        said = [f"Drift in the column {column.sentence}." for column in self.columns if column.notable]
        if self.edges_moved:
            said.append(
                f"Drift in the edges: a node has {self.neighbours_now:.3g} neighbours on average, "
                f"{self.neighbours_before:.3g} in the graph of the fit."
            )
        before, now = self.weights
        if before is not None and before != now:
            had, has = ("weights", "none") if before else ("no weights", "some")
            said.append(f"The edges of the fit had {had}; these have {has}.")
        return tuple(said)

    def to_json(self) -> dict[str, Any]:
        """All numbers."""
        return {
            "columns": [column.to_json() for column in self.columns],
            "neighbours_before": self.neighbours_before,
            "neighbours_now": self.neighbours_now,
            "weights_before": self.weights[0],
            "weights_now": self.weights[1],
        }


_NOTABLE_RATIO = 1.5


def drift_of(model: SavedModel, data: GraphData) -> Drift:
    """How far ``data`` is from what the model was fitted on."""
    columns = () if data.columns is None or data.columns.transform is None else tuple(data.columns.drift())
    nodes = max(data.graph.num_nodes, 1)
    weights = (model.weighted, data.graph.is_weighted)
    return Drift(columns, model.mean_neighbours, 2 * data.graph.num_edges / nodes, weights)


_SAME = 0.9
"""Share of the labels that must agree for nodes with the names of a fit's nodes to be those nodes."""
_BEYOND_CHANCE = 0.25
"""How far that share must be on the way from what is expected of unrelated labels (0) to all of them (1)."""


def nodes_of_fit(frame: polars.DataFrame) -> dict[str, tuple[str, str | float | None]]:
    """Role and label of each node by its name, from a fit's own predictions."""
    return dict(zip(frame["node"].cast(str), zip(frame["role"], frame["known"], strict=True), strict=True))


def with_roles(
    table: Predictions, fitted: Mapping[str, tuple[str, str | float | None]] | None
) -> Predictions:
    """The predictions with the part that each node had in the fit, and a mark for those that had none.

    Nodes are found by their names. Where they have none, in the graph or in the fit, the first rows are the
    nodes of the fit, in their order, if they have the same features, or the same edges and labels; nodes in
    further rows are new. Where labels are others than in the fit, beyond a few, or agree no better than those
    of unrelated nodes would, all are other nodes, which have names or features in common by accident.

    Parameters
    ----------
    table : Predictions
    fitted : mapping, optional
        What :func:`nodes_of_fit` found; None: nothing is known of the fit.
    """
    if fitted is None:
        return replace(table, same_rows=None)
    count, by_rows = len(table.node_ids), table.same_rows is not None
    same = table.same_rows(len(fitted)) if table.same_rows is not None else True
    found: list[tuple[str, str | float | None] | None] = [None] * count
    if not by_rows:
        found = [fitted.get(str(node)) for node in table.node_ids]
    elif same is not False:
        found[: len(fitted)] = fitted.values()
    agree = _agree(
        [
            (label, part[1])
            for label, part in zip(table.frame()["known"], found, strict=True)
            if part is not None and part[1] is not None and label is not None
        ]
    )
    notes = table.notes
    if agree is False or not (same or agree):
        why = f"Nodes have {'the rows' if by_rows else 'names'} of the fit's nodes but other labels"
        if agree is not False:
            why = "Nodes have no names, here or in the fit, and nothing else shows that they were in it"
        found, notes = [None] * count, (*notes, f"{why}, so they are taken for other nodes.")
    return replace(
        table,
        roles=["unlabelled" if part is None else part[0] for part in found],
        new=np.array([part is None for part in found], dtype=np.bool_),
        notes=notes,
        same_rows=None,
    )


def _agree(labels: Sequence[tuple[str | float, str | float]]) -> bool | None:
    """Whether labels of nodes are those of a fit, up to a few; None where that cannot be told.

    It cannot where there are none, or where all are one class.

    Examples
    --------
    >>> _agree([("a", "a"), ("b", "b")]), _agree([("a", "a"), ("b", "a")]), _agree([("a", "a")] * 9)
    (True, False, None)
    >>> _agree([("no", "no")] * 96 + [("yes", "no"), ("no", "yes")])
    False
    """
    if not labels:
        return None
    mine, theirs = (Counter(side) for side in zip(*labels, strict=True))
    agree = sum(_same(*pair) for pair in labels) / len(labels)
    chance = sum(mine[label] * theirs[label] for label in mine) / len(labels) ** 2
    if chance == 1:
        return None
    return agree >= _SAME and agree - chance >= _BEYOND_CHANCE * (1 - chance)


def _same(mine: str | float, theirs: str | float | None) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-5)
    return mine == theirs


def agreement(table: Predictions, data: GraphData, *, only_new: bool = False) -> dict[str, Any]:
    """How far predictions agree with the labels that the graph has itself; empty where it has none.

    Labels that the model was trained or validated with are left out, and ``seen`` counts them; where there
    are no others, they are scored after all, and ``only_seen`` is True. ``known`` counts what is scored;
    ``right`` says how many agree, where each node has one class, and the task's metric, unless it is the
    accuracy, stands under its own name: None where it has no value. ``foreign`` counts labels that are no
    class of the model.
    """
    task = table.task
    if table.known is None:
        return {}
    asked = torch.from_numpy(table.new) if only_new and table.new is not None else torch.tensor(True)
    known = task.known(torch.from_numpy(table.known))
    foreign = int((data.known & ~known & asked).sum())
    seen = torch.tensor([role in ("train", "val") for role in table.roles], dtype=torch.bool)
    scored, left = known & ~seen & asked, known & seen & asked
    others: dict[str, Any] = {"foreign": foreign} if foreign else {}
    if not bool(scored.any()):
        scored = left
        others |= {"only_seen": True} if bool(left.any()) else {}
    elif bool(left.any()):
        others["seen"] = int(left.sum())
    if not bool(scored.any()):
        return others
    truth, said = (torch.from_numpy(values)[scored] for values in (table.known, table.probabilities))
    right = task.correct(truth, said)
    name = task.metric.name
    score = {} if name == "accuracy" else {name: task.scores(truth, said).get(name)}
    count = int(scored.sum())
    return {"known": count, **({} if right is None else {"right": int(right.sum())}), **score, **others}


def member_probabilities(
    configs: Sequence[RunConfig],
    states: Sequence[Mapping[str, Tensor]],
    graph: Graph,
    x: Features,
    task: Task,
    *,
    device: str | torch.device = "cpu",
) -> Tensor:
    """Mean probabilities [N, L] of an ensemble on any graph, as ``task`` calibrates them.

    There is one configuration per member. The members need not have seen the graph.
    """
    chosen = choose_device(device)
    graph = graph.to(chosen)
    if chosen.type != "cpu":
        x = x.to(chosen).to_dense()
    total = torch.zeros(graph.num_nodes, task.num_outputs, device=chosen)
    for config, state in zip(configs, states, strict=True):  # one in memory at a time
        (module,) = load_members(config, [state], x.shape[1], task.num_outputs)
        module.to(chosen)
        with torch.no_grad():
            logits = module(x, graph)
        total += task.probabilities(logits)
    return task.calibrated((total / len(states)).cpu())
