"""How far the columns of a new table are from the training rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.decisions import Kind
from plap.data.columns.transform import ColumnTransform, FittedColumn, read, require

NOTABLE, CERTAIN = 0.2, 1e-3
"""Drift is notable where the stability index is above the first and its p-value below the second."""


@dataclass(frozen=True)
class ColumnDrift:
    r"""The distance of one column from the training rows.

    With the shares :math:`r_b` of the training rows and :math:`s_b` of the new rows in each bin or level,
    ``psi`` is the population stability index :math:`\sum_b (s_b - r_b) \log(s_b / r_b)`, ``distance`` the
    total variation :math:`\frac12 \sum_b |s_b - r_b|`, and ``p_value`` the probability of so large an
    index if nothing changed (its χ² approximation).
    """

    column: str
    psi: float
    distance: float
    p_value: float
    missing_before: float
    missing_now: float
    notable: bool
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain JSON values."""
        return asdict(self)


def drift(transform: ColumnTransform, frame: pl.DataFrame) -> list[ColumnDrift]:
    """Compare each column of a table with the training rows; cells that cannot be read count as missing."""
    require(frame, [column.name for column in transform.columns])
    return [_compare(column, frame[column.name]) for column in transform.columns if frame.height]


def _compare(column: FittedColumn, series: pl.Series) -> ColumnDrift:
    from scipy.special import chdtrc  # noqa: PLC0415

    cells = read(series, column.reader, "missing")
    reference = column.reference
    before = np.array(reference.shares)
    now, median = reference.shares_of(cells, column.encoder)
    psi = _stability_index(before, now, reference.rows, series.len())
    distance = float(np.abs(before - now).sum() / 2)
    freedom = max(int(((before > 0) | (now > 0)).sum()) - 1, 1)
    together = reference.rows * series.len() / (reference.rows + series.len())
    p_value = float(chdtrc(freedom, psi * together))
    notable = psi > NOTABLE and p_value < CERTAIN
    sentence = ""
    if notable:
        sentence = f"{column.name}: {_what_moved(column, before, now, median)} (stability index {psi:.2f})"
    return ColumnDrift(
        column.name, psi, distance, p_value, float(before[-1]), float(now[-1]), notable, sentence
    )


def _stability_index(
    before: NDArray[np.float64], now: NDArray[np.float64], rows_before: int, rows_now: int
) -> float:
    """The index of shares that no bin lacks: an empty bin counts as half a row."""
    first = np.maximum(before, 0.5 / rows_before)
    second = np.maximum(now, 0.5 / rows_now)
    occurs = (before > 0) | (now > 0)
    return float(((second - first) * np.log(second / first))[occurs].sum())


def _what_moved(
    column: FittedColumn, before: NDArray[np.float64], now: NDArray[np.float64], median: float
) -> str:
    most = int(np.abs(now - before).argmax())
    last = before.size - 1
    shares = f"{before[most]:.0%} of the training rows, {now[most]:.0%} of these"
    if most == last:
        return f"missing in {shares}"
    if column.reference.levels:
        if most == last - 1:
            return f"other levels are {shares}"
        return f"{column.reference.levels[most]!r} is {shares}"
    if column.kind is Kind.TEXT:
        with_word = f"{before[-2]:.0%} of the training rows, {now[-2]:.0%} of these"
        return f"a known word is in {with_word}"
    if column.kind is Kind.BOOLEAN:
        return f"{'true' if most else 'false'} in {shares}"
    if column.kind is Kind.VECTOR:
        return (
            f"the typical size is {column.reference.median:.3g} in the training rows, {median:.3g} in these"
        )
    medians = [_shown(column, value) for value in (column.reference.median, median)]
    return f"the median is {medians[0]} in the training rows, {medians[1]} in these"


def _shown(column: FittedColumn, value: float) -> str:
    if column.kind is Kind.DATE:
        return str(np.datetime64(int(value), "s").astype("datetime64[D]"))
    return f"{value:.6g}"
