"""Why cells differ from the published ones: a cause for each, as data in ``differences.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from plap.checks import check_choice
from plap.data.dataset import DatasetName
from plap.errors import InputError
from plap.reporting.table_content import Agreement

Cause = Literal["undirected", "random-draw", "published-operator", "published-search", "effort", "unknown"]
CAUSES: dict[Cause, str] = {
    "undirected": "graph made undirected",
    "random-draw": "another random draw",
    "published-operator": "published operator",
    "published-search": "published search",
    "effort": "less effort than in the paper",
    "unknown": "not explained",
}
"""What a reader sees."""
_FIELDS = {"datasets", "models", "agreement", "cause", "note"}


@dataclass(frozen=True)
class Difference:
    """Cells of a table that differ from the published ones for one reason."""

    cause: Cause
    note: str = ""
    """What is known about it, in a sentence."""
    datasets: tuple[str, ...] = ()
    """Columns, or datasets without their parameters; empty: all."""
    models: tuple[str, ...] = ()
    """Rows; empty: all."""
    agreement: Agreement | None = None
    """``above`` or ``below``; None: both."""

    def explains(self, model: str, dataset: str, agreement: Agreement) -> bool:
        """Whether it is the reason for this cell."""
        names = {dataset, DatasetName.parse(dataset).base}
        return (
            (not self.datasets or bool(names & set(self.datasets)))
            and (not self.models or model in self.models)
            and self.agreement in (None, agreement)
        )


def find_cause(table: str, model: str, dataset: str, agreement: Agreement) -> Difference | None:
    """Why a cell of a table differs: the first entry that fits, or ``unknown``; None for one that does not.

    Examples
    --------
    >>> found = find_cause("heterophilic", "gcn", "chameleon", "above")
    >>> found.cause, CAUSES[found.cause]
    ('undirected', 'graph made undirected')
    >>> find_cause("heterophilic", "mlp", "chameleon", "above").cause
    'unknown'
    >>> find_cause("heterophilic", "gcn", "chameleon", "agrees")
    """
    if agreement not in ("above", "below"):
        return None
    fitting = (entry for entry in differences(table) if entry.explains(model, dataset, agreement))
    return next(fitting, Difference("unknown"))


def differences(table: str) -> tuple[Difference, ...]:
    """What is known about a table, the most particular first; nothing about a user's own."""
    return _read().get(table, ())


@cache
def _read() -> dict[str, tuple[Difference, ...]]:
    text = (files("plap.experiments") / "differences.toml").read_text(encoding="utf-8")
    return {
        table: tuple(_parse(table, raw) for raw in entries) for table, entries in tomllib.loads(text).items()
    }


def _parse(table: str, raw: Mapping[str, Any]) -> Difference:
    unknown = sorted(set(raw) - _FIELDS)
    if unknown:
        raise InputError(f"differences.toml: {table}: unknown field {unknown[0]!r}")
    return Difference(
        check_choice(f"differences.toml: {table}: cause", raw.get("cause", ""), get_args(Cause)),
        raw.get("note", ""),
        tuple(raw.get("datasets", ())),
        tuple(raw.get("models", ())),
        raw.get("agreement"),
    )
