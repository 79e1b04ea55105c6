"""From what a user writes on the command line to a graph."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from plap.data.benchmarks.loading import load
from plap.data.benchmarks.registry import UnknownBenchmarkError
from plap.data.dataset import GraphData
from plap.data.tables.collections import load_collection
from plap.data.tables.in_memory import read_tables
from plap.data.tables.loading import is_collection, load_folder, load_tables
from plap.data.tables.npz import load_npz
from plap.data.tables.options import TableOptions
from plap.data.tables.table_file import SUFFIXES
from plap.errors import InputError

PathLike = str | os.PathLike[str]


def as_graph_data(source: Any, options: TableOptions | None = None) -> GraphData:
    """What :func:`plap.fit` takes as data: a GraphData as it is, and everything else read.

    Parameters
    ----------
    source : GraphData, str, path, (nodes, edges), NetworkX graph or PyG Data
        Text and paths as :func:`open_graph` has them; tables and graphs as :func:`plap.read_tables`.
    options : TableOptions, optional
        How tables are read.
    """
    if isinstance(source, GraphData):
        return source
    if isinstance(source, str | os.PathLike):
        return open_graph(os.fspath(source), options)
    given = {} if options is None else vars(options)
    if isinstance(source, tuple) and len(source) == 2:
        return read_tables(*source, **given)
    return read_tables(source, **given)


def open_graph(
    graph: str,
    options: TableOptions | None = None,
    *,
    nodes: PathLike | None = None,
    root: PathLike | None = None,
) -> GraphData:
    """Load a folder, an ``.npz``, a table of edges, or a benchmark by name; what exists as a path is a path.

    A folder of such folders is a collection of graphs, see :func:`plap.data.tables.load_collection`.

    Parameters
    ----------
    graph : str
    options : TableOptions, optional
        How tables are read.
    nodes : path, optional
        Table of nodes, if ``graph`` is a table of edges.
    root : path, optional
        Where the files of benchmarks are looked for first, see :func:`plap.data.load`.
    """
    path = Path(graph)
    is_table = path.name.lower().endswith(SUFFIXES)
    if nodes is not None and not is_table:
        raise InputError(f"--nodes goes with a file of edges, and {graph} is none")
    if path.is_dir():
        return load_collection(path, options) if is_collection(path) else load_folder(path, options)
    if is_table:
        return load_tables(path, nodes, options)
    if path.suffix.lower() == ".npz":
        return load_npz(path, options)
    if path.exists():
        raise InputError(
            f"{graph}: a graph is a folder, an .npz, or a table that ends in {', '.join(SUFFIXES)}"
        )
    if path.parent != Path() or graph.startswith(".") or graph.endswith(("/", os.sep)):
        raise InputError(f"{graph}: there is no such file or folder")
    if tables := options and options.naming_columns:
        raise InputError(f"{graph} is no table, so {tables} does not apply to it")
    try:
        return load(graph, root)
    except UnknownBenchmarkError as error:
        raise InputError(f"there is no file, folder or benchmark named {graph!r}: {error.hint}") from None
