"""In what the runs of a batch differ, as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plap.training.config import RunConfig
from plap.training.masks import dropout_masks


@dataclass(frozen=True, eq=False)
class RunSettings:
    """The parameters of R runs of one model; what :class:`plap.models.stacked.StackedSettings` asks for."""

    configs: Sequence[RunConfig]
    dtype: torch.dtype
    propagation_budget: int | None = None
    """Bytes that pGNN's steps may allocate; activations are computed again where these do not suffice."""
    _columns: dict[tuple[str, torch.dtype], Tensor] = field(default_factory=dict)

    @property
    def seeds(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Seeds of the runs, [R]."""
        return np.array([config.seed for config in self.configs], dtype=np.uint64)

    def column(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """A parameter of every run, [R]."""
        key = (name, dtype or self.dtype)
        if key not in self._columns:
            values = [getattr(config.parameters, name) for config in self.configs]
            self._columns[key] = torch.tensor(values, dtype=key[1])
        return self._columns[key]

    def common(self, name: str) -> Any:
        """A parameter that all runs have in common."""
        return getattr(self.configs[0].parameters, name)

    def masks(self, epoch: int, layer: int, rates: Tensor, shape: tuple[int, int]) -> Tensor:
        """Dropout masks [R, *shape] of an epoch."""
        flat = dropout_masks(self.seeds, epoch, layer, rates, shape[0] * shape[1])
        return flat.view(-1, *shape)
