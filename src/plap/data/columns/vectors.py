"""Columns that hold a vector in each cell: how they are read, and what features they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import Cells, Description, finite, floats, refuse_type, trimmed
from plap.data.columns.numbers import CLIP

VECTOR_NAMES = ("features", "x", "vector", "embedding")
"""A text column of this name may hold vectors without brackets: ``0.5 1 2`` or ``0.5;1;2``."""
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BETWEEN = r"(?:\s*[,;]\s*|\s+)"


@dataclass(frozen=True)
class VectorReader:
    """Reads vectors of one width from lists, arrays, or text such as ``[0.5, 1, 2]``."""

    width: int

    @property
    def problem(self) -> str:
        """What is wrong with a cell that cannot be read."""
        return f"is not a vector of {self.width} numbers"

    def read(self, column: pl.Series) -> Cells[NDArray[np.float64]]:
        """Return float64 [rows, width]; a missing vector is a row of NaN, and so is a bad one."""
        lists = as_lists(column)
        if lists is None:
            refuse_type(column, "vectors of numbers")
        filled = (trimmed(column) if column.dtype == pl.String else lists).is_not_null().to_numpy()
        lists = lists.set((lists.list.len() != self.width).fill_null(False), None)
        values = np.full((column.len(), self.width), np.nan)
        present = lists.is_not_null().to_numpy()
        components = lists.drop_nulls().explode(empty_as_null=False)
        values[present] = floats(components).reshape(-1, self.width)
        values, infinite = finite(values)
        return Cells(values, np.flatnonzero(filled & ~present), infinite)

    def to_json(self) -> dict[str, Any]:
        """Return the width."""
        return {"width": self.width}

    @classmethod
    def from_json(cls, entries: Description) -> VectorReader:
        """Return the reader that ``to_json`` described."""
        return cls(entries.count("width", 1))


def as_lists(column: pl.Series) -> pl.Series | None:
    """Return a column as List(Float64) with null for what is no vector, or None for other types."""
    if isinstance(column.dtype, pl.List | pl.Array):
        inner = column.dtype.inner
        known = isinstance(inner, pl.DataType) and (inner.is_numeric() or inner in (pl.Boolean, pl.Null))
        return column.cast(pl.List(pl.Float64)) if known else None
    if column.dtype == pl.Null:
        return column.cast(pl.List(pl.Float64))
    if column.dtype != pl.String:
        return None
    text = trimmed(column).str.strip_chars("[]() ")
    vector = text.str.contains(rf"^{_NUMBER}(?:{_BETWEEN}{_NUMBER})*$").fill_null(False)
    split = text.set(~vector, None).str.replace_all(_BETWEEN, " ").str.split(" ")
    return split.cast(pl.List(pl.Float64), strict=False)


def vector_width(column: pl.Series) -> int | None:
    """Return the most frequent width if a column holds vectors of at least two numbers, otherwise None.

    Text counts as vectors if nine of ten filled cells are in brackets, if the column's name says so, or if
    all filled cells hold equally many numbers, most of them with decimal points; telephone numbers do not.
    """
    if column.dtype == pl.String:
        cells = trimmed(column).drop_nulls()
        named = column.name.strip().lower() in VECTOR_NAMES
        pattern = rf"^[\[(]?\s*{_NUMBER}{_BETWEEN}" if named else rf"^[\[(]\s*{_NUMBER}"
        if cells.is_empty():
            return None
        if cells.str.contains(pattern).sum() < 0.9 * cells.len() and not _are_plain_vectors(cells):
            return None
    lists = as_lists(column)
    if lists is None:
        return None
    widths = lists.list.len().drop_nulls()
    return int(widths.mode().max()) if widths.len() else None  # type: ignore[arg-type]


def _are_plain_vectors(cells: pl.Series) -> bool:
    """Whether filled cells without brackets are vectors beyond doubt."""
    for some in (cells.head(100), cells):
        if not some.str.contains(rf"^{_NUMBER}(?:{_BETWEEN}{_NUMBER})+$").all():
            return False
        if 2 * some.str.contains(r"\d\.\d").sum() < some.len():
            return False
    return cells.str.count_matches(_BETWEEN).n_unique() == 1


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
