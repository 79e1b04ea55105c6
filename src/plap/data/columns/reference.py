"""What the training rows of a column looked like, small enough to be stored with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.encoding import BooleanEncoder, CategoryEncoder, Encoder, TextEncoder, VectorEncoder
from plap.data.columns.reading import Cells


@dataclass(frozen=True)
class Reference:
    """Shares of the training rows in bins of a number or in levels of a category.

    ``shares`` has one entry per bin (one more than ``edges``) or per level and one for all other levels,
    and a last one for missing values; they sum to 1.
    """

    edges: tuple[float, ...]
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    median: float
    rows: int

    @classmethod
    def fit(cls, cells: Cells[Any], encoder: Encoder) -> Reference:
        """Summarise training values."""
        if isinstance(encoder, CategoryEncoder):
            levels = encoder.levels[:64]
            return cls((), levels, tuple(_level_shares(cells.values, levels)), 0.0, cells.values.len())
        numbers = drift_numbers(cells, encoder)
        known = numbers[~np.isnan(numbers)]
        if not known.size:
            return cls((), (), (0.0, 1.0), 0.0, numbers.size)
        edges = (0.5,) if isinstance(encoder, BooleanEncoder | TextEncoder) else _edges(known)
        return cls(edges, (), tuple(_bin_shares(numbers, edges)), float(np.median(known)), numbers.size)

    def shares_of(self, cells: Cells[Any], encoder: Encoder) -> tuple[NDArray[np.float64], float]:
        """Return the shares of other rows in the same bins or levels, and their median."""
        if isinstance(encoder, CategoryEncoder):
            return _level_shares(cells.values, self.levels), 0.0
        numbers = drift_numbers(cells, encoder)
        known = numbers[~np.isnan(numbers)]
        return _bin_shares(numbers, self.edges), float(np.median(known)) if known.size else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {
            "edges": list(self.edges), "levels": list(self.levels), "shares": list(self.shares),
            "median": self.median, "rows": self.rows,
        }  # fmt: skip

    @classmethod
    def from_json(cls, entries: Description) -> Reference:
        """Return the summary that ``to_json`` described."""
        edges, levels = entries.numbers("edges"), entries.texts("levels")
        shares = entries.numbers("shares")
        if len(shares) != len(edges) + len(levels) + 2 or (edges and levels):
            entries.fail("shares")
        return cls(edges, levels, shares, entries.number("median"), entries.count("rows", 1))


def drift_numbers(cells: Cells[Any], encoder: Encoder) -> NDArray[np.float64]:
    """Return the one number per row by which a column is compared, NaN where missing.

    Numbers, dates and booleans are themselves; a vector is the root mean square of its features; a text
    is 1 if it has a known word, and 0 if it has none.
    """
    if isinstance(encoder, VectorEncoder | TextEncoder):
        block = np.zeros((len(cells.values), len(encoder.feature_names(""))), dtype=np.float32)
        encoder.write(cells, block)
        block = block[:, : block.shape[1] - encoder.indicator]
        squares = (block**2).sum(axis=1, dtype=np.float64)
        text = isinstance(encoder, TextEncoder)
        size = (squares > 0).astype(np.float64) if text else np.sqrt(squares / max(block.shape[1], 1))
        return np.where(cells.missing, np.nan, size)
    values: NDArray[np.float64] = cells.values
    return values


def _edges(known: NDArray[np.float64]) -> tuple[float, ...]:
    """Inner borders of up to ten bins, each closed above; a single value has a bin of its own."""
    distinct = np.unique(known)
    if distinct.size == 1:
        return (float(np.nextafter(distinct[0], -np.inf)), float(distinct[0]))
    if distinct.size <= 10:
        return tuple((distinct[:-1] / 2 + distinct[1:] / 2).tolist())
    return tuple(np.unique(np.quantile(known, np.linspace(0.1, 0.9, 9), method="lower")).tolist())


def _bin_shares(numbers: NDArray[np.float64], edges: tuple[float, ...]) -> NDArray[np.float64]:
    missing = np.isnan(numbers)
    bins = np.searchsorted(np.array(edges), numbers[~missing], side="left")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    return np.append(counts, missing.sum()) / max(numbers.size, 1)


def _level_shares(values: pl.Series, levels: tuple[str, ...]) -> NDArray[np.float64]:
    counts = dict(values.alias("level").value_counts().iter_rows())
    missing = counts.pop(None, 0)
    known = [counts.get(level, 0) for level in levels]
    return np.array([*known, sum(counts.values()) - sum(known), missing]) / max(values.len(), 1)
