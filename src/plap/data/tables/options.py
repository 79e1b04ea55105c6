"""Which column of a user's tables is what, and how its cells are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from plap.checks import check_choice
from plap.errors import InputError

OnBadRows = Literal["error", "drop"]
LabelKind = Literal["classes", "numbers"]
STORED = ("id", "label", "source", "target", "weight", "split", "task", "unknown", "day_first")
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
    on_bad_rows: OnBadRows = "error"
    """Refuse a row that cannot be used, or drop it and count it."""
    task: LabelKind | None = None
    """Whether labels are classes or numbers; by default whichever they look like."""
    unknown: str | None = None
    """Another mark of an unknown label, besides an empty cell and -1."""
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
