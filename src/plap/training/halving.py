"""The rules of successive halving: how many candidates a rung trains, their order, and who goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.data.tasks import Task
from plap.errors import InputError
from plap.graph import Graph
from plap.nn.linear import Features
from plap.training.config import RunConfig
from plap.training.loop import epoch_cost
from plap.training.results import RunResult
from plap.training.space import SearchSpace

_MOST_EPOCHS, LEAST_EPOCHS = 11_000, 3_000
"""Epochs of a search with budget "auto": for each model on a small graph, in all on a large one."""
_SMALL = 40_000
"""Work of an epoch, see :func:`usual_budget`, up to which a search for one model has all of its epochs."""

_EPOCHS = (100, 300)
"""Epochs of a run in the first rungs; the last rung trains by the configuration's own limits."""

FINAL_EPOCHS = 400
"""Epochs that a run of the last rung takes on average, with early stopping."""

_OF_LOSS = 0.125
"""What a standard deviation of the losses counts in a ranking, in units of 1 / √(validation nodes): a quarter
of the largest standard error that a share of so many nodes can have."""

_STANDARD_ERRORS, _MORE_ERRORS = 3.0, 1.25
"""What puts a whole space out of the running after few epochs: so many standard errors of the best score, and
so many times the errors of the best."""


_AS_GOOD = 2.0
"""Standard errors by which the score of a finalist may be behind the winner's."""
_FEW_NODES = 250
"""Validation nodes below which finalists are hardly told apart: a standard error is about three points. It is
better to train more of them then than each with more seeds."""


class Rung(NamedTuple):
    """A round of a search."""

    configs: int
    epochs: int
    """Of a run; 0: as its configuration says."""
    seeds: int


def check_budget(budget: Any) -> None:
    """Refuse a budget that is neither "auto" nor a positive number of epochs."""
    if budget != "auto" and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise InputError(f"budget must be auto or a positive number of epochs, not {budget!r}")


def seeds_per_finalist(val_nodes: int, *, bagged: bool) -> int:
    """Seeds of each finalist, so that none wins by a lucky one.

    Where few nodes validate, or every seed draws them in its own way (bagged), there are more finalists.
    """
    return 2 if bagged or val_nodes < _FEW_NODES else 3


def usual_budget(graph: Graph, x: Features, models: int = 1) -> int:
    """Epochs of a search that chooses among so many models, by default: fewer where an epoch costs more.

    A search for pGNN alone takes about two minutes on two cores up to a million entries; with deep networks
    it took five on a graph of that size.
    """
    stored = x._nnz() if isinstance(x, Tensor) and x.layout != torch.strided else getattr(x, "nnz", 0)
    work = graph.num_entries + graph.num_nodes + (stored or x.shape[0] * x.shape[1] // 8) // 8
    return int(min(models * _MOST_EPOCHS, max(LEAST_EPOCHS, _MOST_EPOCHS * _SMALL / work)))


def plan_rungs(budget: int, available: int, spaces: int, seeds: int) -> list[Rung]:
    """Rungs with equal shares of the budget; a rung that would eliminate no configuration is left out."""
    share = budget / (len(_EPOCHS) + 1)
    finalists = max(2, spaces, round(share / (seeds * FINAL_EPOCHS)))
    sizes = [max(finalists, round(share / epochs)) for epochs in _EPOCHS]
    rungs: list[Rung] = []
    for size, epochs, following in zip(sizes, _EPOCHS, [*sizes[1:], finalists], strict=True):
        if min(size, available) > following:
            rungs.append(Rung(min(size, available), epochs, 1))
    return [*rungs, Rung(min(finalists, available), 0, seeds)]


def hurried_rungs(epochs: int) -> list[Rung]:
    """A third of the epochs for a choice among a few, the rest for the best of them; see ``time_limit``."""
    short = min(_EPOCHS[0], max(5, epochs // 12))
    few = epochs // 3 // short
    return [*([Rung(few, short, 1)] if few > 1 else []), Rung(1, 0, 1)]


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
    groups = _alike([lasting(results[k : k + seeds]) for k in range(0, len(results), seeds)])
    scores = np.array([np.mean([run.val_score for run in group]) for group in groups])
    losses = np.array([np.mean([_lowest_loss(run) for run in group]) for group in groups])
    usual = np.array([config not in added for config in configs])
    finite = losses[np.isfinite(losses) & (usual if usual.any() else True)]
    spread = float(finite.std()) if finite.size else 0.0
    if spread > 0:
        standard = np.nan_to_num((losses - finite.mean()) / spread, posinf=finite.size)
        merits = scores - _OF_LOSS / max(1, val_nodes) ** 0.5 * standard
    else:
        merits = scores
    order = sorted(range(len(configs)), key=lambda k: (merits[k], -losses[k]), reverse=True)
    without = [k for k in order if scores[k] >= scores[order[0]] and not configs[k].uses_edges]
    return [configs[k] for k in dict.fromkeys((*without[:1], *order))]


def _alike(groups: list[list[RunResult]]) -> list[list[RunResult]]:
    """The runs with the seeds that all configurations have, if there are any: others may be luckier."""
    seeds = [{run.config.seed for run in group} for group in groups if group]
    common = set.intersection(*seeds) if seeds else set()
    if not common:
        return groups
    return [[run for run in group if run.config.seed in common] for group in groups]


def lasting(runs: Sequence[RunResult]) -> list[RunResult]:
    """The seeds of a configuration without those that a time limit cut off long before the others ended."""
    longest = max((run.epochs for run in runs), default=0)
    return [run for run in runs if not run.out_of_time or 2 * run.epochs >= longest]


def as_good(best: Sequence[RunResult], other: Sequence[RunResult], val_nodes: int, task: Task) -> bool:
    """Whether validation cannot tell another finalist from the best one, whose score has a standard error.

    Scores that are no shares count by their distance from a perfect one.
    """
    if not best or not other:
        return False
    score, second = (float(np.mean([run.val_score for run in runs])) for runs in (best, other))
    return score - second <= _AS_GOOD * _standard_error(score, val_nodes, task)


def behind(
    configs: Sequence[RunConfig],
    results: Sequence[RunResult],
    seeds: int,
    space_of: Mapping[RunConfig, int],
    val_nodes: int,
    task: Task,
) -> set[int]:
    """Numbers of the spaces that are out of the running: their best is clearly worse than the best of all.

    Clearly: by three standard errors, and with a quarter more errors (or the same of what a score lacks to a
    perfect one), because what is a little behind after few epochs may still catch up. A space with a run that
    was cut off is not judged.
    """
    scores = np.array([result.val_score for result in results]).reshape(-1, seeds).mean(1)
    best: dict[int, float] = {}
    for config, score in zip(configs, scores, strict=True):
        best[space_of[config]] = max(float(score), best.get(space_of[config], -math.inf))
    top = max(best.values())
    if not math.isfinite(top):
        return set()
    margin = max(
        _STANDARD_ERRORS * _standard_error(top, val_nodes, task),
        (_MORE_ERRORS - 1) * (_perfect(task) - top),
    )
    cut_off = {space_of[configs[k // seeds]] for k, result in enumerate(results) if result.out_of_time}
    return {number for number, score in best.items() if top - score > margin} - cut_off


def _perfect(task: Task) -> float:
    return 1.0 if task.metric.higher_is_better else 0.0


def _standard_error(score: float, val_nodes: int, task: Task) -> float:
    """Of a share of so many nodes; of a score that is no share, its distance from a perfect one over √n."""
    if not task.metric.share:
        return (_perfect(task) - score) / math.sqrt(max(1, val_nodes))
    # by Agresti and Coull: a perfect score has an error too
    known = (score * val_nodes + 2) / (val_nodes + 4)
    return math.sqrt(max(known * (1 - known), 0.0) / max(1, val_nodes))


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
    least: int = 1,
) -> list[RunConfig]:
    """The first of these, as many as cost what ``places`` runs of the first space's base do.

    The best of every space is among them whatever it costs, and so are as many as ``least``. What was drawn
    in addition takes no places away: of a model without edges only the best goes on beside the others, and
    who would have a place without those in ``added`` is there too.
    """

    def first(candidates: Sequence[RunConfig]) -> set[RunConfig]:
        if len(spaces) == 1:
            return {*candidates[:places]}
        best = {*{space_of[config]: config for config in reversed(candidates)}.values()}
        counted = [config for config in candidates if config.uses_edges] or candidates
        chosen = [config for config in counted if config in best]
        left = places * epoch_cost(spaces[0].base, nodes) - sum(epoch_cost(c, nodes) for c in chosen)
        for config in counted:
            cost = epoch_cost(config, nodes)
            if config not in best and cost <= left:
                chosen.append(config)
                left -= cost
        more = [config for config in counted if config not in chosen]
        return {*best, *chosen, *more[: max(0, least - len(chosen))]}

    kept = first(ranked) | first([config for config in ranked if config not in added])
    return [config for config in ranked if config in kept]
