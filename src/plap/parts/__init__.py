"""Graphs in parts: METIS partitions as mini-batches, with a halo where results must be exact."""

from plap.parts.loader import PartLoader, neighbour_loader, pyg_graphs
from plap.parts.metis import partition
from plap.parts.subgraph import Subgraph, induced, with_halo

__all__ = ["PartLoader", "Subgraph", "induced", "neighbour_loader", "partition", "pyg_graphs", "with_halo"]
