"""Booleans to one feature of 0 and 1, and one that marks missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.reading.cells import Cells


@dataclass(frozen=True)
class BooleanEncoder:
    """0 for false, 1 for true; missing values get the share of true in the training rows."""

    share: float
    indicator: bool
    unmarked: ClassVar[str] = "filled with the training share of true"

    @classmethod
    def fit(cls, cells: Cells[NDArray[np.float64]]) -> BooleanEncoder:
        """Learn from training values."""
        values = cells.values[~np.isnan(cells.values)]
        share = float(values.mean()) if values.size else 0.0
        return cls(share, 0 < values.size < cells.values.size)

    @property
    def varies(self) -> bool:
        """Whether both values occur in the training rows."""
        return 0 < self.share < 1

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature."""
        return [column] * self.varies + [f"{column} is missing"] * self.indicator

    def write(self, cells: Cells[NDArray[np.float64]], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; no value can be unseen."""
        missing = np.isnan(cells.values)
        if self.varies:
            out[:, 0] = np.where(missing, self.share, cells.values)
        if self.indicator:
            out[:, -1] = missing
        return 0

    def describe(self) -> str:
        """Say what became of the booleans."""
        if self.varies:
            return "0 and 1"
        return "all training values are equal, only what is missing is marked" if self.indicator else ""

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"share": self.share, "indicator": self.indicator}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> BooleanEncoder:
        """Return the encoder that ``to_json`` described."""
        share = entries.number("share")
        if not 0 <= share <= 1:
            entries.fail("share")
        return cls(share, entries.flag("indicator"))
