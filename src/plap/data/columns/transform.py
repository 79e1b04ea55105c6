"""Raw columns to features: fitted on training rows, stored as JSON and arrays, applied by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import CellError, Cells, Description, Encoder, Reader
from plap.data.columns.dates import DateEncoder, DateReader
from plap.data.columns.infer import check_names, check_rows
from plap.data.columns.judging import ColumnPlan, Kind
from plap.data.columns.numbers import NumberEncoder, NumberReader, decimal_mark_of, following
from plap.data.columns.vectors import VectorEncoder, VectorReader
from plap.data.columns.words import BooleanEncoder, BooleanReader, CategoryEncoder, TextEncoder, TextReader
from plap.errors import InputError


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


OnBad = Literal["error", "missing"]
CLASSES: dict[Kind, tuple[Any, Any]] = {
    Kind.NUMBER: (NumberReader, NumberEncoder),
    Kind.BOOLEAN: (BooleanReader, BooleanEncoder),
    Kind.CATEGORY: (TextReader, CategoryEncoder),
    Kind.DATE: (DateReader, DateEncoder),
    Kind.TEXT: (TextReader, TextEncoder),
    Kind.VECTOR: (VectorReader, VectorEncoder),
}
"""Reader and encoder of each kind of feature."""
FORMAT, VERSION = "plap columns", 1
_MOST_CHARACTERS = 80
"""Of a cell in a sentence."""


@dataclass(frozen=True)
class FittedColumn:
    """One column: how it is read, what it becomes, and what its training rows looked like."""

    name: str
    kind: Kind
    reader: Reader
    encoder: Encoder
    reference: Reference

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features of this column."""
        return tuple(self.encoder.feature_names(self.name))


@dataclass(frozen=True)
class Note:
    """Something that happened while columns were applied; ``str(note)`` is a sentence.

    ``what`` is "extra" (columns that are not used), "unseen" (values the training rows did not have),
    "missing" (missing values where the training rows had none), "bad" (cells that cannot be read),
    "infinite", or "reading" (cells written otherwise than in the training table).
    """

    what: str
    column: str
    count: int
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Applied(NamedTuple):
    """Features [rows, features], and what happened on the way."""

    matrix: NDArray[np.float32]
    notes: list[Note]


@dataclass(frozen=True)
class ColumnTransform:
    """What all columns became; columns that ``unused`` names had no use and are not missed.

    Examples
    --------
    >>> from plap.data.columns import infer_columns
    >>> frame = pl.DataFrame({"age": ["30", "40", "50"], "member": ["yes", "no", "no"]})
    >>> train = np.ones(3, dtype=bool)
    >>> transform = ColumnTransform.fit(frame, train, infer_columns(frame, train))
    >>> transform.feature_names
    ('age', 'member')
    >>> transform.apply(pl.DataFrame({"member": [True], "age": [40.0]})).matrix
    array([[0., 1.]], dtype=float32)
    """

    columns: tuple[FittedColumn, ...]
    unused: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls, frame: pl.DataFrame, train: NDArray[np.bool_], plan: ColumnPlan, *, on_bad: OnBad = "error"
    ) -> ColumnTransform:
        """Learn from the training rows alone; ``plan`` says how each column is read."""
        check_rows(frame, train)
        require(frame, [column.name for column in plan])
        rows = np.flatnonzero(train)
        mask = None if rows.size == frame.height else pl.Series(train)
        fitted = []
        for column in plan.features:
            assert column.reader is not None
            series = frame[column.name] if mask is None else frame[column.name].filter(mask)
            cells = read(series, column.reader, on_bad, rows)
            encoder = CLASSES[column.kind][1].fit(cells)
            if encoder.feature_names(column.name):
                reference = Reference.fit(cells, encoder)
                fitted.append(FittedColumn(column.name, column.kind, column.reader, encoder, reference))
        used = {column.name for column in fitted}
        return cls(tuple(fitted), tuple(column.name for column in plan if column.name not in used))

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """One distinct name per feature."""
        names: dict[str, None] = {}
        for column in self.columns:
            for name in column.feature_names:
                number, distinct = 2, name
                while distinct in names:
                    distinct, number = f"{name} ({number})", number + 1
                names[distinct] = None
        return tuple(names)

    @property
    def groups(self) -> tuple[str, ...]:
        """The source column of each feature."""
        return tuple(column.name for column in self.columns for _ in column.feature_names)

    def apply(self, frame: pl.DataFrame, *, on_bad: OnBad = "error") -> Applied:
        """Return the features of a table, whose columns are found by name in any order.

        A column that is not there is refused; further ones are ignored with a note. A cell that cannot be
        read is refused with its row, or counted as missing where ``on_bad`` is "missing".
        """
        check_names(frame.columns)
        require(frame, [column.name for column in self.columns])
        matrix = np.zeros((frame.height, len(self.feature_names)), dtype=np.float32)
        notes = self._extra(frame)
        start = 0
        for column, said in self.as_written_in(frame):
            stop = start + len(column.feature_names)
            cells = read(frame[column.name], column.reader, on_bad)
            cells = replace(cells, reading=said) if said else cells
            unseen = column.encoder.write(cells, matrix[:, start:stop])
            notes += _notes(column, cells, unseen)
            start = stop
        return Applied(matrix, notes)

    def renamed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The table with the names of its training columns where they differ in case or blanks alone."""
        spare: dict[str, list[str]] = {}
        for name in frame.columns:
            if name not in {*self.unused, *(column.name for column in self.columns)}:
                spare.setdefault(name.strip().casefold(), []).append(name)
        alike = {
            column.name: spare.get(column.name.strip().casefold(), [])
            for column in self.columns
            if column.name not in frame.columns
        }
        return frame.rename({found[0]: name for name, found in alike.items() if len(found) == 1})

    def as_written_in(self, frame: pl.DataFrame) -> list[tuple[FittedColumn, str]]:
        """The columns with readers for this table, and what to say of one that it writes in another way."""
        numbers = [column.name for column in self.columns if isinstance(column.reader, NumberReader)]
        mark = decimal_mark_of([frame[name] for name in numbers])
        found = []
        for column in self.columns:
            said = ""
            if isinstance(column.reader, NumberReader):
                reader, said = following(column.reader, frame[column.name], mark)
                column = replace(column, reader=reader) if said else column  # noqa: PLW2901
            found.append((column, said))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return everything but the arrays, as plain JSON values."""
        columns = [
            {
                "name": column.name, "kind": str(column.kind), "reader": column.reader.to_json(),
                "encoder": column.encoder.to_json(), "reference": column.reference.to_json(),
            }
            for column in self.columns
        ]  # fmt: skip
        return {"format": FORMAT, "version": VERSION, "columns": columns, "unused": list(self.unused)}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, for a safetensors file: ``columns.<number>.<name>``."""
        return {
            f"columns.{k}.{name}": array
            for k, column in enumerate(self.columns)
            for name, array in column.encoder.tensors().items()
        }

    @classmethod
    def from_json(
        cls, description: str | Mapping[str, Any], tensors: Mapping[str, NDArray[Any]] | None = None
    ) -> ColumnTransform:
        """Return the transform that ``to_json`` and ``tensors`` described; refuse what is damaged."""
        if isinstance(description, str):
            try:
                description = json.loads(description)
            except ValueError:
                raise InputError("the stored description of the columns is damaged: it is not JSON") from None
        entries = Description(description, "it")
        entries.text("format", (FORMAT,))
        if entries.count("version") != VERSION:
            raise InputError(f"the columns were stored by another version of plap: this one reads {VERSION}")
        columns = [
            _load(Description(column, f"column {k + 1}"), k, tensors or {})
            for k, column in enumerate(entries.items("columns"))
        ]
        if len({column.name for column in columns}) < len(columns):
            entries.fail("columns")
        return cls(tuple(columns), entries.texts("unused"))

    def _extra(self, frame: pl.DataFrame) -> list[Note]:
        known = {column.name for column in self.columns} | set(self.unused)
        extra = [name for name in frame.columns if name not in known]
        if not extra:
            return []
        shown = ", ".join(repr(name) for name in extra[:5]) + (", …" if len(extra) > 5 else "")
        are = (
            "columns are ignored, because the model was"
            if len(extra) > 1
            else "column is ignored, because the model was"
        )
        return [Note("extra", "", len(extra), f"{len(extra)} {are} trained without: {shown}")]


def read(
    series: pl.Series, reader: Reader, on_bad: OnBad, rows: NDArray[np.intp] | None = None
) -> Cells[Any]:
    """Return the values of a column, refusing its first bad cell unless that counts as missing.

    ``rows`` are the rows of the table that ``series`` holds, for the sentence.
    """
    try:
        cells = reader.read(series)
    except CellError as error:
        at = error.row if rows is None else int(rows[error.row])
        raise CellError(error.column, at, error.value, error.problem) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        first = str(error).split("\n", 1)[0]
        raise InputError(f"column {series.name!r}: cannot be read ({first})") from None
    if cells.bad.size and on_bad == "error":
        row = int(cells.bad[0])
        cell = series[row].to_list() if isinstance(series[row], pl.Series) else series[row]
        problem = f"{_shortened(repr(cell))} {reader.problem}"
        raise CellError(series.name, row if rows is None else int(rows[row]), cell, problem)
    return cells


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def require(frame: pl.DataFrame, names: list[str]) -> None:
    """Refuse a table without one of the columns."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        shown = ", ".join(repr(name) for name in absent[:5]) + (", …" if len(absent) > 5 else "")
        found = ", ".join(repr(name) for name in frame.columns[:8]) + (", …" if frame.width > 8 else "")
        raise InputError(f"the table has no column {shown}, which the model needs; its columns are {found}")


def _notes(column: FittedColumn, cells: Cells[Any], unseen: int) -> list[Note]:
    name, encoder = column.name, column.encoder
    facts: list[tuple[str, int, str]] = []
    if unseen:
        thing = "texts have no word" if column.kind is Kind.TEXT else "values have no level"
        facts.append(("unseen", unseen, f"{unseen:,} {thing} that was frequent in the training rows"))
    if cells.bad.size:
        facts.append(("bad", cells.bad.size, f"{cells.bad.size:,} cells cannot be read and count as missing"))
    if cells.infinite:
        facts.append(("infinite", cells.infinite, f"{cells.infinite:,} infinite values count as missing"))
    missing = int(cells.missing.sum())
    if missing and not encoder.indicator:
        facts.append(
            ("missing", missing, f"{missing:,} missing values, unknown in training: {encoder.unmarked}")
        )
    if cells.reading:
        facts.append(("reading", len(cells.values), f"{cells.reading}, unlike the training table"))
    return [Note(what, name, count, f"{name}: {sentence}") for what, count, sentence in facts]


def _load(entries: Description, number: int, tensors: Mapping[str, NDArray[Any]]) -> FittedColumn:
    kind = Kind(entries.text("kind", tuple(str(kind) for kind in CLASSES)))
    prefix = f"columns.{number}."
    own = {key.removeprefix(prefix): array for key, array in tensors.items() if key.startswith(prefix)}
    reader, encoder = CLASSES[kind]
    column = FittedColumn(
        entries.text("name"),
        kind,
        reader.from_json(entries.child("reader")),
        encoder.from_json(entries.child("encoder"), own),
        Reference.from_json(entries.child("reference")),
    )
    if not column.feature_names:
        entries.fail("encoder")
    return column
