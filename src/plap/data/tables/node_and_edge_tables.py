"""The table of nodes (ids, labels, a split, columns that become features) and that of edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns import CellError, Role, SplitColumns, find_split
from plap.data.labels import encode_labels, is_integer, looks_numeric_target
from plap.data.tables.assembly import NodeColumns
from plap.data.tables.cells import (
    BadRows,
    Numbering,
    as_written,
    distinct,
    finite_numbers,
    is_numeric,
    is_vector,
    numbers,
    read_identifiers,
    same_kind,
    vectors,
)
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
    quoted,
)
from plap.data.tables.table_file import Table, find_column
from plap.errors import InputError

SEVERAL = "label:"
"""What the names of columns begin with where a node may have several labels."""


@dataclass(frozen=True)
class Nodes:
    """What a table of nodes says; ``x`` is None if it has no features, or if these are raw columns."""

    ids: pl.Series
    y: NDArray[np.int64] | NDArray[np.float32] | NDArray[np.float64]
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
    id_column = find_role(table, options.id, ID, "--id", "the id of a node", notes)
    assert id_column is not None
    ids = read_identifiers(table, id_column, bad)
    label_column = _label_column(table, options, notes)
    several = [name for name in table.columns if name.strip().lower().startswith(SEVERAL)]
    if several and label_column is not None:
        raise InputError(
            f"{table.path}: labels are in {label_column!r} and in {several[0]!r}, and one must go"
        )
    numeric = None if label_column is None else _read_numbers(table, label_column, bad, options, notes)
    y: NDArray[np.int64] | NDArray[np.float32] | NDArray[np.float64]
    class_names: tuple[str, ...]
    if numeric is not None:
        y, class_names = numeric, ()
    elif several:
        y, class_names = _read_several(table, several)
    else:
        y, class_names = _read_labels(table, label_column, bad, options, lone_classes, notes)
    rows = np.flatnonzero(bad.kept)
    if not rows.size:
        raise InputError(f"{table.path}: no row is left, because all were dropped")
    roles = {id_column: Role.ID} | dict.fromkeys(several, Role.LABEL)
    if label_column is not None:
        roles[label_column] = Role.LABEL
    for name in options.ignore:
        roles[named_column(table, name, "--ignore")] = Role.IGNORED
    for flag in ("categorical", "numeric", "text"):
        for name in getattr(options, flag):
            named_column(table, name, f"--{flag}")
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
    try:
        split = _split(table, frame, options)
    except CellError as error:
        table.fail(int(rows[error.row]), error.column, error.problem)
    if split is not None:
        roles |= dict.fromkeys(split.names, Role.SPLIT)
        frame = frame.drop(*split.names)
        notes.append(f"{table.path.name}: the split is taken from {quoted(split.names)}.")
    columns = NodeColumns(frame, roles, options, table, rows) if frame.width else None
    said = (*table.notes, *notes)
    return Nodes(ids, y, class_names, None, (), said, columns, split)


def _label_column(table: Table, options: TableOptions, notes: list[str]) -> str | None:
    if _may_be_absent(table, options, "label"):
        return None
    return find_role(table, options.label, LABEL, "--label", None, notes)


def _may_be_absent(table: Table, options: TableOptions, name: str) -> bool:
    """Whether a fitted model remembers this option, and the column that it names is not in the new table."""
    column = getattr(options, name)
    return name in options.remembered and find_column(table, (column.strip().lower(),)) is None


def _split(table: Table, frame: pl.DataFrame, options: TableOptions) -> SplitColumns | None:
    if options.split is None or _may_be_absent(table, options, "split"):
        return find_split(frame, index=options.index)
    name = named_column(table, options.split, "--split")
    found = find_split(frame.select(pl.col(name).alias("split")), index=options.index)
    if found is None:
        raise InputError(f"{table.path}: --split names {name!r}, whose cells are not train, val and test")
    return replace(found, names=(name,))


def _read_numbers(
    table: Table, name: str, bad: BadRows, options: TableOptions, notes: list[str]
) -> NDArray[np.float64] | None:
    """Labels that are numbers, NaN where unknown; None where they are classes."""
    column = table.column(name)
    if options.task == "classes" or not (column.dtype.is_numeric() or column.dtype == pl.String):
        return None
    if options.unknown is not None and column.dtype == pl.String:
        column = column.set((column == options.unknown.strip()).fill_null(False), None)
    cells, written = (column, "") if options.raw_features else as_written(column)
    values = cells.cast(pl.Float64, strict=False)
    wrong = (values.is_null() & column.is_not_null()).to_numpy()
    found: NDArray[np.float64] = values.fill_null(float("nan")).to_numpy().copy()
    wrong |= np.isinf(found)
    if options.task is None and (wrong.any() or not looks_numeric_target(found)):
        return None
    if not options.keep_labels:
        return np.where(wrong, np.nan, found)
    bad.keep(~wrong, name, lambda row: f"{column[row]} is not a finite number")
    if written:
        notes.append(f"{table.path.name}: the numbers in {name!r} are written with {written}.")
    if options.task is None:
        different = np.unique(found[~np.isnan(found)]).size
        notes.append(
            f"{table.path.name}: the column {name!r} holds {different} different numbers, so a number is "
            "predicted for each node; --task classes takes them for classes."
        )
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
        y[known, k] = numbers(table, column.fill_null("0" if column.dtype == pl.String else 0))[known]
        wrong = known & (y[:, k] != 0) & (y[:, k] != 1)
        if wrong.any():
            row = int(wrong.argmax())
            table.fail(row, name, f"{column[row]} is neither 0 nor 1")
    return y, tuple(name.strip()[len(SEVERAL) :].strip() for name in names)


def _read_labels(
    table: Table,
    name: str | None,
    bad: BadRows,
    options: TableOptions,
    lone_classes: bool,
    notes: list[str],
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Class numbers, -1 where unknown, and the names of the classes."""
    unknown = np.full(table.height, -1, dtype=np.int64)
    if name is None:
        return unknown, ()
    try:
        return _classes(table, name, bad, options, lone_classes, notes)
    except InputError as error:
        if options.keep_labels:
            raise
        notes.append(f"Labels were not read: {error}.")
        return unknown, ()


def _classes(
    table: Table, name: str, bad: BadRows, options: TableOptions, lone_classes: bool, notes: list[str]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
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
    if options.unknown is not None:
        text[text == options.unknown.strip()] = ""
    values = {str(value) for value in np.unique(text) if value}
    if values == {"-1", "1"}:
        notes.append(f"{table.path.name}: -1 and 1 in {name!r} are two classes, so -1 is not unknown here.")
    elif all(is_integer(value) for value in values):
        text[text == "-1"] = ""  # the usual number for "unknown", as everywhere in plap
    text[~bad.kept] = ""
    lone: list[str] = []

    def fail(row: int, problem: str) -> None:
        if lone_classes or not options.keep_labels:
            return
        if not options.drops:
            advice = "; --on-bad-rows drop makes its label unknown"
            table.fail(row, name, problem + advice)
        lone.append(str(text[row]))

    y, names = encode_labels(text, fail)
    if lone:
        counts = np.bincount(y[y >= 0], minlength=len(names))
        lost = [each for each, count in zip(names, counts, strict=True) if count == 1]
        text[np.isin(text, lost)] = ""
        notes.append(f"{table.path.name}: seen once in {name!r} and so made unknown: {quoted(lost[:5])}.")
        y, names = encode_labels(text, fail)
    return y, names


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
    relation = _read_relation(table, columns, notes)
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


def _read_relation(table: Table, ends: tuple[str, str], notes: list[str]) -> pl.Series | None:
    """The relation of each edge, from a column ``type`` or ``relation`` with a few different values."""
    name = find_column(table, RELATION)
    if name is None or name in ends:
        return None
    column = table.column(name).cast(pl.String, strict=False).fill_null("(none)")
    count = column.n_unique()
    if not 1 < count <= _MOST_RELATIONS:
        return None
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
        column, written = as_written(column)
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
