"""Graphs in: benchmarks, cSBM, a user's own tables, splits, noise, homophily."""

from plap.data.graph_data import FixedSplits, GraphData, Provenance

__all__ = ["FixedSplits", "GraphData", "Provenance"]
