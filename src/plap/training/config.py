"""What defines a training run: everything that its result depends on, besides the data and the split."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from plap.checks import near_miss
from plap.errors import InputError
from plap.models import ModelKind, Parameters, choice, find_model, integer, number
from plap.models.parameters import apply_rules

StopBy = Literal["accuracy", "loss"]
Stopping = Literal["best", "progress", "published"]

ADAM_BETA1, ADAM_BETA2, ADAM_EPS = 0.9, 0.999, 1e-8
"""Adam's constants, the defaults of ``torch.optim.Adam``; the same for every run."""


@dataclass(frozen=True, init=False)
class RunConfig:
    """One training run: a model, its own parameters, and how it is trained.

    Parameters of the model are given as keywords beside those of training, or as one object; a keyword that
    belongs to neither is refused.

    Parameters
    ----------
    model : str
        One of :func:`plap.models.model_names`; see :func:`plap.models.register_model`.
    parameters : Parameters, optional
        An instance of the model's own dataclass; by default with that class's default values.
    lr, weight_decay, seed, max_epochs, patience, stop_by, stopping :
        See the fields below.
    **values :
        Fields of the model's parameters; they override those of ``parameters``.

    Examples
    --------
    >>> config = RunConfig(model="pgnn", p=1.5, lr=0.05)
    >>> config.parameters.p, config.lr
    (1.5, 0.05)
    >>> config.with_values(mu=1, seed=3).parameters.mu
    1.0
    >>> RunConfig(p=0.5)
    Traceback (most recent call last):
    plap.errors.InputError: p must be a number of at least 1, not 0.5
    >>> RunConfig(model="mlp", p=1.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    plap.errors.InputError: mlp has no field 'p': the model's are hidden, dropout; training's are lr, ...
    """

    model: str
    parameters: Any
    """The model's own dataclass, such as :class:`plap.models.pgnn.PGNNParameters`."""
    lr: float = number(0.01, above=0)
    weight_decay: float = number(5e-4, at_least=0)
    seed: int = integer(0, at_least=0, at_most=2**63 - 1)
    max_epochs: int = integer(1000)
    patience: int = integer(200)
    """Epochs without improvement on the validation set after which the run ends."""
    stop_by: StopBy = choice("accuracy", "accuracy", "loss")
    """"accuracy": by validation score, whichever metric that is (see :class:`plap.data.Task`), ties broken by
    the lower loss."""
    stopping: Stopping = choice("best", "best", "progress", "published")
    """What patience counts from. "best": the best epoch so far. "progress": the last epoch with a better
    score or a lower loss than any before, so that a run which still learns does not end at chance.
    "published": as in the paper's code, no early stopping, and of equally good epochs the first is kept."""

    def __init__(self, model: str = "pgnn", parameters: Parameters | None = None, **values: Any) -> None:
        kind = find_model(model)
        for name in values:
            if name not in kind.fields and name not in OF_TRAINING:
                raise InputError(unknown_field(kind, name))
        if parameters is not None and not isinstance(parameters, kind.parameters):
            given = type(parameters).__name__
            raise InputError(f"the parameters of {model} are {kind.parameters.__name__}, not {given}")
        own = {name: values[name] for name in kind.fields if name in values}
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "parameters", dataclasses.replace(parameters or kind.parameters(), **own))
        for entry in dataclasses.fields(self):
            if entry.name in OF_TRAINING:
                object.__setattr__(self, entry.name, values.get(entry.name, entry.default))
        apply_rules(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value: the class of a user's parameters need not be importable where it is loaded."""
        return RunConfig.from_dict, (self.to_dict(),)

    def with_values(self, **values: Any) -> RunConfig:
        """The same run with some fields, of the model or of training, replaced."""
        mine = {name: getattr(self, name) for name in OF_TRAINING}
        return RunConfig(self.model, self.parameters, **mine | values)

    def value(self, name: str) -> Any:
        """A field, whether of the model or of training.

        Examples
        --------
        >>> RunConfig(K=6).value("K"), RunConfig(lr=0.2).value("lr")
        (6, 0.2)
        """
        kind = find_model(self.model)
        if name in kind.fields:
            return getattr(self.parameters, name)
        if name not in OF_TRAINING:
            raise InputError(unknown_field(kind, name))
        return getattr(self, name)

    @property
    def uses_edges(self) -> bool:
        """Whether the model looks at edges.

        Examples
        --------
        >>> RunConfig("pgnn").uses_edges, RunConfig("mlp").uses_edges
        (True, False)
        """
        hops = find_model(self.model).hops
        return hops is None or hops(self.parameters) > 0

    @property
    def unused(self) -> tuple[str, ...]:
        """Parameters of the model that have no effect beside the others.

        Examples
        --------
        >>> RunConfig(penalty="mcp").unused
        ('p',)
        """
        unused = find_model(self.model).unused
        return () if unused is None else unused(self.parameters)

    def to_dict(self) -> dict[str, Any]:
        """All fields side by side as plain numbers and strings, for JSON.

        Examples
        --------
        >>> list(RunConfig(model="sgc").to_dict())
        ['model', 'K', 'lr', 'weight_decay', 'seed', 'max_epochs', 'patience', 'stop_by', 'stopping']
        """
        own = asdict(self.parameters)
        return {"model": self.model, **own, **{name: getattr(self, name) for name in OF_TRAINING}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """The configuration that :meth:`to_dict` described; missing fields take their defaults."""
        return cls(**values)


OF_TRAINING = tuple(
    entry.name for entry in dataclasses.fields(RunConfig) if entry.name not in ("model", "parameters")
)
"""Fields of a configuration that every model has."""


def unknown_field(kind: ModelKind[Any], name: str) -> str:
    """The error message for a field that a configuration of this model does not have."""
    hint = near_miss(name, (*kind.fields, *OF_TRAINING))
    own = f"the model's are {', '.join(kind.fields)}" if kind.fields else "the model has none"
    return f"{kind.name} has no field {name!r}{hint}: {own}; training's are {', '.join(OF_TRAINING)}"
