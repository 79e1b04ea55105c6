"""The data dictionary: what each column of a table became, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from plap.data.columns.decisions import Column, ColumnPlan, Kind, Role
from plap.data.columns.transform import ColumnTransform, FittedColumn

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
