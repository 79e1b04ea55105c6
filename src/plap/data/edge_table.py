"""The table of edges: source, target, weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from plap.data.identifiers import Numbering, distinct, read_identifiers, same_kind
from plap.data.numeric_columns import numbers
from plap.data.table_file import Table, find_column, need_column
from plap.errors import InputError

if TYPE_CHECKING:
    import polars as pl

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
