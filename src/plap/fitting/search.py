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
from plap.models import find_model, suitable_models
from plap.nn.linear import Features
from plap.training import (
    Ensemble,
    RunConfig,
    RunResult,
    SearchSpace,
    SplitLike,
    Trial,
    architectures,
    train_ensemble,
    tune,
)
from plap.training.ensemble import combine
from plap.training.halving import usual_budget
from plap.training.loop import ProgressCallback
from plap.training.results import part_of
from plap.training.space import count_models, with_measurements
from plap.training.stopping import Deadline, TimeLimit

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
    """Of the winner."""
    trials: tuple[Trial, ...]
    """What the search tried; nothing where there was none."""
    ensemble: Ensemble
    interrupted: bool = False
    out_of_time: bool = False
    """Whether a time limit ended the search or the training."""

    @property
    def runners_up(self) -> list[RunConfig]:
        """The configurations of the members that are not the winner's, each with the winner's seed."""
        others = (run.config for run in self.members if not self.is_of_winner(run))
        return list(dict.fromkeys(config.with_values(seed=self.config.seed) for config in others))

    @property
    def members(self) -> list[RunResult]:
        """The runs that predict: those with an epoch that came to something."""
        return [run for run in self.ensemble.runs if run.best_epoch > 0]

    def is_of_winner(self, run: RunResult) -> bool:
        """Whether a member of the ensemble has the winner's configuration."""
        return run.config.with_values(seed=self.config.seed) == self.config


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
    time_limit: TimeLimit = None,
) -> Fitted:
    """Search the model's own grid, then train the winner with several seeds, on the whole graph.

    Where validation cannot tell runners-up from the winner, the members take turns at these configurations.

    Parameters
    ----------
    graph, x, y, split, num_classes, task, progress :
        As for :func:`plap.training.train_runs`; the test nodes of the split are never looked at.
    settings : FitSettings
    model : str
        A name of :mod:`plap.models`.
    time_limit : number of seconds, or text such as "10m", optional
        Of search and training together; see :func:`plap.training.tune`. A first model is trained whatever it
        takes.
    """
    deadline = Deadline.of(time_limit)
    progress = _timed(progress, deadline)
    config = settings.config(model)
    trials: tuple[Trial, ...] = ()
    known: tuple[RunResult, ...] = ()
    interrupted = False
    memory = settings.memory_budget
    if not settings.search:
        (config,) = configs = with_measurements([config], graph, x)
    else:
        spaces = _spaces(config, settings, graph, y, split)
        usual = settings.budget == "auto" and settings.time_limit == "auto"
        found = tune(
            graph, x, y, split, space=spaces, seed=config.seed,
            budget=usual_budget(graph, x, count_models(spaces)) if usual else settings.budget,
            num_classes=num_classes, task=task, device=settings.device, memory_budget=memory,
            progress=part_of(progress, 0.0, _SEARCH), time_limit=deadline,
        )  # fmt: skip
        config, trials, interrupted, known = found.best, found.trials, found.interrupted, found.finalists
        configs = [config, *found.runners_up]
        # whoever interrupts does not wait for another training, and after a time limit there is none
        if interrupted or (deadline.passed and not known) or any(run.out_of_time for run in known):
            runs = known if known and not interrupted else (found.best_run,)
            in_turn = sorted(runs, key=lambda run: (run is not runs[0], run.config.seed))[: settings.members]
            task = training_task(y, [split], graph.num_nodes, num_classes, task)
            ensemble = combine(in_turn, task)
            return checked(Fitted(runs[0].config, trials, ensemble, interrupted, not interrupted))
    report = part_of(progress, _SEARCH if settings.search else 0.0, 1.0)
    ensemble = train_ensemble(
        graph, x, y, split, configs, settings.members, known=known, num_classes=num_classes, task=task,
        device=settings.device, memory_budget=memory, progress=report, time_limit=deadline,
    )  # fmt: skip
    interrupted = interrupted or any(run.interrupted for run in ensemble.runs)
    return checked(Fitted(config, trials, ensemble, interrupted, out_of_time=deadline.passed))


def checked(fitted: Fitted) -> Fitted:
    """Refuse a model of which no epoch came to anything."""
    if all(run.best_epoch == 0 for run in fitted.ensemble.runs):
        if fitted.interrupted:
            raise StoppedTooEarlyError("training was stopped before its first epoch, so there is no model")
        raise NothingTrainedError(
            f"training with a learning rate of {fitted.config.lr:g} diverges at once, try a smaller one"
        )
    return fitted


def _timed(progress: ProgressCallback | None, deadline: Deadline) -> ProgressCallback | None:
    """``progress`` that is at least as far as the clock."""
    if progress is None or not deadline.is_set:
        return progress
    whole = max(deadline.left, 1e-9)
    return lambda state: progress(replace(state, done=max(state.done, 1 - deadline.left / whole)))


def _spaces(
    config: RunConfig, settings: FitSettings, graph: Graph, y: Tensor, split: SplitLike
) -> list[SearchSpace]:
    """The model's grid around ``config`` without the fixed fields, and what else a fit may choose from."""
    widen = settings.hidden is None and "hidden" not in settings.fixed
    if config.model != MODEL:
        return architectures(config, widen=widen)
    if settings.models != "auto":
        others = [name for name in settings.models if name != MODEL]
    else:
        others = [] if settings.fixed else suitable_models(graph, y, split.train)
    return [
        SearchSpace(config, widen=widen, **settings.tried),
        *(space for name in others for space in architectures(settings.config(name), widen=widen)),
    ]


def searched_values(config: RunConfig) -> dict[str, Any]:
    """The fields that a search of this model may choose, by name, without those that have no effect."""
    kind = find_model(config.model)
    names = dict.fromkeys(
        name for grid in (kind.search_grid, *(form.grid for form in kind.architectures)) for name in grid
    )
    if kind.wide is not None:
        names["hidden"] = None
    return {name: config.value(name) for name in names if name not in config.unused}
