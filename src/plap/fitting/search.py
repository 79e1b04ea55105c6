"""One kind of model, tuned on validation labels and trained with several seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from plap.data.tasks import Task, training_task
from plap.errors import InputError
from plap.fitting.settings import MODEL, FitSettings
from plap.graph import Graph
from plap.models import find_model
from plap.nn.linear import Features
from plap.training import (
    Ensemble,
    RunConfig,
    SearchSpace,
    SplitLike,
    Trial,
    architectures,
    train_ensemble,
    tune,
)
from plap.training.ensemble import combine
from plap.training.loop import ProgressCallback

Announce = Callable[[str], ProgressCallback | None]
"""Told the name of a method whose training begins; returns what to tell its progress to."""

_SEARCH = 0.8
"""Share of the time of a fit that the search takes, about."""


class NothingTrainedError(InputError):
    """There is no model: training was stopped, or it diverged, before it got anywhere."""


class StoppedTooEarlyError(NothingTrainedError):
    """Ctrl-C came before there was a model."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model that was found."""

    config: RunConfig
    trials: tuple[Trial, ...]
    """What the search tried; nothing where there was none."""
    ensemble: Ensemble
    interrupted: bool = False


Train = Callable[[str, ProgressCallback | None], Fitted]
"""Trains the model of this name."""


def fit_model(
    graph: Graph,
    x: Features,
    y: Tensor,
    split: SplitLike,
    settings: FitSettings,
    model: str = MODEL,
    *,
    num_classes: int | None = None,
    task: Task | None = None,
    progress: ProgressCallback | None = None,
) -> Fitted:
    """Search the model's own grid, then train the winner with several seeds, on the whole graph.

    Parameters
    ----------
    graph, x, y, split, num_classes, task, progress :
        As for :func:`plap.training.train_runs`; the test nodes of the split are never looked at.
    settings : FitSettings
    model : str
        A name of :mod:`plap.models`.
    """
    config = settings.config(model)
    trials: tuple[Trial, ...] = ()
    interrupted = False
    memory = settings.memory_budget
    if settings.search:
        found = tune(
            graph, x, y, split, space=_spaces(config, settings), seed=config.seed, budget=settings.budget,
            num_classes=num_classes, task=task, device=settings.device, memory_budget=memory,
            progress=_part(progress, 0.0, _SEARCH),
        )  # fmt: skip
        config, trials, interrupted = found.best, found.trials, found.interrupted
        if interrupted:  # whoever interrupts does not wait for another training
            task = training_task(y, [split], graph.num_nodes, num_classes, task)
            return checked(Fitted(found.best_run.config, trials, combine([found.best_run], task), True))
    report = _part(progress, _SEARCH if settings.search else 0.0, 1.0)
    ensemble = train_ensemble(
        graph, x, y, split, config, settings.members,
        num_classes=num_classes, task=task, device=settings.device, memory_budget=memory, progress=report,
    )  # fmt: skip
    interrupted = interrupted or any(run.interrupted for run in ensemble.runs)
    return checked(Fitted(config, trials, ensemble, interrupted))


def checked(fitted: Fitted) -> Fitted:
    """Refuse a model of which no epoch came to anything."""
    if all(run.best_epoch == 0 for run in fitted.ensemble.runs):
        if fitted.interrupted:
            raise StoppedTooEarlyError("training was stopped before its first epoch, so there is no model")
        raise NothingTrainedError(
            f"training with a learning rate of {fitted.config.lr:g} diverges at once, try a smaller one"
        )
    return fitted


def _part(progress: ProgressCallback | None, begin: float, end: float) -> ProgressCallback | None:
    """``progress`` for the part of a fit from ``begin`` to ``end``."""
    if progress is None:
        return None
    return lambda state: progress(replace(state, done=begin + (end - begin) * state.done))


def _spaces(config: RunConfig, settings: FitSettings) -> list[SearchSpace]:
    """The model's grid around ``config`` without the fixed fields, and what else a fit may choose from."""
    if config.model != MODEL:
        return [SearchSpace(config)]
    searched = find_model(MODEL).search_grid
    fixed = {name: (value,) for name, value in settings.fixed.items() if name in searched}
    others = [name for name in settings.models if name != MODEL]
    return [
        SearchSpace(config, **fixed),
        *(space for name in others for space in architectures(settings.config(name))),
    ]


def searched_values(config: RunConfig) -> dict[str, Any]:
    """The fields that a search of this model may choose, by name."""
    kind = find_model(config.model)
    names = dict.fromkeys(name for grid in (kind.search_grid, *kind.variants) for name in grid)
    return {name: config.value(name) for name in names}
