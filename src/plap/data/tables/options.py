"""Which column of a user's tables is what, and how its cells are read; guesses are stated unless obvious."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from plap.checks import check_choice, near_miss
from plap.data.tables.table_file import Table, find_column, refuse_without, shown_columns
from plap.errors import InputError

OnBadRows = Literal["error", "drop"]
LabelKind = Literal["classes", "numbers"]
STORED = (
    "id", "label", "source", "target", "weight", "task", "unknown", "day_first", "on_bad_rows",
)  # fmt: skip
"""Options that a fitted model remembers, so that the tables of a prediction are read as those of the fit."""


@dataclass(frozen=True)
class TableOptions:
    """How tables of nodes and edges are read; what is not given is guessed, and a guess is stated.

    Examples
    --------
    >>> TableOptions(id="customer", categorical=["mcc"]).categorical
    ('mcc',)
    >>> TableOptions(on_bad_rows="skip")
    Traceback (most recent call last):
    plap.errors.InputError: on_bad_rows must be one of error, drop, not 'skip'
    """

    id: str | None = None
    """Column of the nodes' ids."""
    label: str | None = None
    """Column of the labels."""
    source: str | None = None
    """Column of the edges' first ends."""
    target: str | None = None
    """Column of the edges' second ends."""
    weight: str | None = None
    """Column of the edges' weights."""
    split: str | None = None
    """Column that says train, val or test for each node."""
    ignore: Collection[str] = ()
    """Columns of the nodes that are not used."""
    categorical: Collection[str] = ()
    """Columns of the nodes whose values are categories, whatever they look like."""
    numeric: Collection[str] = ()
    text: Collection[str] = ()
    raw_features: bool = False
    """Take the numeric columns as they are, and refuse missing and odd cells."""
    on_bad_rows: OnBadRows | None = None
    """Refuse a row that cannot be used (the default), or drop it and count it."""
    task: LabelKind | None = None
    """Whether labels are classes or numbers; by default whichever they look like."""
    unknown: str | int | float | None = None
    """The mark of an unknown label, in place of -1, N/A and the like; an empty cell is always unknown."""
    day_first: bool | None = None
    """Whether 03/04/2024 is the third of April; by default it is, where a column leaves it open."""
    index: int = 0
    """Which split, where masks hold several."""
    keep_labels: bool = True
    """Whether labels matter: where they do not, a label that cannot be used is unknown instead of refused."""
    encode: bool = True
    """Whether columns become features at once, scaled by all rows; a fit scales them by its training rows."""

    remembered: Collection[str] = ()
    """Options that a fitted model remembered; a column that these name may be absent if it is not needed."""

    def __post_init__(self) -> None:
        if self.on_bad_rows is not None:
            check_choice("on_bad_rows", self.on_bad_rows, OnBadRows)
        if self.task is not None:
            check_choice("task", self.task, LabelKind)
        for name in ("ignore", "categorical", "numeric", "text"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))

    @property
    def drops(self) -> bool:
        """Whether a row that cannot be used is dropped."""
        return self.on_bad_rows == "drop"

    @property
    def predicts(self) -> bool:
        """Whether tables are read for a model that exists already."""
        return not self.keep_labels

    @property
    def naming_columns(self) -> str:
        """The first option that names a column of a table, for a sentence about what has none; or ""."""
        for name in ("id", "label", "source", "target", "weight", "ignore", "categorical"):
            value = getattr(self, name)
            if value:
                return f"{name} = {value if isinstance(value, str) else ', '.join(value)}"
        return ""

    def stored(self) -> dict[str, Any]:
        """What a fitted model remembers, as plain JSON values."""
        return {name: value for name, value in asdict(self).items() if name in STORED and value is not None}

    def following(self, stored: Mapping[str, Any]) -> TableOptions:
        """These options, and where one is not given, what a fitted model remembers."""
        missing = {name: value for name, value in stored.items() if getattr(self, name, None) is None}
        known = {entry.name for entry in fields(self)}
        if not set(missing) <= known:
            raise InputError("the model remembers options of its tables that this version does not have")
        return replace(self, **missing, remembered=tuple(missing))


ID = ("id", "node", "node_id")
LABEL = ("label", "class", "target", "labels")
SOURCE = ("source", "src", "from", "source_id", "src_id", "from_id", "node1", "node_1", "id1", "u", "sender")
TARGET = ("target", "dst", "to", "target_id", "dst_id", "to_id", "node2", "node_2", "id2", "v", "receiver")
WEIGHT = ("weight", "w")
RELATION = ("type", "relation", "edge_type")
_USUAL = {"--id": 3, "--label": 2, "--source": 3, "--target": 3, "--weight": 2}
"""How many of the names above need no note when they are taken for what they say."""
_MISTAKEN = {"--target": "--target is the node that an edge leads to; --label names the column to predict"}
"""What is said of an option that is easily taken for another."""


def other_labels(columns: Sequence[str], chosen: str | None) -> list[str]:
    """Columns beside the chosen one that are called what a column of labels usually is."""
    return [name for name in columns if chosen and name != chosen and name.strip().lower() in LABEL]


def find_role(
    table: Table,
    given: str | None,
    names: tuple[str, ...],
    flag: str,
    what: str | None,
    notes: list[str],
    *,
    without: Collection[str] = (),
) -> str | None:
    """The column with a role: as the user says, or by its name; a guess that is not obvious is noted.

    Columns of ``without`` are not guessed, and not to be named either.
    """
    if given is not None:
        named = named_column(table, given, flag)
        if named in without:
            raise InputError(f"{table.path}: {flag} and --ignore both name the column {named!r}")
        return named
    column = find_column(table, names, without)
    if column is None and what is not None:
        refuse_without(table, names, what, flag)
    if column is not None and column.strip().lower() not in names[: _USUAL[flag]]:
        said = f"the column {column!r} is taken for the {flag[2:]}; {flag} names another"
        notes.append(f"{table.path.name}: {said}.")
    return column


def named_column(table: Table, name: str, flag: str) -> str:
    """A column that the user named."""
    found = name if name in table.columns else find_column(table, (name.strip().lower(),))
    if found is None:
        advice = f" ({_MISTAKEN[flag]})" if flag in _MISTAKEN else ""
        raise InputError(
            f"{table.path}: {flag} names the column {name!r}, which is not there"
            f"{near_miss(name, table.columns)}; the columns are {shown_columns(table)}{advice}"
        )
    return found


def quoted(names: Sequence[str]) -> str:
    """Names for a sentence."""
    return ", ".join(repr(name) for name in names)
