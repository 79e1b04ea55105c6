"""The numbers that the paper printed, digit by digit: one TOML file per table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from plap.checks import did_you_mean
from plap.errors import InputError

PERCENT = 100.0
"""A perfect score in a table of percentages."""
_FOLDER = files("plap.experiments") / "tables_published"


@dataclass(frozen=True)
class PublishedCell:
    """One cell as printed; it was left empty if it has no mean and did not run out of memory."""

    mean: Decimal | None = None
    """The number itself, with the digits that were printed: ``Decimal("84.50")`` is not shortened."""
    plus_minus: Decimal | None = None
    """What is printed after ±; the paper calls it the standard deviation."""
    bold: bool = False
    """The best, or near the best if it is underlined too."""
    underline: bool = False
    """Said to be within the 95 % interval of the best."""
    out_of_memory: bool = False
    total: Decimal | None = None
    """In tables of running times: seconds per run, where ``mean`` is milliseconds per epoch."""


@dataclass(frozen=True)
class PublishedTable:
    """One table of the paper, with the project's own names for its models and datasets."""

    name: str
    caption: str
    """What the table shows, in our words."""
    unit: str
    rows: tuple[str, ...]
    """Models, top to bottom; in the table ``datasets`` its rows are datasets."""
    columns: tuple[str, ...]
    """Datasets as :func:`plap.data.load` names them; ``:r=0.5`` stands for half of the edges made random."""
    cells: tuple[tuple[PublishedCell, ...], ...]
    """A tuple for each row, a cell for each column."""
    families: tuple[tuple[str, ...], ...]
    """Rows that are compared with each other: the paper marks the best of every family."""
    label: str | None = None
    """The table's ``\\label`` in the paper's source; two tables have none."""
    runs: int | None = None
    """Number of runs per mean, where the paper gives it."""
    split: str | None = None
    """``sparse`` or ``dense`` as in :data:`plap.data.splits.PRESETS`, or the rule in words."""
    hidden_units: int | None = None
    """As the paper gives for all of its models but GAT."""
    full_score: float = PERCENT
    """How a perfect score would be printed in this table: 100 or 1."""
    notes: tuple[str, ...] = ()
    """What a reader should know who compares with this table."""

    def cell(self, model: str, dataset: str) -> PublishedCell:
        """The cell of a row and a column.

        Examples
        --------
        >>> cell = load_published("csbm-sparse").cell("pgnn-2.0", "csbm:phi=-0.5")
        >>> print(cell.mean, cell.plus_minus, cell.bold)
        84.93 0.39 True
        """
        row = _find(model, self.rows, f"row of the published table {self.name}")
        column = _find(dataset, self.columns, f"column of the published table {self.name}")
        return self.cells[row][column]


def published_tables() -> tuple[str, ...]:
    """Names of all published tables, in alphabetical order.

    Examples
    --------
    >>> [name for name in published_tables() if name.startswith("csbm")]
    ['csbm-dense', 'csbm-sparse']
    """
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def load_published(name: str) -> PublishedTable:
    """Read a table of the paper.

    Parameters
    ----------
    name : str
        One of :func:`published_tables`, in upper or lower case, with ``-`` or ``_``.

    Examples
    --------
    >>> table = load_published("heterophilic")
    >>> table.runs, table.cell("gcn", "texas").mean
    (100, Decimal('56.54'))
    """
    key = name.strip().lower().replace("_", "-")
    names = published_tables()
    return _read(names[_find(key, names, "published table")])


@cache
def _read(name: str) -> PublishedTable:
    raw = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    rows, columns = tuple(raw["rows"]), tuple(raw["columns"])
    return PublishedTable(
        name=name,
        caption=raw["caption"],
        unit=raw["unit"],
        rows=rows,
        columns=columns,
        cells=tuple(tuple(_cell(raw["cells"][row][column]) for column in columns) for row in rows),
        families=tuple(tuple(family) for family in raw.get("families", [rows])),
        label=raw.get("label"),
        runs=raw.get("runs"),
        split=raw.get("split"),
        hidden_units=raw.get("hidden_units"),
        full_score=raw.get("full_score", PERCENT),
        notes=tuple(raw.get("notes", ())),
    )


def _cell(raw: Mapping[str, Any]) -> PublishedCell:
    fields: dict[str, Any] = {
        key: Decimal(value) if isinstance(value, str) else value for key, value in raw.items()
    }
    return PublishedCell(**fields)


def _find(name: str, known: Sequence[str], what: str) -> int:
    if name in known:
        return known.index(name)
    raise InputError(f"there is no {what} named {name!r}: {did_you_mean(name, known)}")
