"""Values to features: what is learned from the training rows, and how it is applied."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from plap.data.columns.encoding.boolean import BooleanEncoder
from plap.data.columns.encoding.category import CategoryEncoder
from plap.data.columns.encoding.date import DateEncoder
from plap.data.columns.encoding.number import NumberEncoder
from plap.data.columns.encoding.text import TextEncoder
from plap.data.columns.encoding.vector import VectorEncoder
from plap.data.columns.reading import Cells


class Encoder(Protocol):
    """What one column became of the training rows; each class also has ``fit`` and ``from_json``."""

    unmarked: ClassVar[str]
    """What a missing value becomes where the training rows had none."""

    @property
    def indicator(self) -> bool:
        """Whether a feature marks missing values."""
        ...

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature."""
        ...

    def write(self, cells: Cells[Any], out: NDArray[np.float32]) -> int:
        """Write features [rows, width] into zeros; return how many values were never seen in training."""
        ...

    def describe(self) -> str:
        """Say in a few words what the column became; empty if nothing varies."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return what was learned, without arrays."""
        ...

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that were learned."""
        ...


__all__ = [
    "BooleanEncoder",
    "CategoryEncoder",
    "DateEncoder",
    "Encoder",
    "NumberEncoder",
    "TextEncoder",
    "VectorEncoder",
]
