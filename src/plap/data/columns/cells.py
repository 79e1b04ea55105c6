"""Cells as they stand in a table, what reads and encodes them, and the stored description of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NoReturn, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.errors import InputError

MISSING = (
    "", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "null", "(null)", "#null!", "none", "nil",
    "nat", "\\n", "-", "--", "---", "–", "—", "?", ".", "..", "missing", "#value!", "#div/0!", "#ref!",
)  # fmt: skip
"""What people and programs write into a cell that has no value, in lower case."""

V = TypeVar("V", NDArray[np.float64], pl.Series)


class CellError(InputError):
    """One cell that cannot be read; ``row`` counts data rows from 0, so that a caller can name the line."""

    def __init__(self, column: str, row: int, value: object, problem: str) -> None:
        super().__init__(f"column {column!r}, row {row + 1}: {problem}")
        self.column, self.row, self.value, self.problem = column, row, value, problem


@dataclass(frozen=True)
class Cells(Generic[V]):
    """The values of a column.

    Attributes
    ----------
    values
        Numbers [rows] or [rows, width] with NaN where missing, or a string series with null where missing.
    bad
        Rows whose cells are filled and cannot be read; they count as missing.
    infinite
        Number of infinite values; they count as missing.
    reading
        How the cells were read, where that differs from how the reader was told to; otherwise empty.
    """

    values: V
    bad: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    infinite: int = 0
    reading: str = ""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows have no value [rows]."""
        if isinstance(self.values, pl.Series):
            return self.values.is_null().to_numpy()
        missing: NDArray[np.bool_] = np.isnan(self.values)
        return np.logical_and.reduce(missing, axis=1) if missing.ndim > 1 else missing


class Reader(Protocol):
    """Turns a column of any type into values, or refuses it by name."""

    @property
    def problem(self) -> str:
        """What is wrong with a cell that cannot be read: "is not a number"."""
        ...

    def read(self, column: pl.Series) -> Cells[Any]:
        """Return the values of a column."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return all that is needed to read another table in the same way."""
        ...


def refuse_type(column: pl.Series, expected: str) -> NoReturn:
    """Refuse a column whose type can never be what is expected."""
    raise InputError(f"column {column.name!r}: holds {column.dtype}, and must hold {expected}")


def trimmed(column: pl.Series) -> pl.Series:
    """Return text without blanks around it, and null where a cell is missing.

    Examples
    --------
    >>> trimmed(pl.Series([" 5 ", "n/a", "-", None, "x"])).to_list()
    ['5', None, None, None, 'x']
    """
    return over_distinct(column.cast(pl.String), _trim)


def over_distinct(column: pl.Series, parse: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Return ``parse(column)`` of an elementwise function, once per distinct value where they repeat."""
    head = column.head(20_000)
    if column.len() < 2000 or 2 * head.n_unique() > head.len():
        return parse(column).alias(column.name)
    distinct = column.drop_nulls().unique()
    parsed = parse(distinct)
    return column.replace_strict(distinct, parsed, default=None, return_dtype=parsed.dtype)


def floats(column: pl.Series) -> NDArray[np.float64]:
    """Return a numeric or boolean column as float64 with NaN for null."""
    values: NDArray[np.float64] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return values


def finite(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return the values with NaN for infinite ones, and the number of those."""
    infinite = np.isinf(values)
    count = int(infinite.sum())
    return (np.where(infinite, np.nan, values) if count else values), count


def _trim(column: pl.Series) -> pl.Series:
    text = column.str.strip_chars()
    short = text.str.len_bytes() <= 8
    missing = short & text.str.to_lowercase().is_in(MISSING)
    return text.set(missing.fill_null(False), None)


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


class Description:
    """A JSON object whose entries are checked when they are asked for.

    Examples
    --------
    >>> Description({"scale": 2}, "age").number("scale")
    2.0
    >>> Description({"scale": "2"}, "age").number("scale")
    Traceback (most recent call last):
    plap.errors.InputError: the stored description of the columns is damaged: age has no valid 'scale'
    """

    def __init__(self, entries: object, where: str) -> None:
        self._where = where
        if not isinstance(entries, Mapping):
            raise InputError(f"the stored description of the columns is damaged: {where} is not an object")
        self._entries = entries

    def fail(self, key: str) -> NoReturn:
        """Refuse the description because of one entry."""
        raise InputError(
            f"the stored description of the columns is damaged: {self._where} has no valid {key!r}"
        )

    def child(self, key: str) -> Description:
        """Return an object inside this one."""
        if not isinstance(self._entries.get(key), Mapping):
            self.fail(key)
        return Description(self._entries[key], f"{self._where}.{key}")

    def number(self, key: str) -> float:
        """Return a finite number."""
        return self._number(key, self._entries.get(key))

    def positive(self, key: str) -> float:
        """Return a finite number above zero."""
        value = self.number(key)
        return value if value > 0 else self.fail(key)

    def count(self, key: str, least: int = 0) -> int:
        """Return a whole number of at least ``least``."""
        value = self._entries.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(key)
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._entries.get(key)
        return value if isinstance(value, bool) else self.fail(key)

    def text(self, key: str, among: tuple[str, ...] | None = None) -> str:
        """Return a string, one of ``among`` where that is given."""
        value = self._entries.get(key)
        if not isinstance(value, str) or (among is not None and value not in among):
            self.fail(key)
        return value

    def texts(self, key: str, among: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return distinct strings, each one of ``among`` where that is given."""
        values = self.items(key)
        known = all(isinstance(v, str) and (among is None or v in among) for v in values)
        if not known or len(set(values)) < len(values):
            self.fail(key)
        return tuple(values)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return finite numbers."""
        return tuple(self._number(key, value) for value in self.items(key))

    def items(self, key: str) -> list[Any]:
        """Return a list of anything."""
        values = self._entries.get(key)
        return values if isinstance(values, list) else self.fail(key)

    def _number(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.fail(key)
        return float(value)
