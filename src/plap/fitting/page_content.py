"""From a comparison to what its page and the terminal show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.data.tasks import Multiclass
from plap.fitting.artifacts.saved_model import current_versions
from plap.fitting.comparison import Comparison, Method
from plap.fitting.search import searched_values
from plap.graph import Graph
from plap.insight.members import evaluating, members_of
from plap.insight.reliance import column_importance, neighbour_help
from plap.insight.trust import can_be_judged, edge_trust
from plap.models import find_model
from plap.reporting.fit_content import (
    ClassRow,
    ColumnRow,
    ConfusionMatrix,
    DatasetFacts,
    EdgeRow,
    FitReport,
    NeighbourFacts,
    NeighbourRow,
    NodeRow,
    RelationRow,
    Score,
    TrainingRun,
    TrialRow,
    finding,
)
from plap.training import RunConfig

_ROWS = 20
MOST_JUDGED = 100_000
"""Edges beyond which as many are drawn at random and judged."""
_MOST_SHUFFLED = 20_000_000
"""Numbers that may go through the model to measure columns and neighbours: a few seconds."""
_FEWEST_ATTACKED = 5
"""Edges below which ``plap attack``, which changes up to a tenth of them, changes none."""
_MEMBERS_OF_SAMPLE = 1
"""Members of the ensemble that judge the edges of a sample."""


def page_content(comparison: Comparison, trust: Tensor | None) -> FitReport:
    """What the page and the terminal show; ``trust`` is what :func:`judged_trust` says."""
    data, fitted = comparison.data, comparison.fitted
    metric = comparison.task.metric
    scores = _scores(comparison)
    single = comparison.task.one_class_per_node
    return FitReport(
        dataset=_dataset(comparison),
        finding=_finding(comparison, scores),
        scores=scores,
        metric=metric.label,
        share=metric.share,
        higher_is_better=metric.higher_is_better,
        confusion=_confusion(comparison) if single else None,
        per_class=_per_class(comparison) if single else (),
        runs=[
            TrainingRun(
                f"seed {run.config.seed}" + ("" if fitted.is_of_winner(run) else ", runner-up"),
                run.history.train_loss.tolist(),
                run.history.val_loss.tolist(),
                (metric.sign * run.history.val_score).tolist(),
                run.best_epoch,
            )
            for run in fitted.ensemble.runs
        ],
        trials=_trials(comparison),
        uncertain_nodes=_uncertain(comparison) if single else (),
        doubted_edges=() if trust is None else _doubted(comparison, trust),
        judged_edges=MOST_JUDGED if data.graph.num_edges > MOST_JUDGED else None,
        columns=_columns(comparison),
        relations=_relations(comparison),
        attackable=single and _attackable(comparison),
        neighbours=_neighbours(comparison) if single else None,
        chosen=_hyperparameters(fitted.config),
        runners_up=[_hyperparameters(config) for config in fitted.runners_up],
        runner_up_members=sum(not fitted.is_of_winner(run) for run in fitted.members),
        provenance={
            "source": data.provenance.source,
            "graph": data.graph.digest[:16],
            "split": f"{comparison.split.kind}, {comparison.split.digest[:16]}",
            "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "duration": f"{sum(m.seconds for m in comparison.methods):.0f} s",
        },
        versions=current_versions(),
    )


def main_finding(comparison: Comparison) -> str:
    """How good the model is and whether it differs from its rivals, in sentences."""
    return _finding(comparison, _scores(comparison))


def _finding(comparison: Comparison, scores: Sequence[Score]) -> str:
    metric, test = comparison.task.metric, comparison.split.sizes[2]
    better = metric.higher_is_better
    text = finding(scores, test, metric.label, share=metric.share, higher_is_better=better)
    text += _too_few(comparison)
    if comparison.interrupted:
        text += " Training was interrupted by the user; methods that had not finished are left out."
    return _one_answer(comparison) + text


def _too_few(comparison: Comparison) -> str:
    """What must be said where the held-out nodes of a class are too few to judge by."""
    labels = comparison.data.y[comparison.split.test]
    if not comparison.task.metric.too_few(labels):
        return ""
    kinds, sizes = labels.unique(return_counts=True)
    rare, count = comparison.data.class_names[int(kinds[sizes.argmin()])], int(sizes.min())
    are = "is" if count == 1 else "are"
    return (
        f" Only {count} of these nodes {are} {rare!r}: too few for a confidence interval, or to tell whether "
        "one method is better than another."
    )


def _hyperparameters(config: RunConfig) -> dict[str, Any]:
    return {"model": config.model, **searched_values(config)}


def _one_answer(comparison: Comparison) -> str:
    """What must be said first where every node gets the same prediction."""
    said = comparison.task.decode(comparison.model.probabilities)
    if not bool((said == said[0]).all()):
        return ""
    (answer,) = comparison.task.words(said[:1])
    return f"Every node is predicted to be {answer!r}: the model tells no nodes apart. "


def _scores(comparison: Comparison) -> list[Score]:
    name = comparison.task.metric.name
    return [_score(comparison, method, name) for method in comparison.methods]


def _score(comparison: Comparison, method: Method, metric: str) -> Score:
    low, high = (None, None) if method.interval is None else (method.interval.low, method.interval.high)
    differs = None if method is comparison.model else comparison.differs(method)
    return Score(
        method.name, method.scores.get(metric, float("nan")), low, high, method.uses, differs, method.seconds
    )


def _dataset(comparison: Comparison) -> DatasetFacts:
    data = comparison.data
    train, val, test = comparison.split.sizes
    return DatasetFacts(
        data.name, data.graph.num_nodes, data.graph.num_edges, data.x.shape[1], data.num_classes,
        train, val, test, comparison.notes,
    )  # fmt: skip


def _test_pairs(comparison: Comparison) -> tuple[Tensor, Tensor]:
    test = comparison.split.test
    return comparison.data.y[test], comparison.task.decode(comparison.model.probabilities[test])


def _confusion(comparison: Comparison) -> ConfusionMatrix:
    truth, said = _test_pairs(comparison)
    size = comparison.data.num_classes
    counts = torch.bincount(truth * size + said, minlength=size * size).reshape(size, size)
    return ConfusionMatrix(comparison.data.class_names, counts.tolist())


def _per_class(comparison: Comparison) -> list[ClassRow]:
    counts = np.array(_confusion(comparison).counts)
    known = comparison.data.y[comparison.learned_from]
    rows = []
    for k, name in enumerate(comparison.data.class_names):
        right, true, said = counts[k, k], counts[k].sum(), counts[:, k].sum()
        rows.append(
            ClassRow(
                name, int((known == k).sum()), int(true), right / said if said else None,
                right / true if true else None, 2 * right / (true + said) if true else None,
            )
        )  # fmt: skip
    return rows


def _trials(comparison: Comparison) -> list[TrialRow]:
    fitted = comparison.fitted
    chosen = searched_values(fitted.config)
    rows = []
    sign = comparison.task.metric.sign
    for trial in sorted(fitted.trials, key=lambda t: (t.rung, t.val_score), reverse=True):
        config = searched_values(trial.config)
        rows.append(TrialRow(config, sign * trial.val_score, trial.epochs, config == chosen))
    return rows


def _columns(comparison: Comparison) -> list[ColumnRow]:
    """The data dictionary, and the importance of each column where it can be measured in a few seconds."""
    data = comparison.data
    if data.columns is None or data.columns.dictionary is None:
        return []
    lost = _importance(comparison)
    rows = [
        ColumnRow(
            entry.name,
            str(entry.kind),
            len(entry.features),
            entry.missing,
            entry.sentence.removeprefix(f"{entry.name}: "),
            lost.get(entry.name),
        )
        for entry in data.columns.dictionary
    ]
    return sorted(rows, key=lambda row: (row.importance is None, -(row.importance or 0.0)))


def _importance(comparison: Comparison) -> dict[str, float]:
    data, transform = comparison.data, comparison.data.columns and comparison.data.columns.transform
    if not transform or not transform.groups or comparison.interrupted:
        return {}
    if comparison.task.metric.name not in comparison.model.scores:  # as where no test node is of a class
        return {}
    work = len(transform.columns) * (data.graph.num_entries + data.x.shape[0] * data.x.shape[1])
    if work > _MOST_SHUFFLED:
        return {}
    members = members_of(comparison.fitted.ensemble.runs, data.x.shape[1], comparison.task.num_outputs)
    return column_importance(
        members[:_MEMBERS_OF_SAMPLE],
        data.x,
        data.graph,
        transform.groups,
        comparison.task,
        data.y,
        comparison.split.test,
        seed=comparison.settings.seed,
    )


def _relations(comparison: Comparison) -> list[RelationRow]:
    """Each relation with its factor, and how good the model would be without it."""
    data, test, task = comparison.data, comparison.split.test, comparison.task
    relations = data.relations
    if relations is None or relations.factors is None or comparison.interrupted:
        return []
    (member, *_) = members_of(comparison.fitted.ensemble.runs, data.x.shape[1], task.num_outputs)
    rows = []
    for k, name in enumerate(relations.names):
        rest = {other: 0.0 if other == name else factor for other, factor in relations.factors.items()}
        weight = relations.combined(torch.tensor([rest[each] for each in relations.names]))
        source, target = data.graph.edge_index[:, weight > 0]
        graph = Graph.from_edge_index(torch.stack([source, target]), weight[weight > 0], data.graph.num_nodes)
        with evaluating(member):
            said = task.probabilities(member(data.x, graph)[test])
        score = task.scores(data.y[test], said)[task.metric.name]
        edges = int((relations.shares[k] > 0).sum()) // 2
        rows.append(RelationRow(name, edges, relations.factors[name], score))
    return rows


def _attackable(comparison: Comparison) -> bool:
    graph = comparison.data.graph
    if graph.is_weighted or graph.num_self_loops or graph.num_edges < _FEWEST_ATTACKED:
        return False
    return any(run.config.uses_edges for run in comparison.fitted.members)


def _neighbours(comparison: Comparison) -> NeighbourFacts | None:
    """What the neighbours do to held-out nodes, where the model can be evaluated twice in a few seconds."""
    data, test = comparison.data, comparison.split.test
    if comparison.interrupted or data.graph.num_entries + data.x.shape[0] * data.x.shape[1] > _MOST_SHUFFLED:
        return None
    members = members_of(comparison.fitted.ensemble.runs, data.x.shape[1], comparison.task.num_outputs)
    found = neighbour_help(members[:_MEMBERS_OF_SAMPLE], data.x, data.graph, data.y)
    order = torch.where(test, found.gain.abs(), -1.0).argsort(descending=True)[: min(_ROWS, int(test.sum()))]
    rows = [
        NeighbourRow(
            str(data.node_ids[node]),
            data.class_names[int(found.label[node])],
            float(found.with_edges[node]),
            float(found.without_edges[node]),
        )
        for node in order.tolist()
    ]
    helped, harmed = int((found.helped & test).sum()), int((found.harmed & test).sum())
    return NeighbourFacts(int(test.sum()), helped, harmed, rows)


def _uncertain(comparison: Comparison) -> list[NodeRow]:
    """Of nodes that the model was not trained on, those whose prediction is closest to another one."""
    data, names, task = comparison.data, comparison.data.class_names, comparison.task
    assert isinstance(task, Multiclass)
    said = comparison.model.probabilities
    first_of = task.decode(said)
    others = said.scatter(1, first_of[:, None], -1.0).argmax(1)
    order = torch.stack([first_of, others], 1)
    top = said.gather(1, order)
    rows = []
    unseen = (~comparison.learned_from).nonzero().squeeze(1)
    for node in unseen[task.margins(said[unseen]).argsort()[:_ROWS]].tolist():
        first, second = order[node].tolist()
        known = names[int(data.y[node])] if int(data.y[node]) >= 0 else None
        rows.append(
            NodeRow(
                str(data.node_ids[node]),
                names[first],
                float(top[node, 0]),
                names[second],
                float(top[node, 1]),
                known,
            )
        )
    return rows


def judged_trust(comparison: Comparison) -> Tensor | None:
    """Trust of every edge, [entries], or of a sample and NaN elsewhere; None where it is not defined."""
    data, fitted, task = comparison.data, comparison.fitted, comparison.task
    if not (task.one_class_per_node or task.numeric) or not can_be_judged(data.graph):
        return None
    if any(find_model(run.config.model).pair_states is None for run in fitted.members):
        return None
    members = members_of(fitted.ensemble.runs, data.x.shape[1], task.num_outputs)
    many = data.graph.edges_once().shape[0] > MOST_JUDGED
    if many:
        members = members[:_MEMBERS_OF_SAMPLE]
    return edge_trust(
        members, data.x, data.graph, seed=fitted.config.seed, sample=MOST_JUDGED if many else None
    )


def _doubted(comparison: Comparison, trust: Tensor) -> list[EdgeRow]:
    data, once = comparison.data, comparison.data.graph.edges_once()
    source, target = data.graph.edge_index
    said = comparison.task.decode(comparison.model.probabilities)
    rows = []
    judged = once[~trust[once].isnan()]
    for entry in judged[trust[judged].argsort()[:_ROWS]].tolist():
        i, j = int(source[entry]), int(target[entry])
        names = comparison.task.words(said[[i, j]])
        rows.append(
            EdgeRow(
                str(data.node_ids[i]),
                str(data.node_ids[j]),
                str(names[0]),
                str(names[1]),
                float(trust[entry]),
            )
        )
    return rows
