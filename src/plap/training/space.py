"""Which configurations a search may try."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from plap.errors import InputError
from plap.models import Grid, find_model
from plap.training.config import OF_TRAINING, RunConfig, unknown_field


class SearchSpace:
    """A grid: the values that some fields of a configuration may take; all others are those of ``base``.

    Parameters
    ----------
    base : RunConfig, optional
    **values : sequences
        Fields of the model or of training and the values to try, in place of or beside those of the model's
        own search grid.

    Examples
    --------
    >>> len(SearchSpace().configs()), len(SearchSpace(RunConfig(model="mlp")).configs())
    (864, 12)
    >>> len(SearchSpace(RunConfig(model="mlp"), hidden=(16, 64), lr=(0.01,)).configs())
    8
    """

    def __init__(self, base: RunConfig | None = None, **values: Sequence[Any]) -> None:
        self.base = base or RunConfig()
        kind = find_model(self.base.model)
        for name, tried in values.items():
            if name not in kind.fields and name not in OF_TRAINING:
                raise InputError(unknown_field(kind, name))
            if not tried:
                raise InputError(f"the search space has no value for {name}")
        self.grid: Grid = {**kind.search_grid, **{name: tuple(tried) for name, tried in values.items()}}
        """The values of each field that varies."""

    def configs(self) -> list[RunConfig]:
        """All of them, in the order of the grid."""
        return grid_configs(self.base, self.grid)

    def draw(self, count: int, seed: int) -> list[RunConfig]:
        """``count`` different configurations (or all).

        Every value of the field that the model wants even (p of a pGNN) comes equally often, up to one.
        """
        configs = self.configs()
        even = find_model(self.base.model).even_over
        order = np.random.default_rng(seed).permutation(len(configs))
        taken: dict[Any, int] = {}
        ranked = []
        for position, index in enumerate(order):
            value = None if even is None else configs[index].value(even)
            ranked.append((taken.get(value, 0), position, index))
            taken[value] = taken.get(value, 0) + 1
        return [configs[index] for _, _, index in sorted(ranked)[:count]]


def grid_configs(base: RunConfig, grid: Grid) -> list[RunConfig]:
    """``base`` with every combination of the grid's values; the last field varies fastest."""
    return [
        base.with_values(**dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
    ]
