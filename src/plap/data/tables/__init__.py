"""People's own graphs: tables of edges and nodes, NPZ files, folders of graphs."""

from plap.data.tables.collections import load_collection, split_graphs
from plap.data.tables.in_memory import read_tables
from plap.data.tables.loading import is_collection, load_folder, load_tables
from plap.data.tables.npz import load_npz
from plap.data.tables.options import TableOptions

__all__ = [
    "TableOptions",
    "is_collection",
    "load_collection",
    "load_folder",
    "load_npz",
    "load_tables",
    "read_tables",
    "split_graphs",
]
