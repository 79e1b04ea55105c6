"""Which configurations a search may try."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

from plap.errors import InputError
from plap.training.catalogue import find_model
from plap.training.config import RunConfig

_ORDER = ("p", "mu", "K", "alpha", "dprate", "lr", "dropout", "weight_decay")
_OF_TRAINING = {"lr", "weight_decay"}


@dataclass(frozen=True)
class SearchSpace:
    """A grid: the values that each field of a configuration may take (the paper's, by default).

    Fields that the model does not have are not varied; all others are those of ``base``.

    Examples
    --------
    >>> len(SearchSpace().configs()), len(SearchSpace(RunConfig(model="mlp")).configs())
    (864, 12)
    """

    base: RunConfig = field(default_factory=RunConfig)
    p: tuple[float, ...] = (1.0, 1.5, 2.0, 2.5)
    mu: tuple[float, ...] = (0.01, 0.1, 0.2, 1.0, 10.0, 100.0)
    """The paper's values and 100, with which the model all but ignores edges that are of no use."""
    K: tuple[int, ...] = (4, 6, 8)
    lr: tuple[float, ...] = (0.001, 0.01, 0.05)
    dropout: tuple[float, ...] = (0.0, 0.5)
    weight_decay: tuple[float, ...] = (0.0, 5e-4)
    alpha: tuple[float, ...] = (0.1, 0.5, 0.9)
    dprate: tuple[float, ...] = (0.0, 0.5)

    def __post_init__(self) -> None:
        for name in self._varied():
            if not getattr(self, name):
                raise InputError(f"the search space has no value for {name}")

    def configs(self) -> list[RunConfig]:
        """All of them, in the order of the grid."""
        names = self._varied()
        return [
            replace(self.base, **dict(zip(names, values, strict=True)))
            for values in itertools.product(*(getattr(self, name) for name in names))
        ]

    def draw(self, count: int, seed: int) -> list[RunConfig]:
        """``count`` different configurations (or all), every value of p equally often up to one."""
        configs = self.configs()
        order = np.random.default_rng(seed).permutation(len(configs))
        taken: dict[float, int] = {}
        ranked = []
        for position, index in enumerate(order):
            p = configs[index].p
            ranked.append((taken.get(p, 0), position, index))
            taken[p] = taken.get(p, 0) + 1
        return [configs[index] for _, _, index in sorted(ranked)[:count]]

    def _varied(self) -> list[str]:
        """Fields that the model uses and the grid has; the K here is that of p-Laplacian layers only."""
        used = _OF_TRAINING | set(find_model(self.base.model).uses)
        if "p" not in used:
            used -= {"K"}
        return [name for name in _ORDER if name in used]
