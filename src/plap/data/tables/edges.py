"""The table of edges: ends, weights and, where there are several, relations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.tables.cells import (
    BadRows,
    Numbering,
    as_written,
    distinct,
    finite_numbers,
    numbers,
    read_identifiers,
    same_kind,
)
from plap.data.tables.options import TableOptions
from plap.data.tables.roles import RELATION, SOURCE, TARGET, WEIGHT, find_role, quoted
from plap.data.tables.table_file import Table, find_column
from plap.errors import InputError

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
