"""What defines a training run: everything that its result depends on, besides the data and the split."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from plap.errors import InputError
from plap.training.catalogue import find_model

StopBy = Literal["accuracy", "loss"]


@dataclass(frozen=True)
class RunConfig:
    """One training run. Fields that the model does not have (``p`` of an MLP) have no effect.

    Examples
    --------
    >>> RunConfig(p=1.5, seed=3).to_dict()["p"]
    1.5
    >>> RunConfig(p=0.5)
    Traceback (most recent call last):
    plap.errors.InputError: p must be a number of at least 1, not 0.5
    """

    model: str = "pgnn"
    """A name of the catalogue; see :func:`plap.training.register_model`."""
    hidden: int = 16
    """Hidden units; of gat those of each head."""
    p: float = 2.0
    mu: float = 0.1
    K: int = 4
    """Propagation steps of sgc, appnp, gprgnn and jknet, and of each p-Laplacian layer."""
    lr: float = 0.01
    weight_decay: float = 5e-4
    dropout: float = 0.5
    alpha: float = 0.1
    """Teleport probability of appnp and jknet, and what gprgnn's coefficients start from."""
    dprate: float = 0.0
    """Dropout before gprgnn's propagation."""
    heads: int = 8
    """Attention heads of gat's first layer, and of all of deep-gat's but the last."""
    layers: int = 3
    """Layers of deep-pgnn and deep-gat."""
    mlp_layers: int = 0
    """Linear layers in front of deep-pgnn's."""
    residual: bool = False
    """Whether deep-pgnn's layers add their input to their output."""
    seed: int = 0
    max_epochs: int = 1000
    patience: int = 200
    """Epochs without improvement on the validation set after which the run ends."""
    stop_by: StopBy = "accuracy"
    """"accuracy": the better validation score (micro-F1 for multi-label data), the lower loss where equal."""

    def __post_init__(self) -> None:
        for name, (kind, allowed, wanted) in _RULES.items():
            value = getattr(self, name)
            right_type = isinstance(value, kind) and not isinstance(value, bool)
            if not right_type or not math.isfinite(value) or not allowed(value):
                raise InputError(f"{name} must be {wanted}, not {value!r}")
            object.__setattr__(self, name, int(value) if kind is numbers.Integral else float(value))
        if not isinstance(self.residual, bool):
            raise InputError(f"residual must be True or False, not {self.residual!r}")
        find_model(self.model)
        if self.stop_by not in get_args(StopBy):
            raise InputError(f"stop_by must be one of {', '.join(get_args(StopBy))}, not {self.stop_by!r}")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """What :meth:`to_dict` gave; fields that are missing have their defaults."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise InputError(f"a run's configuration has no field {unknown[0]!r}")
        return cls(**values)


_Rule = tuple[type, Callable[[Any], bool], str]

_RULES: dict[str, _Rule] = {
    "hidden": (numbers.Integral, lambda v: v >= 1, "an integer of 1 or more"),
    "p": (numbers.Real, lambda v: v >= 1, "a number of at least 1"),
    "mu": (numbers.Real, lambda v: v > 0, "a positive number"),
    "K": (numbers.Integral, lambda v: v >= 1, "an integer of 1 or more"),
    "lr": (numbers.Real, lambda v: v > 0, "a positive number"),
    "weight_decay": (numbers.Real, lambda v: v >= 0, "a number of 0 or more"),
    "dropout": (numbers.Real, lambda v: 0 <= v < 1, "a number of at least 0 and less than 1"),
    "alpha": (numbers.Real, lambda v: 0 <= v <= 1, "a number from 0 to 1"),
    "dprate": (numbers.Real, lambda v: 0 <= v < 1, "a number of at least 0 and less than 1"),
    "heads": (numbers.Integral, lambda v: v >= 1, "an integer of 1 or more"),
    "layers": (numbers.Integral, lambda v: v >= 1, "an integer of 1 or more"),
    "mlp_layers": (numbers.Integral, lambda v: v >= 0, "an integer of 0 or more"),
    "seed": (numbers.Integral, lambda v: 0 <= v < 2**63, "an integer from 0 to 2^63 - 1"),
    "max_epochs": (numbers.Integral, lambda v: v >= 1, "an integer of 1 or more"),
    "patience": (numbers.Integral, lambda v: v >= 1, "an integer of 1 or more"),
}
