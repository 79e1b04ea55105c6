"""Arguments that several functions of this folder take."""

from __future__ import annotations

from numbers import Integral

from plap.errors import InputError
from plap.graph import Graph


def check_graph(graph: Graph) -> Graph:
    """Return ``graph`` if it is a :class:`plap.Graph`."""
    if not isinstance(graph, Graph):
        raise InputError(f"graph must be a plap.Graph, not {type(graph).__name__}")
    return graph


def check_count(name: str, value: int, least: int) -> int:
    """Return ``value`` if it is an integer of ``least`` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be an integer of {least} or more, not {value!r}")
    return int(value)
