"""One kind of model, tuned on validation labels and trained with several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from plap.data.tasks import Task
from plap.errors import InputError
from plap.graph import Graph
from plap.memory import MemoryBudget
from plap.models import find_model
from plap.nn.linear import Features
from plap.training import (
    Ensemble,
    RunConfig,
    SearchSpace,
    SplitLike,
    Trial,
    build_module,
    train_ensemble,
    tune,
)
from plap.training.loop import ProgressCallback
from plap.training.pieces.distributed import choose_device

Tune = Literal["auto"] | None

_SEARCH = 0.8
"""Share of the time of a fit that the search takes, about."""


class NothingTrainedError(InputError):
    """There is no model: training was stopped, or it diverged, before it got anywhere."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model that was found."""

    config: RunConfig
    trials: tuple[Trial, ...]
    """What the search tried; nothing where there was none."""
    ensemble: Ensemble
    interrupted: bool = False


def fit_model(
    graph: Graph,
    x: Features,
    y: Tensor,
    split: SplitLike,
    base: RunConfig,
    *,
    fixed: Mapping[str, Any] | None = None,
    search: bool = True,
    budget: int | Literal["auto"] = "auto",
    seeds: int = 8,
    num_classes: int | None = None,
    memory_budget: MemoryBudget = None,
    progress: ProgressCallback | None = None,
) -> Fitted:
    """Search the model's own grid around ``base``, then train the winner with several seeds.

    Parameters
    ----------
    graph, x, y, split, num_classes, memory_budget, progress :
        As for :func:`plap.training.train_runs`; the test nodes of the split are never looked at.
    base : RunConfig
        Model, seed, and everything that is not searched.
    fixed : mapping, optional
        Fields that the search must leave at these values.
    search : bool
        Whether to search at all; if not, ``base`` with ``fixed`` is trained.
    budget : int or "auto"
        As for :func:`plap.training.tune`.
    seeds : int
        Members of the ensemble.
    """
    fixed = dict(fixed or {})
    base = base.with_values(**fixed)
    trials: tuple[Trial, ...] = ()
    interrupted = False
    options = {"num_classes": num_classes, "memory_budget": memory_budget}
    if search:
        found = tune(
            graph,
            x,
            y,
            split,
            space=_space(base, fixed),
            seed=base.seed,
            budget=budget,
            progress=_part(progress, 0.0, _SEARCH),
            **options,  # type: ignore[arg-type]
        )
        base, trials, interrupted = found.best, found.trials, found.interrupted
    report = _part(progress, _SEARCH if search else 0.0, 1.0)
    ensemble = train_ensemble(graph, x, y, split, base, seeds, progress=report, **options)
    interrupted = interrupted or any(run.interrupted for run in ensemble.runs)
    return checked(Fitted(base, trials, ensemble, interrupted))


def checked(fitted: Fitted) -> Fitted:
    """Refuse a model of which no epoch came to anything."""
    if all(run.best_epoch == 0 for run in fitted.ensemble.runs):
        if fitted.interrupted:
            raise NothingTrainedError("training was stopped before its first epoch, so there is no model")
        raise NothingTrainedError(
            f"training with a learning rate of {fitted.config.lr:g} diverges at once, try a smaller one"
        )
    return fitted


def _part(progress: ProgressCallback | None, begin: float, end: float) -> ProgressCallback | None:
    """``progress`` for the part of a fit from ``begin`` to ``end``."""
    if progress is None:
        return None
    return lambda state: progress(replace(state, done=begin + (end - begin) * state.done))


def _space(base: RunConfig, fixed: Mapping[str, Any]) -> SearchSpace:
    searched = find_model(base.model).search_grid
    return SearchSpace(base, **{name: (value,) for name, value in fixed.items() if name in searched})


def member_probabilities(
    config: RunConfig,
    states: Sequence[Mapping[str, Tensor]],
    graph: Graph,
    x: Features,
    task: Task,
    *,
    device: str | torch.device = "cpu",
) -> Tensor:
    """Mean probabilities [N, L] of an ensemble on any graph: the members need not have seen it."""
    chosen = choose_device(device)
    graph = graph.to(chosen)
    if chosen.type != "cpu":
        x = x.to(chosen).to_dense()
    total = torch.zeros(graph.num_nodes, task.num_outputs, device=chosen)
    for state in states:
        module = build_module(config, x.shape[1], task.num_outputs)
        try:
            module.load_state_dict(dict(state))
        except RuntimeError:
            raise InputError("the model's weights do not fit its configuration") from None
        module.to(chosen).eval()
        with torch.no_grad():
            logits = module(x, graph)
        total += task.probabilities(logits)
    return (total / len(states)).cpu()
