"""What a column of a table is, why, and what is to become of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from plap.data.columns.reading import Reader


class Kind(StrEnum):
    """What the cells of a column are."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    CATEGORY = "category"
    DATE = "date"
    TEXT = "text"
    VECTOR = "vector"
    IDENTIFIER = "identifier"
    CONSTANT = "constant"
    EMPTY = "empty"
    UNSUPPORTED = "unsupported"
    UNREAD = "not read"


class Role(StrEnum):
    """What a column is used for."""

    FEATURE = "feature"
    DROPPED = "dropped"
    IGNORED = "ignored"
    SPLIT = "split"
    ID = "id"
    LABEL = "label"


@dataclass(frozen=True)
class Column:
    """The decision on one column.

    ``reader`` turns its cells into values and is None exactly where the column becomes no feature.
    ``looks_like_codes`` marks whole numbers that are read as numbers and may be codes of a category.
    ``missing`` and ``distinct`` count over all rows; ``examples`` are the most frequent values.
    """

    name: str
    kind: Kind
    role: Role
    why: str
    reader: Reader | None = None
    missing: int = 0
    distinct: int = 0
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    looks_like_codes: bool = False


@dataclass(frozen=True)
class ColumnPlan:
    """The decisions on all columns of a table, in the order of the table."""

    columns: tuple[Column, ...]
    rows: int

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns that become features."""
        return tuple(column for column in self.columns if column.role is Role.FEATURE)

    @property
    def split(self) -> tuple[str, ...]:
        """Names of the columns that hold a split into training, validation and test rows."""
        return tuple(column.name for column in self.columns if column.role is Role.SPLIT)
