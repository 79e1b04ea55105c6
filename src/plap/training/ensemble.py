"""Configurations trained with several seeds; predictions are made from the mean probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from plap.checks import check_integer
from plap.data.tasks import Task, training_task
from plap.errors import InputError
from plap.graph import Graph
from plap.nn.linear import Features
from plap.split_masks import BaggedSplit, SplitLike
from plap.training.config import RunConfig
from plap.training.halving import lasting
from plap.training.results import RunResult
from plap.training.workers import train_side_by_side


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Runs that predict together."""

    runs: tuple[RunResult, ...]
    probabilities: Tensor
    """[N, L], of every node: the mean over the runs. For numbers, predictions [N, 1]."""
    task: Task

    @property
    def predictions(self) -> Tensor:
        """Most probable class [N], 0 and 1 as floats [N, L] for several labels per node, or numbers [N]."""
        return self.task.decode(self.probabilities)


def train_ensemble(
    graph: Graph,
    x: Features,
    y: Tensor,
    split: SplitLike,
    config: RunConfig | Sequence[RunConfig],
    seeds: int | Sequence[int] = 8,
    *,
    known: Sequence[RunResult] = (),
    **options: Any,
) -> Ensemble:
    """Train a configuration with each of several seeds, all of them together.

    Parameters
    ----------
    graph, x, y, split :
        As for :func:`plap.training.train_runs`; a :class:`plap.split_masks.BaggedSplit` is divided anew by
        every member.
    config : RunConfig, or a sequence of them
        Of several, each is trained with the first seed, then each with the next, and so on; a number of
        members on a bagged split have a seed each, and the configurations take turns.
    seeds : int or sequence of int
        A number n stands for n members, with the seeds from that of the configuration on.
    known : sequence of RunResult
        Runs on the same data, such as those of a search, which are not trained again.
    **options :
        Further keywords of :func:`plap.training.train_runs`.

    Returns
    -------
    Ensemble
        Runs that were interrupted before their first epoch are left out of the mean. Those that were cut off
        by a time limit are left out altogether if there are others, and otherwise if they had hardly begun.
    """
    configs = [config] if isinstance(config, RunConfig) else list(config)
    if not configs:
        raise InputError("config must be a RunConfig or a list of at least one")
    if isinstance(seeds, Sequence):
        wanted = [each.with_values(seed=seed) for seed in seeds for each in configs]
    else:
        members = check_integer("seeds", seeds, 1)
        per_seed = 1 if isinstance(split, BaggedSplit) else len(configs)  # a division for each member
        turns = itertools.islice(itertools.cycle(configs), members)
        wanted = [each.with_values(seed=each.seed + k // per_seed) for k, each in enumerate(turns)]
    if not wanted:
        raise InputError("seeds must contain at least one seed")
    task = training_task(
        y, [split], graph.num_nodes, options.pop("num_classes", None), options.pop("task", None)
    )
    done = {run.config: run for run in known}
    missing = [each for each in wanted if each not in done]
    if missing:
        trained = train_side_by_side(graph, x, y, missing, split, task=task, **options)
        done |= {run.config: run for run in trained}
    runs = [done[each] for each in wanted]
    complete = [run for run in runs if not run.out_of_time]
    return combine(complete or lasting([run for run in runs if run.best_epoch > 0]) or runs, task)


def held_out(ensemble: Ensemble, split: SplitLike) -> tuple[Tensor, Tensor]:
    """Probabilities [N, L] that are honest for some nodes whose labels are known, and which these are, [N].

    Those are the validation nodes, unless the split is bagged: then all nodes that some member was not
    trained on, with the mean over just these members. (Weights of relations, a number each, were learned
    before, by the first division.)
    """
    if not isinstance(split, BaggedSplit):
        return ensemble.probabilities, split.val
    runs = [run for run in ensemble.runs if run.best_epoch > 0]
    unseen = torch.stack([split.of(run.config.seed).val for run in runs])
    each = ensemble.task.probabilities(torch.stack([run.logits for run in runs]))
    counts = unseen.sum(0)
    means = (each * unseen.unsqueeze(2)).sum(0) / counts.clamp(min=1).unsqueeze(1)
    return torch.where(counts.unsqueeze(1) > 0, means, ensemble.probabilities), counts > 0


def combine(runs: Sequence[RunResult], task: Task) -> Ensemble:
    """The ensemble of finished runs.

    Examples
    --------
    >>> from plap.data import csbm, split
    >>> from plap.training import train_runs
    >>> data = csbm(phi=0.5, n=100, f=20, seed=1)
    >>> configs = [RunConfig(max_epochs=3, seed=seed) for seed in range(2)]
    >>> runs = train_runs(data.graph, data.x, data.y, configs, split(data))
    >>> combine(runs, data.task).probabilities.shape
    torch.Size([100, 2])
    """
    trained = [run for run in runs if run.best_epoch > 0] or list(runs)
    logits = torch.stack([run.logits for run in trained])
    return Ensemble(tuple(runs), task.probabilities(logits).mean(0), task)
