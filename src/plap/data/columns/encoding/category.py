"""Categories to one feature per level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.reading.cells import Cells

MOST_LEVELS = 64
"""Up to this many frequent levels have a feature each."""
FREQUENT_LEVELS, BUCKETS = 32, 32
"""Where there are more, the most frequent have a feature each and all others share hashed ones."""
NONE = np.iinfo(np.int64).min


def least_count(rows: int) -> int:
    """Return in how many training rows a level must occur: 1 % of them, at least 2 and at most 10."""
    return max(2, min(10, rows // 100))


@dataclass(frozen=True)
class CategoryEncoder:
    """One feature of 0 and 1 per level; rare and unseen levels share one, or ``buckets`` hashed ones.

    Missing values are a level of their own if they occur in the training rows. Where no training row has
    a rare level, an unseen one has 0 in all features: no weight was ever trained for it.
    """

    levels: tuple[str, ...]
    other: bool
    buckets: int
    indicator: bool
    rare: int
    unmarked: ClassVar[str] = "0 in all features of the column"

    @classmethod
    def fit(cls, cells: Cells[pl.Series]) -> CategoryEncoder:
        """Learn the levels from training values."""
        filled = cells.values.drop_nulls()
        name = "level"
        counts = filled.alias(name).value_counts().sort(["count", name], descending=[True, False])
        least = least_count(filled.len())
        frequent = counts.filter(pl.col("count") >= least)[name].to_list()
        buckets = BUCKETS if len(frequent) > MOST_LEVELS else 0
        levels = tuple(frequent[:FREQUENT_LEVELS] if buckets else frequent)
        rare = counts.height - len(levels)
        other = rare > 0 and not buckets and bool(levels)
        return cls(levels, other, buckets, bool(cells.missing.any()), rare)

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature; none where the training rows show no difference."""
        names = [f"{column}={level}" for level in self.levels]
        names += [f"{column}=other"] * self.other
        names += [f"{column}#{k}" for k in range(self.buckets)]
        names += [f"{column} is missing"] * self.indicator
        return names if len(names) > 1 or not self.levels else []

    def write(self, cells: Cells[pl.Series], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; return how many values no training row had as a level of its own."""
        codes = self._codes(cells.values)
        missing = cells.missing
        features = np.where(codes < 0, -1 - codes, codes)
        rows = np.flatnonzero(codes != NONE)
        out[rows, features[rows]] = 1
        if self.indicator:
            out[:, -1] = missing
        return int(((codes < 0) & ~missing).sum())

    def describe(self) -> str:
        """Say what became of the levels."""
        if not self.feature_names(""):
            return ""
        if not self.levels:
            return "no level occurs in enough training rows, only what is missing is marked"
        if self.buckets:
            return (
                f"many levels: one feature for each of the {len(self.levels)} most frequent, "
                f"the other {self.rare} hashed into {self.buckets} features"
            )
        several = f"each of {len(self.levels)} levels" if len(self.levels) > 1 else "the one frequent level"
        parts = [f"one feature for {several}"]
        if self.other:
            parts.append(f"{self.rare} rare and all unseen ones together in one")
        if self.indicator:
            parts.append("missing is a level of its own")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {
            "levels": list(self.levels), "other": self.other, "buckets": self.buckets,
            "indicator": self.indicator, "rare": self.rare,
        }  # fmt: skip

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> CategoryEncoder:
        """Return the encoder that ``to_json`` described."""
        return cls(
            entries.texts("levels"), entries.flag("other"), entries.count("buckets"),
            entries.flag("indicator"), entries.count("rare"),
        )  # fmt: skip

    def _codes(self, values: pl.Series) -> NDArray[np.int64]:
        """The feature of each value's level, −1 − feature where it shares that, and NONE without a feature.

        Buckets are the same on every machine and in every version.
        """
        from sklearn.utils import murmurhash3_32  # noqa: PLC0415

        known = len(self.levels)
        codes = {level: k for k, level in enumerate(self.levels)}
        distinct = values.drop_nulls().unique()
        shared = -1 - known if self.other else NONE
        found = []
        for value in distinct.to_list():
            code = codes.get(value, shared)
            if code < 0 and self.buckets:
                code = -1 - known - murmurhash3_32(value, positive=True) % self.buckets
            found.append(code)
        return values.replace_strict(distinct, found, default=NONE, return_dtype=pl.Int64).to_numpy()
