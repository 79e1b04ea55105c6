"""What validation says of the candidates of a search: their order, and who goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

import numpy as np

from plap.data.tasks import Task
from plap.models import find_model
from plap.training.config import RunConfig
from plap.training.loop import epoch_cost
from plap.training.results import RunResult
from plap.training.space import SearchSpace

_OF_LOSS = 0.125
"""What a standard deviation of the losses counts in a ranking, in units of 1 / √(validation nodes): a quarter
of the largest standard error that a share of so many nodes can have."""


def uses_edges(config: RunConfig) -> bool:
    """Whether a model with this configuration looks at edges."""
    hops = find_model(config.model).hops
    return hops is None or hops(config.parameters) > 0


def ranked(
    configs: Sequence[RunConfig],
    results: Sequence[RunResult],
    seeds: int,
    val_nodes: int,
    added: Set[RunConfig] = frozenset(),
) -> list[RunConfig]:
    """Best first, by mean validation score over the seeds, less a little for the loss; see :func:`tune`.

    The loss of a run is its lowest, because the one at its best epoch is a matter of chance. How far losses
    differ is measured without the ``added`` configurations, which do not change the order of the others. A
    model without edges that has the score of the best one comes before it.
    """
    scores = np.array([result.val_score for result in results]).reshape(-1, seeds).mean(1)
    losses = np.array([_lowest_loss(result) for result in results]).reshape(-1, seeds).mean(1)
    usual = np.array([config not in added for config in configs])
    finite = losses[np.isfinite(losses) & (usual if usual.any() else True)]
    spread = float(finite.std()) if finite.size else 0.0
    if spread > 0:
        standard = np.nan_to_num((losses - finite.mean()) / spread, posinf=finite.size)
        merits = scores - _OF_LOSS / max(1, val_nodes) ** 0.5 * standard
    else:
        merits = scores
    order = sorted(range(len(configs)), key=lambda k: (merits[k], -losses[k]), reverse=True)
    without = [k for k in order if scores[k] >= scores[order[0]] and not uses_edges(configs[k])]
    return [configs[k] for k in dict.fromkeys((*without[:1], *order))]


def as_good(best: Sequence[RunResult], other: Sequence[RunResult], val_nodes: int, task: Task) -> bool:
    """Whether mean scores differ by at most two standard errors of a share of so many nodes.

    Scores that are no shares count by their distance from a perfect one. A model that uses edges is not as
    good as one that does without them.
    """
    if not best or not other or uses_edges(other[0].config) > uses_edges(best[0].config):
        return False
    score, second = (float(np.mean([run.val_score for run in runs])) for runs in (best, other))
    perfect = 1.0 if task.metric.higher_is_better else 0.0
    deviation = math.sqrt(max(score * (1 - score), 0.0)) if task.metric.share else perfect - score
    return score - second <= 2 * deviation / math.sqrt(max(1, val_nodes))


def _lowest_loss(result: RunResult) -> float:
    losses = result.history.val_loss
    losses = losses[losses.isfinite()]
    return float(losses.min()) if losses.numel() else float("inf")


def survivors(
    ranked: Sequence[RunConfig],
    added: Set[RunConfig],
    space_of: Mapping[RunConfig, int],
    places: int,
    spaces: Sequence[SearchSpace],
    nodes: int,
) -> list[RunConfig]:
    """The first of these, as many as cost what ``places`` runs of the first space's base do.

    The best of every space is among them whatever it costs. What was drawn in addition, ``added``, takes no
    places away: those who would have them without it are there too.
    """

    def first(candidates: Sequence[RunConfig]) -> set[RunConfig]:
        if len(spaces) == 1:
            return {*candidates[:places]}
        chosen = {*{space_of[config]: config for config in reversed(candidates)}.values()}
        left = places * epoch_cost(spaces[0].base, nodes) - sum(epoch_cost(c, nodes) for c in chosen)
        for config in candidates:
            cost = epoch_cost(config, nodes)
            if config not in chosen and cost <= left:
                chosen.add(config)
                left -= cost
        return chosen

    kept = first(ranked) | first([config for config in ranked if config not in added])
    return [config for config in ranked if config in kept]
