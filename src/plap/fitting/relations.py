"""How much each of several relations says: one positive weight each, learned before the search."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import softplus

from plap.data.dataset import GraphData
from plap.data.splits import Split
from plap.data.tasks import Task
from plap.fitting.settings import FitSettings
from plap.nn import PGNN
from plap.training.modules import seeded

_EPOCHS, _PATIENCE = 200, 40
_LR, _FACTOR_LR = 0.02, 0.1
_HIDDEN, _P, _MU, _K = 16, 2.0, 0.1, 2


def weigh_relations(data: GraphData, split: Split, task: Task, settings: FitSettings) -> GraphData:
    """``data`` with its relations weighted by what they say about the labels; itself if it has one relation.

    A small pGNN (p = 2) is trained together with one positive factor per relation, by training labels, and
    stopped by validation labels. The factors, of mean 1, then belong to the edge weights: every model and
    rival of the fit has them.
    """
    if data.relations is None or data.relations.factors is not None:
        return data
    relations = data.relations
    factors = _learned(data, split, task, settings)
    found = {name: round(float(value), 4) for name, value in zip(relations.names, factors, strict=True)}
    return replace(
        data, graph=relations.graph(data.graph, found), relations=replace(relations, factors=found)
    )


def _learned(data: GraphData, split: Split, task: Task, settings: FitSettings) -> Tensor:
    assert data.relations is not None
    with seeded(settings.seed):
        model = PGNN(data.x.shape[1], _HIDDEN, task.num_outputs, p=_P, mu=_MU, K=_K)
        raw = torch.zeros(len(data.relations.names), requires_grad=True)
        optimiser = torch.optim.Adam(
            [
                {"params": model.parameters(), "lr": _LR, "weight_decay": 5e-4},
                {"params": [raw], "lr": _FACTOR_LR},
            ]
        )
        best, kept, since = float("inf"), torch.ones(raw.shape[0]), 0
        for _ in range(min(_EPOCHS, settings.max_epochs)):
            model.train()
            graph = data.graph.with_weight(data.relations.combined(_factors(raw)))
            loss = task.losses(model(data.x, graph)[split.train], data.y[split.train]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            model.eval()
            with torch.no_grad():
                now = _factors(raw)
                logits = model(data.x, data.graph.with_weight(data.relations.combined(now)))[split.val]
                judged = float(task.losses(logits, data.y[split.val]).mean())
            since += 1
            if judged < best:
                best, kept, since = judged, now, 0
            if since >= _PATIENCE:
                break
    return kept


def _factors(raw: Tensor) -> Tensor:
    """Positive factors of mean 1."""
    positive = softplus(raw) + 1e-3
    return positive / positive.mean()
