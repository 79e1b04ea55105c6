"""Which column of a table is what: as the user says, or by its name; guesses are stated unless obvious."""

from __future__ import annotations

from collections.abc import Sequence

from plap.checks import near_miss
from plap.data.tables.table_file import Table, find_column, need_column, shown_columns
from plap.errors import InputError

ID = ("id", "node", "node_id")
LABEL = ("label", "class", "target", "labels")
SOURCE = ("source", "src", "from", "source_id", "src_id", "from_id", "node1", "node_1", "id1", "u", "sender")
TARGET = ("target", "dst", "to", "target_id", "dst_id", "to_id", "node2", "node_2", "id2", "v", "receiver")
WEIGHT = ("weight", "w")
RELATION = ("type", "relation", "edge_type")
_USUAL = {"--id": 3, "--label": 2, "--source": 3, "--target": 3, "--weight": 2}
"""How many of the names above need no note when they are taken for what they say."""


def find_role(
    table: Table, given: str | None, names: tuple[str, ...], flag: str, what: str | None, notes: list[str]
) -> str | None:
    """The column with a role: as the user says, or by its name; a guess that is not obvious is noted."""
    if given is not None:
        return named_column(table, given, flag)
    column = find_column(table, names) if what is None else need_column(table, names, what, flag)
    if column is not None and column.strip().lower() not in names[: _USUAL[flag]]:
        said = f"the column {column!r} is taken for the {flag[2:]}; {flag} names another"
        notes.append(f"{table.path.name}: {said}.")
    return column


def named_column(table: Table, name: str, flag: str) -> str:
    """A column that the user named."""
    found = name if name in table.columns else find_column(table, (name.strip().lower(),))
    if found is None:
        raise InputError(
            f"{table.path}: {flag} names the column {name!r}, which is not there"
            f"{near_miss(name, table.columns)}; the columns are {shown_columns(table)}"
        )
    return found


def quoted(names: Sequence[str]) -> str:
    """Names for a sentence."""
    return ", ".join(repr(name) for name in names)
