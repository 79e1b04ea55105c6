"""The table of nodes (ids, labels, a split, columns that become features) and that of edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns import CellError, Role, SplitColumns, find_split, unread_splits
from plap.data.tables.assembly import NodeColumns
from plap.data.tables.cells import (
    BadRows,
    Numbering,
    as_written,
    decimal_commas_in,
    distinct,
    finite_numbers,
    is_numeric,
    is_vector,
    numbers,
    read_identifiers,
    same_kind,
    vectors,
)
from plap.data.tables.label_columns import SEVERAL, Labels, read_labels
from plap.data.tables.options import (
    ID,
    LABEL,
    RELATION,
    SOURCE,
    TARGET,
    WEIGHT,
    TableOptions,
    find_role,
    named_column,
    other_labels,
    quoted,
)
from plap.data.tables.table_file import Table, find_column
from plap.errors import InputError

_KINDS = ("categorical", "numeric", "text")
"""Options that name columns to be read as one kind."""
_WHAT = {Role.ID: "the id of the nodes", Role.LABEL: "the label"}


@dataclass(frozen=True)
class Nodes:
    """What a table of nodes says; ``x`` is None if it has no features, or if these are raw columns."""

    ids: pl.Series
    y: Labels
    class_names: tuple[str, ...]
    x: NDArray[np.float32] | None
    feature_names: tuple[str, ...]
    notes: tuple[str, ...]
    columns: NodeColumns | None = None
    split: SplitColumns | None = None


def read_nodes(table: Table, options: TableOptions, *, lone_classes: bool = False) -> Nodes:
    """Read ids, labels (empty: unknown), a split and features from a table of nodes.

    The id is in the column ``id`` (or ``node``, ``node_id``), the label in ``label`` (or ``class``,
    ``target``); of several the first named here. Where a node may have several labels, each has a column of
    0 and 1 of its own, ``label:sports`` (all empty: unknown). The remaining columns become features, see
    ``plap.data.columns``; with ``options.raw_features`` the numeric ones, or one column of vectors, are
    taken as they are, and a column of which most cells are text is left out with a note. A class that only
    one node has is refused, unless ``lone_classes`` says that others may have it elsewhere. Whether labels
    are classes or numbers, ``options.task`` says; by default :func:`plap.data.labels.looks_numeric_target`.
    """
    if table.height == 0:
        raise InputError(f"{table.path}: the table has no rows")
    bad = BadRows(table, drop=options.drops)
    notes: list[str] = []
    options = _with_columns_of(table, options)
    id_column = find_role(table, options.id, ID, "--id", "the id of a node", notes, without=options.ignore)
    assert id_column is not None
    ids = read_identifiers(table, id_column, bad)
    label_column = _label_column(table, options, notes)
    several = [
        name
        for name in table.columns
        if name.strip().lower().startswith(SEVERAL) and name not in options.ignore
    ]
    if several and label_column is not None:
        raise InputError(
            f"{table.path}: labels are in {label_column!r} and in {several[0]!r}: remove one of them"
        )
    y, class_names = read_labels(table, label_column, several, bad, options, lone_classes, notes)
    rows = np.flatnonzero(bad.kept)
    if not rows.size:
        raise InputError(f"{table.path}: no row is left, because all were dropped")
    roles = {id_column: Role.ID} | dict.fromkeys(several, Role.LABEL)
    if label_column is not None:
        roles[label_column] = Role.LABEL
    for kind in ("ignore", *_KINDS):
        for name in getattr(options, kind):
            if name in roles:
                raise InputError(f"{table.path}: --{kind} names {name!r}, but that is {_WHAT[roles[name]]}")
    roles |= dict.fromkeys(options.ignore, Role.IGNORED)
    rest = [name for name in table.columns if name not in roles]
    notes += bad.notes
    if not bad.kept.all():
        ids, y = ids.gather(rows), y[rows]
    if options.raw_features:
        x, feature_names, said = _read_features(table, rest)
        x = x if x is None or bad.kept.all() else x[rows]
        return Nodes(ids, y, class_names, x, feature_names, (*table.notes, *notes, *said))
    frame = pl.DataFrame([table.column(name) for name in rest])
    if not bad.kept.all():
        frame = frame[rows]
    split = None
    if not options.predicts:  # a model knows what each column is, and has no use for a split
        try:
            split = _take_split(table, frame, options, roles, notes)
        except CellError as error:
            table.fail(int(rows[error.row]), error.column, error.problem)
        categories = table.categories & {*frame.columns}
        frame = frame.with_columns(pl.col(name).cast(pl.Categorical) for name in categories)
    frame = frame.drop(name for name in frame.columns if name in roles)
    columns = NodeColumns(frame, roles, options, table, rows) if frame.width else None
    said = (*table.notes, *notes)
    return Nodes(ids, y, class_names, None, (), said, columns, split)


def _label_column(table: Table, options: TableOptions, notes: list[str]) -> str | None:
    if "label" in options.remembered and find_column(table, (str(options.label).strip().lower(),)) is None:
        return None
    found = find_role(table, options.label, LABEL, "--label", None, notes, without=options.ignore)
    others = other_labels(table.columns, found) if options.label is None else []
    notes += [
        f"{table.path.name}: {found!r} is taken for the label and {name!r} for a feature; --label {name} or "
        f"--ignore {name} changes that."
        for name in others
        if name not in options.ignore
    ]
    return found


def _with_columns_of(table: Table, options: TableOptions) -> TableOptions:
    """The options with the names of columns as the table writes them."""
    named: dict[str, Any] = {
        kind: tuple(named_column(table, name, f"--{kind}") for name in getattr(options, kind))
        for kind in ("ignore", *_KINDS)
    }
    return replace(options, **named)


def _take_split(
    table: Table, frame: pl.DataFrame, options: TableOptions, roles: dict[str, Role], notes: list[str]
) -> SplitColumns | None:
    """The split that columns describe; ``roles`` gets these, and what is called a split and is none."""
    rest = frame.drop({name for kind in _KINDS for name in getattr(options, kind)})
    if options.split is None:
        split = find_split(rest, index=options.index)
    else:
        name = named_column(table, options.split, "--split")
        split = find_split(frame.select(pl.col(name).alias("split")), index=options.index)
        if split is None:
            raise InputError(f"{table.path}: --split names {name!r}, whose cells are not train, val and test")
        split = replace(split, names=(name,))
    if split is not None:
        roles |= dict.fromkeys(split.names, Role.SPLIT)
        notes.append(f"{table.path.name}: the split is taken from {quoted(split.names)}.")
    for name in unread_splits(rest):
        if name not in roles:
            roles[name] = Role.IGNORED
            notes.append(
                f"{table.path.name}: the column {name!r} is not used, because its cells are not train, val "
                f"and test; --categorical {name} makes a feature of it."
            )
    return split


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


_MOST_RELATIONS = 20
_SAMPLED = 1000
"""Rows that are looked at to see whether a column could be weights."""


@dataclass(frozen=True)
class Edges:
    """Edges between nodes 0..N-1 and what these are called."""

    index: NDArray[np.int32]
    """[2, E], sources above targets."""
    weight: NDArray[np.float32] | None
    nodes: Numbering
    notes: tuple[str, ...] = ()
    relation: pl.Series | None = None
    """The name of each edge's relation, where there are several."""


def read_edges(
    table: Table, node_ids: pl.Series | None, options: TableOptions, nodes_path: object = None
) -> Edges:
    """Read edges between the nodes that ``node_ids`` names, or between whatever they name themselves.

    The ends are in the columns ``source`` (or ``src``, ``from``) and ``target`` (or ``dst``, ``to``), the
    weight, 1 if not given, in ``weight`` (or ``w``); of several the first named here.
    """
    bad = BadRows(table, drop=options.drops)
    notes: list[str] = []
    source = find_role(table, options.source, SOURCE, "--source", "the source of an edge", notes)
    target = find_role(table, options.target, TARGET, "--target", "the target of an edge", notes)
    assert source is not None
    assert target is not None
    columns = (source, target)
    if table.height == 0:
        if node_ids is None:
            raise InputError(f"{table.path}: the table has no rows, and no table of nodes is given")
        return Edges(np.zeros((2, 0), dtype=np.int32), None, Numbering(node_ids), tuple(notes))
    weight = _read_weight(table, options, bad, columns, notes)
    ends = tuple(read_identifiers(table, column, bad, distinct_ids=False) for column in columns)
    if node_ids is None:
        ends = same_kind(*ends)
        nodes = Numbering(distinct(*(end.drop_nulls() for end in ends)))
    else:
        *ends_of_kind, node_ids = same_kind(*ends, node_ids)
        ends = tuple(ends_of_kind)
        nodes = Numbering(node_ids)
    index = np.empty((2, table.height), dtype=np.int32)
    for row, (column, ids) in enumerate(zip(columns, ends, strict=True)):
        index[row] = nodes.of(ids.fill_null(0 if ids.dtype == pl.Int64 else "") if ids.null_count() else ids)
        if index[row].min() < 0:
            strange = ids

            def problem(at: int, strange: pl.Series = strange) -> str:
                return f"the node {strange[at]!r} is not in {nodes_path}"

            bad.keep(index[row] >= 0, column, problem)
    relation = _read_relation(table, columns, options, notes)
    notes += _unused(table, columns, options, relation)
    notes += bad.notes
    if not bad.kept.all():
        relation = None if relation is None else relation.filter(pl.Series(bad.kept))
        index = np.ascontiguousarray(index[:, bad.kept])
        weight = None if weight is None else weight[bad.kept]
    return Edges(index, weight, nodes, (*table.notes, *notes), relation)


def _unused(
    table: Table, ends: tuple[str, str], options: TableOptions, relation: pl.Series | None
) -> tuple[str, ...]:
    """Say which columns have no use."""
    weight = options.weight or find_column(table, WEIGHT)
    used = {*ends, weight, None if relation is None else relation.name}
    rest = [name for name in table.columns if name not in used]
    if not rest:
        return ()
    shown = quoted(rest[:5]) + (", …" if len(rest) > 5 else "")
    return (f"{table.path.name}: not used: {shown}.",)


def _read_relation(
    table: Table, ends: tuple[str, str], options: TableOptions, notes: list[str]
) -> pl.Series | None:
    """The relation of each edge, from a column ``type`` or ``relation`` with a few different values.

    For a prediction one value is enough: the model may know it from a table with several.
    """
    name = find_column(table, RELATION)
    if name is None or name in ends:
        return None
    column = table.column(name).cast(pl.String, strict=False).fill_null("(none)")
    count = column.n_unique()
    if not (1 if options.predicts else 2) <= count <= _MOST_RELATIONS:
        return None
    if not options.predicts:
        notes.append(f"{table.path.name}: {name!r} has {count} relations, each of which gets its own weight.")
    return column


def _read_weight(
    table: Table, options: TableOptions, bad: BadRows, ends: tuple[str, str], notes: list[str]
) -> NDArray[np.float32] | None:
    name = find_role(table, options.weight, WEIGHT, "--weight", None, notes)
    if name is None:
        candidates = [other for other in table.columns if other not in ends and _like_weights(table, other)]
        if candidates:
            notes.append(
                f"{table.path.name}: all edges count the same; {quoted(candidates[:5])} may be weights: "
                f"--weight {candidates[0]} uses it."
            )
        return None
    column = table.column(name)
    if not options.raw_features:
        column, written = as_written(column, decimal_commas_in(table))
        if written:
            notes.append(f"{table.path.name}: the weights in {name!r} are written with {written}.")
    if options.drops:
        bad.keep(finite_numbers(column), name, lambda row: f"{column[row]!r} is not a finite number")
        column = column.set(pl.Series(~bad.kept), "1" if column.dtype == pl.String else 1)
    weight = numbers(table, column)
    bad.keep(weight > 0, name, lambda row: f"{column[row]} is not a positive weight")
    return weight


def _like_weights(table: Table, name: str) -> bool:
    """Whether the first rows of a column are positive numbers that differ."""
    if "id" in name.strip().lower().replace("-", "_").split("_"):
        return False
    head = table.head(name, _SAMPLED)
    if head.dtype != pl.String and not head.dtype.is_numeric():
        return False
    values = as_written(head)[0].cast(pl.Float64, strict=False)
    if values.null_count() or not values.len():
        return False
    return bool((values > 0).all()) and values.n_unique() > 1
