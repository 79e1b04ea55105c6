"""What is said about columns: what each became and why, and how far a new table is from the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.judging import Column, ColumnPlan, Kind, Role
from plap.data.columns.transform import ColumnTransform, FittedColumn, read, require

FILLED = {
    Kind.NUMBER: "filled with the median",
    Kind.DATE: "filled with the median",
    Kind.BOOLEAN: "filled with the share of true",
    Kind.CATEGORY: "",
    Kind.TEXT: "",
    Kind.VECTOR: "filled with the mean",
}
NOTHING = {
    Kind.CATEGORY: "no level occurs in enough training rows to tell them apart",
    Kind.TEXT: "no word occurs in enough training rows to tell them apart",
}


@dataclass(frozen=True)
class DictionaryEntry:
    """One column of the table: what it is, what it became, and one sentence that says so."""

    name: str
    kind: Kind
    role: Role
    features: tuple[str, ...]
    why: str
    rows: int
    missing: int
    distinct: int
    examples: tuple[str, ...]
    notes: tuple[str, ...]
    looks_like_codes: bool
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain JSON values, and the number of features."""
        entry = asdict(self) | {"kind": str(self.kind), "role": str(self.role), "width": len(self.features)}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in entry.items()}


@dataclass(frozen=True)
class DataDictionary:
    """One entry per column of a table, in the order of the table.

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from plap.data.columns import infer_columns
    >>> frame = pl.DataFrame({"age": ["31", "NA", "52"], "city": ["Bern", "Bern", "Bern"]})
    >>> train = np.ones(3, dtype=bool)
    >>> plan = infer_columns(frame, train)
    >>> print(DataDictionary.of(plan, ColumnTransform.fit(frame, train, plan)))
    age: number, standardised; 1 of 3 missing, filled with the median and marked
    city: not used, every row has the same value
    """

    entries: tuple[DictionaryEntry, ...]

    @classmethod
    def of(cls, plan: ColumnPlan, transform: ColumnTransform) -> DataDictionary:
        """Combine the decisions with what was fitted."""
        fitted = {column.name: column for column in transform.columns}
        return cls(tuple(_entry(column, fitted.get(column.name), plan.rows) for column in plan))

    def __iter__(self) -> Iterator[DictionaryEntry]:
        return iter(self.entries)

    def __str__(self) -> str:
        return "\n".join(entry.sentence for entry in self.entries)

    def to_json(self) -> list[dict[str, Any]]:
        """Return one plain object per column."""
        return [entry.to_json() for entry in self.entries]


def _entry(column: Column, fitted: FittedColumn | None, rows: int) -> DictionaryEntry:
    role, why = column.role, column.why
    if role is Role.FEATURE and fitted is None:
        role, why = Role.DROPPED, NOTHING.get(column.kind, "all training values are equal")
    features = fitted.feature_names if fitted else ()
    return DictionaryEntry(
        column.name, column.kind, role, features, why, rows, column.missing, column.distinct,
        column.examples, column.notes, column.looks_like_codes, _sentence(column, role, why, fitted, rows),
    )  # fmt: skip


def _sentence(column: Column, role: Role, why: str, fitted: FittedColumn | None, rows: int) -> str:
    if fitted is None:
        use = "not used" if role in (Role.DROPPED, Role.IGNORED) else f"the {role}"
        return f"{column.name}: {use}, {why}"
    parts = [f"{column.name}: {column.kind}, {fitted.encoder.describe()}"]
    if column.missing:
        filled = FILLED[column.kind]
        marked = "marked" if fitted.encoder.indicator else "not marked, because no training row lacks it"
        how = f"{filled} {'and' if fitted.encoder.indicator else 'but'} {marked}" if filled else marked
        parts.append(f"{column.missing:,} of {rows:,} missing, {how}")
    return "; ".join([*parts, *column.notes])


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
    if not frame.height:
        return []
    return [_compare(column, frame[column.name]) for column, _ in transform.as_written_in(frame)]


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


_FEWEST_TOLD, _PER_VALUE = 20, 5
"""Labelled rows, and rows per value, from which on it is no accident that a column tells the label."""
_TOLD = 0.95
"""Share of the labelled rows that must have a value."""


def giveaways(
    frame: pl.DataFrame, plan: ColumnPlan, labels: NDArray[np.integer[Any]], rows: NDArray[np.bool_]
) -> list[str]:
    """Columns that tell the class of every row by themselves: copies of the label, or what it was made from.

    A value of such a column belongs to one class alone; or the column is a number, and the classes lie side
    by side in its order.

    Parameters
    ----------
    frame, plan :
        The raw columns, and what they are.
    labels : integers [N]
        Classes, −1 where unknown.
    rows : boolean [N]
        The rows that may be looked at.

    Examples
    --------
    >>> from plap.data.columns import infer_columns
    >>> labels = np.arange(60) % 2
    >>> frame = pl.DataFrame({"outcome": ["won" if k else "lost" for k in labels], "size": np.arange(60) % 3})
    >>> every = np.ones(60, dtype=bool)
    >>> giveaways(frame, infer_columns(frame, every), labels, every)
    ['outcome']
    """
    known = rows & (labels >= 0)
    if known.sum() < _FEWEST_TOLD or np.unique(labels[known]).size < 2:
        return []
    classes = pl.Series("", labels[known])
    found = []
    for column in plan.features:
        if column.kind in (Kind.TEXT, Kind.VECTOR, Kind.DATE):
            continue
        cells = frame[column.name].filter(pl.Series(known))
        pairs = pl.DataFrame({"value": cells, "class": classes}).drop_nulls()
        if (
            pairs.height >= _TOLD * classes.len()
            and pairs["class"].n_unique() > 1
            and _tells(pairs, column.kind)
        ):
            found.append(column.name)
    return found


def _tells(pairs: pl.DataFrame, kind: Kind) -> bool:
    """Whether each value has one class, or each class one stretch of the values."""
    values = pairs["value"].n_unique()
    if values * _PER_VALUE <= pairs.height:
        return pairs.n_unique() == values
    if kind is not Kind.NUMBER:
        return False
    ordered = pairs.with_columns(pl.col("value").cast(pl.Float64, strict=False)).drop_nulls().sort("value")
    if ordered.height < pairs.height or ordered["class"].value_counts()["count"].min() < _PER_VALUE:  # type: ignore[operator]
        return False
    runs = ordered["class"].rle().struct.field("value")
    return runs.len() == runs.n_unique() and ordered.n_unique() == ordered["value"].n_unique()
