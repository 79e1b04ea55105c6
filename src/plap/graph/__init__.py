"""The one validated graph, the way into it, and the ways out of it."""

from plap.graph.graph import Graph, GraphInfo, SelfLoops, Symmetrize, check_graph

__all__ = ["Graph", "GraphInfo", "SelfLoops", "Symmetrize", "check_graph"]
