"""From a comparison to what is written: the table, the model, the metrics, the page."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.artifacts import Predictions, ResultFiles, SavedModel, features_digest
from plap.artifacts.saved_model import current_versions
from plap.fitting.comparison import Comparison, Method
from plap.fitting.edge_trust import edge_trust
from plap.models import find_model
from plap.reporting.fit_content import (
    ClassRow,
    ConfusionMatrix,
    DatasetFacts,
    EdgeRow,
    FitReport,
    NodeRow,
    Score,
    TrainingRun,
    TrialRow,
    finding,
)
from plap.reporting.fit_page import fit_page
from plap.training import RunConfig

_ROWS = 20


def searched_values(config: RunConfig) -> dict[str, Any]:
    """The fields that a search of this model may choose, by name."""
    return {name: config.value(name) for name in find_model(config.model).search_grid}


def make_result(comparison: Comparison, report: FitReport) -> ResultFiles:
    """Everything that ``plap fit`` leaves behind."""
    return ResultFiles(
        predictions(comparison), saved_model(comparison), metrics(comparison), fit_page(report)
    )


def predictions(comparison: Comparison) -> Predictions:
    """One row per node."""
    data, split = comparison.data, comparison.split
    roles = np.full(data.graph.num_nodes, "unlabelled", dtype=object)
    for name in ("train", "val", "test"):
        roles[getattr(split, name).numpy()] = name
    return Predictions(
        data.node_ids, data.task, comparison.model.probabilities.numpy(), roles.tolist(), data.y.numpy()
    )


def saved_model(comparison: Comparison) -> SavedModel:
    """The ensemble, and what it was made for."""
    data, fitted = comparison.data, comparison.model.fitted
    assert fitted is not None
    return SavedModel(
        config=fitted.config.to_dict(),
        states=[run.state for run in fitted.ensemble.runs if run.best_epoch > 0],
        task=data.task,
        num_features=data.x.shape[1],
        feature_names=data.feature_names,
        graph_digest=data.graph.digest,
        features_digest=features_digest(data.x),
    )


def metrics(comparison: Comparison) -> dict[str, Any]:
    """Numbers for a program to read."""
    data, split, fitted = comparison.data, comparison.split, comparison.model.fitted
    assert fitted is not None
    return {
        "graph": data.name,
        "nodes": data.graph.num_nodes,
        "edges": data.graph.num_edges,
        "files": data.provenance.files,
        "notes": data.notes,
        "split": {
            "kind": split.kind,
            "seed": split.seed,
            "index": split.index,
            "rates": split.rates,
            "sizes": split.sizes,
            "digest": split.digest,
        },
        "settings": asdict(comparison.settings),
        "threads": torch.get_num_threads(),
        "methods": [
            {"name": m.name, "uses": m.uses, **m.scores, "interval": m.interval, "seconds": m.seconds}
            for m in comparison.methods
        ],
        "config": fitted.config.to_dict(),
        "members": [
            {
                "seed": run.config.seed,
                "epochs": run.epochs,
                "best_epoch": run.best_epoch,
                "val_score": run.val_score,
            }
            for run in fitted.ensemble.runs
        ],
        "trials": [
            {
                **searched_values(t.config),
                "seed": t.config.seed,
                "rung": t.rung,
                "epochs": t.epochs,
                "val_score": t.val_score,
            }
            for t in fitted.trials
        ],
        "interrupted": comparison.interrupted,
        "versions": current_versions(),
    }


def page(comparison: Comparison) -> FitReport:
    """What the page and the terminal show."""
    data, model = comparison.data, comparison.model
    fitted = model.fitted
    assert fitted is not None
    metric = data.task.metric
    scores = [_score(comparison, method, metric.name) for method in comparison.methods]
    said = metric.label
    single = data.task.one_class_per_node
    text = finding(scores, comparison.split.sizes[2], said)
    if comparison.interrupted:
        text += " Training was interrupted by the user; methods that had not finished are left out."
    return FitReport(
        dataset=_dataset(comparison),
        finding=text,
        scores=scores,
        metric=said,
        confusion=_confusion(comparison) if single else None,
        per_class=_per_class(comparison) if single else (),
        runs=[
            TrainingRun(
                f"seed {run.config.seed}",
                run.history.train_loss.tolist(),
                run.history.val_loss.tolist(),
                run.history.val_score.tolist(),
                run.best_epoch,
            )
            for run in fitted.ensemble.runs
        ],
        trials=_trials(comparison),
        uncertain_nodes=_uncertain(comparison) if single else (),
        doubted_edges=_doubted(comparison) if single else (),
        chosen=searched_values(fitted.config) | {"hidden": fitted.config.value("hidden")},
        provenance={
            "source": data.provenance.source,
            "graph": data.graph.digest[:16],
            "split": f"{comparison.split.kind}, {comparison.split.digest[:16]}",
            "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "duration": f"{sum(m.seconds for m in comparison.methods):.0f} s",
        },
        versions=current_versions(),
    )


def _score(comparison: Comparison, method: Method, metric: str) -> Score:
    low, high = (None, None) if method.interval is None else (method.interval.low, method.interval.high)
    differs = None if method is comparison.model else comparison.differs(method)
    return Score(method.name, method.scores[metric], low, high, method.uses, differs, method.seconds)


def _dataset(comparison: Comparison) -> DatasetFacts:
    data = comparison.data
    train, val, test = comparison.split.sizes
    return DatasetFacts(
        data.name, data.graph.num_nodes, data.graph.num_edges, data.x.shape[1], data.num_classes,
        train, val, test, data.notes,
    )  # fmt: skip


def _test_pairs(comparison: Comparison) -> tuple[Tensor, Tensor]:
    test = comparison.split.test
    return comparison.data.y[test], comparison.model.probabilities[test].argmax(1)


def _confusion(comparison: Comparison) -> ConfusionMatrix:
    truth, said = _test_pairs(comparison)
    size = comparison.data.num_classes
    counts = torch.bincount(truth * size + said, minlength=size * size).reshape(size, size)
    return ConfusionMatrix(comparison.data.class_names, counts.tolist())


def _per_class(comparison: Comparison) -> list[ClassRow]:
    counts = np.array(_confusion(comparison).counts)
    known = comparison.data.y[comparison.split.train]
    rows = []
    for k, name in enumerate(comparison.data.class_names):
        right, true, said = counts[k, k], counts[k].sum(), counts[:, k].sum()
        rows.append(
            ClassRow(
                name, int((known == k).sum()), int(true), right / max(said, 1), right / max(true, 1),
                2 * right / max(true + said, 1),
            )
        )  # fmt: skip
    return rows


def _trials(comparison: Comparison) -> list[TrialRow]:
    fitted = comparison.model.fitted
    assert fitted is not None
    chosen = searched_values(fitted.config)
    rows = []
    for trial in sorted(fitted.trials, key=lambda t: (t.rung, t.val_score), reverse=True):
        config = searched_values(trial.config)
        rows.append(TrialRow(config, trial.val_score, trial.epochs, config == chosen))
    return rows


def _uncertain(comparison: Comparison) -> list[NodeRow]:
    data, names = comparison.data, comparison.data.class_names
    top, order = comparison.model.probabilities.topk(2, dim=1)
    rows = []
    for node in top[:, 0].argsort()[:_ROWS].tolist():
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


def _doubted(comparison: Comparison) -> list[EdgeRow]:
    data, names = comparison.data, comparison.data.class_names
    fitted = comparison.model.fitted
    assert fitted is not None
    trust = edge_trust(fitted, data.graph, data.x, data.num_classes)
    if trust is None:
        return []
    source, target = data.graph.edge_index
    once = (source < target).nonzero().squeeze(1)
    said = comparison.model.probabilities.argmax(1)
    rows = []
    for entry in once[trust[once].argsort()[:_ROWS]].tolist():
        i, j = int(source[entry]), int(target[entry])
        rows.append(
            EdgeRow(
                str(data.node_ids[i]),
                str(data.node_ids[j]),
                names[int(said[i])],
                names[int(said[j])],
                float(trust[entry]),
            )
        )
    return rows
