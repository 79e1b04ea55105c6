"""The paper's tables: what was published, all of them at once, how long they take, and what won."""

import importlib
from typing import TYPE_CHECKING, Any

from plap.experiments.published import PublishedCell, PublishedTable, load_published, published_tables

if TYPE_CHECKING:
    from plap.experiments.all_tables import reproduce_all
    from plap.experiments.estimation import DatasetEstimate, Estimate, estimate
    from plap.experiments.winners import best

__all__ = [
    "DatasetEstimate",
    "Estimate",
    "PublishedCell",
    "PublishedTable",
    "best",
    "estimate",
    "load_published",
    "published_tables",
    "reproduce_all",
]

_LAZY = {
    "DatasetEstimate": "estimation",
    "Estimate": "estimation",
    "best": "winners",
    "estimate": "estimation",
    "reproduce_all": "all_tables",
}
"""Where a name is defined that the processes of a table do not need."""


def __getattr__(name: str) -> Any:
    """Import what needs Polars and the reports only when asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'plap.experiments' has no attribute {name!r}")
    return getattr(importlib.import_module(f"plap.experiments.{_LAZY[name]}"), name)
