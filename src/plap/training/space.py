"""Which configurations a search may try."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

from plap.errors import InputError
from plap.training.config import RunConfig

_USED: dict[str, tuple[str, ...]] = {
    "pgnn": ("p", "mu", "K", "lr", "dropout", "weight_decay"),
    "mlp": ("lr", "dropout", "weight_decay"),
    "gcn": ("lr", "dropout", "weight_decay"),
    "sgc": ("lr", "weight_decay"),
    "appnp": ("alpha", "lr", "dropout", "weight_decay"),
    "gprgnn": ("alpha", "dprate", "lr", "dropout", "weight_decay"),
}


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
        for name in _USED[self.base.model]:
            if not getattr(self, name):
                raise InputError(f"the search space has no value for {name}")

    def configs(self) -> list[RunConfig]:
        """All of them, in the order of the grid."""
        names = _USED[self.base.model]
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
