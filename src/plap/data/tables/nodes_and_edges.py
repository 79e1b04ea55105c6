"""The table of nodes (ids, labels, features) and the table of edges (source, target, weight)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.labels import encode_labels, is_integer, looks_numeric_target
from plap.data.tables.columns import (
    Numbering,
    distinct,
    is_numeric,
    is_vector,
    numbers,
    read_identifiers,
    same_kind,
    vectors,
)
from plap.data.tables.table_file import Table, find_column, need_column
from plap.errors import InputError

ID = ("id", "node", "node_id")
LABEL = ("label", "class")
LabelKind = Literal["classes", "numbers"]
"""What a column of labels holds."""
SEVERAL = "label:"
"""What the names of columns begin with where a node may have several labels."""


@dataclass(frozen=True)
class Nodes:
    """What a table of nodes says; ``x`` is None if it has no features."""

    ids: pl.Series
    y: NDArray[np.int64] | NDArray[np.float32] | NDArray[np.float64]
    class_names: tuple[str, ...]
    x: NDArray[np.float32] | None
    feature_names: tuple[str, ...]
    notes: tuple[str, ...]


def read_nodes(table: Table, *, lone_classes: bool = False, task: LabelKind | None = None) -> Nodes:
    """Read ids, labels (empty: unknown) and features from a table of nodes.

    The id is in the column ``id`` (or ``node``, ``node_id``), the label in ``label`` (or ``class``); of
    several the first named here. Where a node may have several labels, each has a column of 0 and 1 of its
    own, ``label:sports`` (all empty: unknown). Features are the remaining numeric columns, or one column of
    vectors. A column of which most cells are text is left out, and a note says so. A class that only one
    node has is refused, unless ``lone_classes`` says that others may have it elsewhere. Whether labels are
    classes or numbers, ``task`` says; by default :func:`plap.data.labels.looks_numeric_target`.
    """
    if table.height == 0:
        raise InputError(f"{table.path}: the table has no rows")
    id_column = need_column(table, ID, "the id of a node")
    ids = read_identifiers(table, id_column)
    if ids.n_unique() < ids.len():
        row = int((~ids.is_first_distinct()).arg_max() or 0)
        table.fail(row, id_column, f"the id {ids[row]!r} is there twice")
    label_column = find_column(table, LABEL)
    several = [name for name in table.columns if name.strip().lower().startswith(SEVERAL)]
    if several and label_column is not None:
        raise InputError(
            f"{table.path}: labels are in {label_column!r} and in {several[0]!r}, and one must go"
        )
    numeric = None if label_column is None else _read_numbers(table, label_column, task)
    remarks: tuple[str, ...] = ()
    y: NDArray[np.int64] | NDArray[np.float32] | NDArray[np.float64]
    class_names: tuple[str, ...]
    if numeric is not None:
        y, class_names = numeric, ()
        if task is None:
            different = np.unique(y[~np.isnan(y)]).size
            remarks = (
                f"{table.path.name}: the column {label_column!r} holds {different} different numbers, so a "
                "number is predicted for each node.",
            )
    elif several:
        y, class_names = _read_several(table, several)
    else:
        y, class_names = _read_labels(table, label_column, lone_classes)
    rest = [name for name in table.columns if name not in (id_column, label_column, *several)]
    x, feature_names, notes = _read_features(table, rest)
    return Nodes(ids, y, class_names, x, feature_names, (*remarks, *notes))


def _read_numbers(table: Table, name: str, task: LabelKind | None) -> NDArray[np.float64] | None:
    """Labels that are numbers, NaN where unknown; None where they are classes."""
    column = table.column(name)
    if task == "classes" or not (column.dtype.is_numeric() or column.dtype == pl.String):
        return None
    values = column.cast(pl.Float64, strict=False)
    wrong = (values.is_null() & column.is_not_null()).to_numpy()
    found: NDArray[np.float64] = values.fill_null(float("nan")).to_numpy()
    wrong |= np.isinf(found)
    if task is None and (wrong.any() or not looks_numeric_target(found)):
        return None
    if wrong.any():
        row = int(wrong.argmax())
        table.fail(row, name, f"{column[row]} is not a finite number")
    return found


def _read_several(table: Table, names: list[str]) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """0 and 1 [N, L], a row of NaN where all are empty."""
    columns = [table.column(name) for name in names]
    empty = np.stack([column.is_null().to_numpy() for column in columns], axis=1)
    y = np.full(empty.shape, np.nan, dtype=np.float32)
    known = ~empty.all(axis=1)
    for k, (name, column) in enumerate(zip(names, columns, strict=True)):
        missing = known & empty[:, k]
        if missing.any():
            table.fail(int(missing.argmax()), name, "is empty, but other labels of the row are not")
        y[known, k] = numbers(table, column.fill_null("0" if column.dtype == _text() else 0))[known]
        wrong = known & (y[:, k] != 0) & (y[:, k] != 1)
        if wrong.any():
            row = int(wrong.argmax())
            table.fail(row, name, f"{column[row]} is neither 0 nor 1")
    return y, tuple(name.strip()[len(SEVERAL) :].strip() for name in names)


def _text() -> type[pl.String]:

    return pl.String


def _read_labels(
    table: Table, name: str | None, lone_classes: bool
) -> tuple[NDArray[np.int64], tuple[str, ...]]:

    if name is None:
        return np.full(table.height, -1, dtype=np.int64), ()
    column = table.column(name)
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count() > column.null_count() or not (whole == column).all():
            row = int((~(whole == column).fill_null(column.is_null())).arg_max() or 0)
            table.fail(row, name, f"{column[row]} is not the name of a class: text or a whole number is")
        column = whole
    if not (column.dtype.is_integer() or column.dtype in (pl.String, pl.Boolean, pl.Null)):
        table.fail(0, name, f"labels must be text or whole numbers, not {column.dtype}")
    text = column.cast(pl.String).fill_null("").to_numpy().astype(np.str_)
    if all(is_integer(str(value)) for value in np.unique(text) if value):
        text[text == "-1"] = ""  # the usual number for "unknown", as everywhere in plap

    def fail(row: int, problem: str) -> NoReturn:
        table.fail(row, name, problem)

    return encode_labels(text, (lambda row, problem: None) if lone_classes else fail)


def _read_features(
    table: Table, names: list[str]
) -> tuple[NDArray[np.float32] | None, tuple[str, ...], tuple[str, ...]]:
    """Features, their names, and a note on columns that are none."""
    matrix: dict[str, NDArray[np.float32]] = {}
    vector_columns: list[str] = []
    unused: list[str] = []
    for name in names:
        column = table.column(name)
        if is_vector(column):
            vector_columns.append(name)
            matrix[name] = vectors(table, column)
        elif name and is_numeric(column):
            matrix[name] = numbers(table, column)
        else:
            unused.append(name)
    if vector_columns and len(matrix) > 1:
        other = next(name for name in matrix if name != vector_columns[0])
        raise InputError(
            f"{table.path}: features must be one column of vectors or columns of numbers, "
            f"not both {vector_columns[0]!r} and {other!r}"
        )
    shown = ", ".join(repr(name) for name in unused[:5]) + (", …" if len(unused) > 5 else "")
    notes = (f"{table.path.name}: not used, because not numeric: {shown}.",) if unused else ()
    if not matrix:
        return None, (), notes
    if vector_columns:
        x = matrix[vector_columns[0]]
        return x, tuple(f"{vector_columns[0]}[{k}]" for k in range(x.shape[1])), notes
    return np.stack(list(matrix.values()), axis=1), tuple(matrix), notes


SOURCE = ("source", "src", "from")
TARGET = ("target", "dst", "to")
WEIGHT = ("weight", "w")


@dataclass(frozen=True)
class Edges:
    """Edges between nodes 0..N-1 and what these are called."""

    index: NDArray[np.int32]
    """[2, E], sources above targets."""
    weight: NDArray[np.float32] | None
    nodes: Numbering


def read_edges(table: Table, node_ids: pl.Series | None, nodes_path: object = None) -> Edges:
    """Read edges between the nodes that ``node_ids`` names, or between whatever they name themselves.

    The ends are in the columns ``source`` (or ``src``, ``from``) and ``target`` (or ``dst``, ``to``), the
    weight, 1 if not given, in ``weight`` (or ``w``); of several the first named here.
    """
    columns = (
        need_column(table, SOURCE, "the source of an edge"),
        need_column(table, TARGET, "the target of an edge"),
    )
    if table.height == 0:
        if node_ids is None:
            raise InputError(f"{table.path}: the table has no rows, and no table of nodes is given")
        return Edges(np.zeros((2, 0), dtype=np.int32), None, Numbering(node_ids))
    weight = _read_weight(table)
    ends = tuple(read_identifiers(table, column) for column in columns)
    if node_ids is None:
        ends = same_kind(*ends)
        nodes = Numbering(distinct(*ends))
    else:
        *ends_of_kind, node_ids = same_kind(*ends, node_ids)
        ends = tuple(ends_of_kind)
        nodes = Numbering(node_ids)
    index = np.empty((2, table.height), dtype=np.int32)
    for row, (column, ids) in enumerate(zip(columns, ends, strict=True)):
        index[row] = nodes.of(ids)
        if index[row].min() < 0:
            at = int(np.argmin(index[row]))
            table.fail(at, column, f"the node {ids[at]!r} is not in {nodes_path}")
    return Edges(index, weight, nodes)


def _read_weight(table: Table) -> NDArray[np.float32] | None:
    name = find_column(table, WEIGHT)
    if name is None:
        return None
    column = table.column(name)
    weight = numbers(table, column)
    if weight.min() <= 0:
        row = int(np.argmax(weight <= 0))
        table.fail(row, name, f"{column[row]} is not a positive weight")
    return weight
