"""What a fit is asked for, besides the data and the split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from plap.checks import check_choice, check_flag, check_integer
from plap.data.tasks import ClassWeight
from plap.data.tasks.regression import Loss
from plap.errors import InputError
from plap.models import find_model, model_names
from plap.training import RunConfig, SearchSpace
from plap.training.config import StopBy, Stopping
from plap.training.halving import check_budget
from plap.training.pieces.model_on_pieces import EvaluateOn
from plap.training.stopping import Deadline, parse_duration

MODEL = "pgnn"
"""The model that a fit is for; see :mod:`plap.models`."""


_USUAL_LIMIT = 480.0
"""Seconds; reading, predicting and writing come on top."""


@dataclass(frozen=True)
class PieceSettings:
    """How to train in pieces instead of on the whole graph."""

    parts: int | None = None
    """Number of METIS parts of the graph; None: the graphs of a collection."""
    parts_per_batch: int = 1
    """Parts, or graphs, per piece."""
    pieces_per_step: int = 1
    device: str = "auto"
    evaluation: EvaluateOn = "auto"
    checkpoint_every: int = 10
    """Epochs between checkpoints."""
    resume: bool = False

    def __post_init__(self) -> None:
        check_choice("evaluation", self.evaluation, EvaluateOn)


@dataclass(frozen=True)
class FitSettings:
    """How to search, how long to train, what to compare with."""

    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration that the search must not change. A value without effect is refused, such as
    ``gamma`` where the penalty is the power."""
    search: bool = True
    models: tuple[str, ...] | Literal["auto"] = "auto"
    """What the search may choose from: :data:`MODEL`, and further names of
    :mod:`plap.models`, such as deep-pgnn. ``fixed`` is for :data:`MODEL` alone. "auto": where linked training
    nodes tend to differ in class also mlp, and deep-pgnn unless the graph is large; nothing else if something
    is fixed."""
    budget: int | Literal["auto"] = "auto"
    """Epochs that the search may spend, over all runs."""
    seeds: int | None = None
    """Number of ensemble members; 8 by default, 1 in pieces."""
    bagging: bool = True
    """Whether every member of an ensemble divides training and validation nodes anew, where these were drawn
    at random (by ``plap.data.split``, stratified or chien), classes are predicted, and no prediction sets are
    asked for. The model then learns from the labels of both; temperature and threshold are learned from the
    members that did not see a node. With few labels that is worth several points of accuracy."""
    hidden: int | None = None
    """Hidden units of all models. None: each model's own number, 16 for most; the best of a search is
    tried once more with 64 then."""
    max_epochs: int = 1000
    patience: int = 200
    stop_by: StopBy = "accuracy"
    stopping: Stopping = "progress"
    """What patience counts from, see :class:`plap.training.RunConfig`."""
    seed: int = 0
    time_limit: float | str | None = "auto"
    """Time limit for search and training, of the model and its baselines together: seconds, or text such as
    "10m"; None: no limit. "auto": eight minutes, which the default search needs on large graphs only; a
    custom limit also makes the search as wide as its time allows."""
    memory_budget: int | str | None = None
    device: str = "auto"
    """Where to train: auto, cpu, cuda, cuda:N or mps; see :func:`plap.training.train_runs`."""
    metric: str | None = None
    """What the search, early stopping and the headline go by, see :data:`plap.data.METRICS`. None: accuracy;
    where a class has 80 % of the labels, balanced accuracy, or average precision if one of two classes has
    less than 10 %; micro-F1 for several labels per node; R² for numbers."""
    class_weight: ClassWeight = "auto"
    """Class weights in the training loss: "balanced" makes all classes count the same; None; or weights by
    name. "auto": balanced where a class has 80 % of the labels, unless the metric is accuracy or log loss."""
    loss: Loss = "huber"
    """For numbers."""
    conformal: float | None = None
    """Coverage of prediction sets (of intervals, for numbers), such as 0.9; None: no sets."""
    rivals: tuple[str, ...] = ("mlp", "boosting", "labels", "majority")
    """What the model is compared with: names of :data:`plap.fitting.comparison.RIVALS` and of models. MLP and
    boosted trees use the features alone, label propagation the edges alone."""
    pieces: PieceSettings | None = None
    """None: on the whole graph."""

    def __post_init__(self) -> None:
        for name in ("rivals", "models"):
            value = getattr(self, name)
            if isinstance(value, str) and (name, value) != ("models", "auto"):
                object.__setattr__(self, name, (value,))
        if self.seeds is not None:
            check_integer("seeds", self.seeds, 1)
        check_budget(self.budget)
        check_flag("bagging", self.bagging)
        if self.conformal is not None and not 0 < self.conformal < 1:
            raise InputError(f"conformal must be a coverage between 0 and 1, not {self.conformal!r}")
        if self.loss not in get_args(Loss):
            raise InputError(f"loss must be one of {', '.join(get_args(Loss))}, not {self.loss!r}")
        if self.time_limit not in ("auto", None):
            parse_duration(self.time_limit)
            if self.pieces is not None:
                raise InputError("time_limit does not go with training in pieces")
        names = () if self.models == "auto" else self.models
        for name in names:
            if find_model(name).pair_states is None:  # the page shows which edges the model trusts
                searched = [known for known in model_names() if find_model(known).pair_states]
                raise InputError(
                    f"models may be {', '.join(searched)}, not {name}; rivals compares with {name}"
                )
        if names and MODEL not in names:
            raise InputError(f"models must include {MODEL}; rivals compares with {', '.join(names)}")

    @property
    def members(self) -> int:
        """Number of ensemble members."""
        return self.seeds or (8 if self.pieces is None else 1)

    @property
    def most_hidden(self) -> int:
        """Hidden units of the model that is found, at most."""
        own: int = self.config(MODEL).value("hidden")
        return own if self.hidden else max(own, find_model(MODEL).wide or 0)

    def start_clock(self) -> Deadline:
        """When search and training must end, if they begin now: to be asked once per fit."""
        if self.time_limit == "auto":
            return Deadline.of(_USUAL_LIMIT if self.pieces is None else None)
        return Deadline.of(self.time_limit)

    @property
    def said_of_time(self) -> str:
        """What to say of a fit that the clock ended."""
        if self.time_limit == "auto":
            return (
                f"Search and training stopped at the default limit of {_USUAL_LIMIT / 60:.0f} minutes; "
                "change it with --time."
            )
        return f"Training ended at the time limit ({self.time_limit}); more time would allow a wider search."

    def config(self, model: str) -> RunConfig:
        """The configuration of ``model`` that a search starts from; ``fixed`` concerns :data:`MODEL` only."""
        given = {} if self.hidden is None else {"hidden": self.hidden}
        config = RunConfig(
            model,
            **{
                **(given if "hidden" in find_model(model).fields else {}),
                "seed": self.seed,
                "max_epochs": self.max_epochs,
                "patience": self.patience,
                "stop_by": self.stop_by,
                "stopping": self.stopping,
                **(self.fixed if model == MODEL else {}),
            },
        )
        if model == MODEL and self.fixed:
            self._refuse_unused(config)
        return config

    @property
    def tried(self) -> dict[str, tuple[Any, ...]]:
        """What is fixed, as the only values that a search of :data:`MODEL` tries."""
        searched = find_model(MODEL).search_grid
        return {name: (value,) for name, value in self.fixed.items() if name in searched}

    def _refuse_unused(self, config: RunConfig) -> None:
        """Refuse a fixed value that has no effect in any configuration that may be chosen."""
        searches = self.search and self.pieces is None
        configs = SearchSpace(config, widen=False, **self.tried).configs() if searches else [config]
        for name in self.fixed:
            if all(name in each.unused for each in configs):
                decides = next(field for field in find_model(MODEL).even_fields if field != name)
                values = " or ".join(dict.fromkeys(repr(each.value(decides)) for each in configs))
                raise InputError(f"{name} has no effect where {decides} is {values}")
