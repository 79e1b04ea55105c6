"""Vectors to one standardised feature per component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.encoding.number import CLIP
from plap.data.columns.reading.cells import Cells

SPARSE = 0.5
"""Vectors of which more than this share is 0 keep their zeros: they are scaled and not centred."""


@dataclass(frozen=True, eq=False)
class VectorEncoder:
    """Each component standardised; those that are constant in the training rows are left out.

    Sparse vectors, such as counts of words, are divided by the largest training value instead, so that
    zeros stay zeros. A missing vector or component gets the training mean (sparse: 0).
    """

    width: int
    kept: NDArray[np.int64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    sparse: bool
    indicator: bool
    unmarked: ClassVar[str] = "filled with the training mean"

    @classmethod
    def fit(cls, cells: Cells[NDArray[np.float64]]) -> VectorEncoder:
        """Learn from training vectors [rows, width]."""
        present = cells.values[~cells.missing]
        width = present.shape[1]
        indicator = 0 < len(present) < len(cells.values)
        if not len(present):
            none = np.zeros(0)
            return cls(width, np.zeros(0, dtype=np.int64), none, none, False, False)
        known = ~np.isnan(present)
        values = np.where(known, present, 0.0)
        number = np.maximum(known.sum(axis=0), 1)
        sparse = bool((values == 0).mean() > SPARSE)
        largest = np.abs(values).max(axis=0)
        unit = np.where(largest > 0, largest, 1.0)
        values /= unit
        mean = values.sum(axis=0) / number
        spread = np.sqrt((np.where(known, values - mean, 0.0) ** 2).sum(axis=0) / number)
        low = np.where(known, values, np.inf).min(axis=0)
        high = np.where(known, values, -np.inf).max(axis=0)
        kept = np.flatnonzero((low < high) & (spread > 0))
        centre = np.zeros(width) if sparse else mean * unit
        scale = unit if sparse else spread * unit
        kept = kept[np.isfinite(centre[kept]) & np.isfinite(scale[kept]) & (scale[kept] > 0)]
        return cls(width, kept, centre[kept], scale[kept], sparse, indicator)

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature."""
        return [f"{column}[{k}]" for k in self.kept] + [f"{column} is missing"] * self.indicator

    def write(self, cells: Cells[NDArray[np.float64]], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]."""
        values = cells.values[:, self.kept]
        with np.errstate(over="ignore"):
            moved = np.clip((values - self.centre) / self.scale, -CLIP, CLIP)
        out[:, : self.kept.size] = np.where(np.isnan(values), 0.0, moved)
        if self.indicator:
            out[:, -1] = cells.missing
        return 0

    def describe(self) -> str:
        """Say what became of the vectors."""
        if not self.kept.size:
            return "all training vectors are equal" if self.indicator else ""
        how = "scaled by its largest value, mostly zeros" if self.sparse else "standardised"
        constant = self.width - self.kept.size
        left_out = f", {constant} constant ones left out" if constant else ""
        return f"{self.width} components, each {how}{left_out}"

    def to_json(self) -> dict[str, Any]:
        """Return what is no array."""
        return {"width": self.width, "sparse": self.sparse, "indicator": self.indicator}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the statistics of the components."""
        return {"kept": self.kept, "centre": self.centre, "scale": self.scale}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> VectorEncoder:
        """Return the encoder that ``to_json`` and ``tensors`` described."""
        width = entries.count("width", 1)
        kept, centre, scale = (tensors.get(key, np.zeros((0, 0))) for key in ("kept", "centre", "scale"))
        shapes = kept.ndim == 1 and kept.shape == centre.shape == scale.shape
        if not shapes or kept.dtype != np.int64 or centre.dtype != np.float64 or scale.dtype != np.float64:
            entries.fail("tensors")
        inside = bool((kept >= 0).all() and (kept < width).all() and (np.diff(kept) > 0).all())
        if not inside or not np.isfinite(centre).all() or not (np.isfinite(scale) & (scale > 0)).all():
            entries.fail("tensors")
        return cls(width, kept, centre, scale, entries.flag("sparse"), entries.flag("indicator"))
