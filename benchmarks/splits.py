"""The splits on which searches are compared."""

from __future__ import annotations

from plap.data import GraphData, Split, split
from plap.reporting.figures.figure import HOMOPHILIC


def usual_split(data: GraphData, number: int) -> Split:
    """The published masks of a filtered graph; sparse splits of homophilic graphs, dense ones of others."""
    if data.name.endswith("-filtered"):
        return split(data, "public", index=number)
    return split(data, preset="sparse" if data.name in HOMOPHILIC else "dense", seed=number)
