"""Several graphs with the same features and labels: a folder of folders, as one disjoint union."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.data.dataset import FixedSplits, GraphData, Provenance
from plap.data.labels import Names, encode_labels
from plap.data.sampling import generator
from plap.data.splits import Split
from plap.data.tables.assembly import NodeColumns, encode_columns
from plap.data.tables.loading import graph_folders, load_folder, only_table
from plap.data.tables.options import TableOptions
from plap.data.tables.table_file import Table, find_column, open_table
from plap.errors import InputError
from plap.graph import Graph
from plap.sparse import compact

PathLike = str | os.PathLike[str]

SETS = ("train", "val", "test")
_NOTES = 5
_VAL_SHARE = _TEST_SHARE = 0.2


def load_collection(path: PathLike, options: TableOptions | None = None) -> GraphData:
    r"""Load a folder of graph folders as one graph of several components.

    Each is read by :func:`plap.data.load_folder`; all must have the same columns, and either one class per
    node or several labels, which go together by their names. A graph may be without any labels. A node is
    called ``graph/node``.

    ``split.csv`` (or ``.tsv``, ``.parquet``) beside the folders says which graphs are for what, in the
    columns ``graph`` and ``split`` (``train``, ``val``, ``test``; empty or absent: for none), once each.

    Returns
    -------
    GraphData
        ``graph_of_node`` numbers the graphs in the order of their names.

    Examples
    --------
    >>> import tempfile
    >>> scratch = tempfile.TemporaryDirectory()
    >>> for name in ("a", "b", "c"):
    ...     folder = Path(scratch.name) / name
    ...     folder.mkdir()
    ...     _ = (folder / "edges.csv").write_text("source,target\n1,2\n")
    ...     _ = (folder / "nodes.csv").write_text(f"id,label,age\n1,x,30\n2,{name},40\n")
    >>> data = load_collection(scratch.name)
    >>> data.class_names, data.graph_of_node.tolist(), data.node_ids[:3]
    (('a', 'b', 'c', 'x'), [0, 0, 1, 1, 2, 2], ('a/1', 'a/2', 'b/1'))
    """
    folder = Path(path)
    folders = graph_folders(folder)
    if not folders:
        raise InputError(f"{folder}: there is no folder with a graph in it")
    options = options or TableOptions()
    graphs = [load_folder(each, replace(options, encode=False), lone_classes=True) for each in folders]
    for each, data in zip(folders[1:], graphs[1:], strict=True):
        _check_features(folders[0], graphs[0], each, data)
    sizes = torch.tensor([data.graph.num_nodes for data in graphs])
    graph_of_node = torch.repeat_interleave(torch.arange(len(graphs)), sizes)
    y, class_names = _merged_labels(folders, graphs)
    names = [each.name for each in folders]
    ids = [f"{name}/{node}" for name, data in zip(names, graphs, strict=True) for node in data.node_ids]
    data = GraphData(
        name=folder.resolve().name,
        graph=_union([data.graph for data in graphs]),
        x=compact(torch.cat([data.x.to_dense() for data in graphs])),
        y=y,
        class_names=class_names,
        node_ids=tuple(ids),
        feature_names=graphs[0].feature_names,
        splits=_read_split(folder, names, graph_of_node),
        graph_of_node=graph_of_node,
        provenance=_provenance(folder, names, graphs),
        columns=_merged_columns(graphs),
    )
    return encode_columns(data, torch.ones(len(ids), dtype=torch.bool)) if options.encode else data


def split_graphs(data: GraphData, seed: int = 0) -> Split:
    """Share out whole graphs by chance, a fifth each for validation and for testing, one at least.

    Graphs without any label are in no set, and nor are nodes without one.
    """
    if data.graph_of_node is None:
        raise InputError(f"{data.name} is one graph, and only several can be shared out whole")
    known = data.known
    graphs = data.graph_of_node[known].unique()
    count = graphs.shape[0]
    if count < len(SETS):
        raise InputError(
            f"{data.name} has labels in {count} of its graphs; training, validation and test need one each"
        )
    val, test = (max(1, round(share * count)) for share in (_VAL_SHARE, _TEST_SHARE))
    order = graphs[torch.from_numpy(generator(seed).permutation(count))]
    chosen = order[val + test :], order[:val], order[val : val + test]
    train, val_mask, test_mask = (torch.isin(data.graph_of_node, each) & known for each in chosen)
    return Split("graphs", train, val_mask, test_mask, seed=seed)


def _check_features(first: Path, mine: GraphData, other: Path, others: GraphData) -> None:
    """Refuse a graph with other columns or features than the first one has."""
    expected, found = _column_names(mine), _column_names(others)
    missing = _missing(first, expected, other, found)
    if missing is not None:
        raise InputError(
            f"{missing.lacks}: there is no feature {missing.name!r}, which {missing.has} has; "
            "all graphs must have the same"
        )
    if mine.columns is None and expected != found:
        raise InputError(f"{other}: the features are those of {first}, but in another order")


def _column_names(data: GraphData) -> Names:
    return data.feature_names or () if data.columns is None else tuple(data.columns.frame.columns)


def _merged_columns(graphs: Sequence[GraphData]) -> NodeColumns | None:
    """The raw columns of all graphs, one under another; a cell is named by the file of its own graph."""
    each = [data.columns for data in graphs if data.columns is not None]
    if not each:
        return None
    names = each[0].frame.columns
    frame = pl.concat([columns.frame.select(names) for columns in each], how="vertical_relaxed")
    tables = JoinedTables([columns.table for columns in each], [columns.rows for columns in each])
    return replace(each[0], frame=frame, table=tables, rows=np.arange(frame.height))


class JoinedTables:
    """Tables one under another: whoever names a row is told its place in the table that it came from."""

    def __init__(self, tables: Sequence[Table], rows: Sequence[NDArray[np.intp]]) -> None:
        self._tables, self._rows = tables, rows
        self._ends = np.cumsum([len(each) for each in rows])
        self.path, self.columns, self.categories = tables[0].path, tables[0].columns, tables[0].categories
        self.height = int(self._ends[-1])
        self.notes: list[str] = []

    def column(self, name: str) -> pl.Series:
        """Return one column of all tables."""
        return pl.concat([table.column(name) for table in self._tables], how="vertical_relaxed")

    def head(self, name: str, rows: int) -> pl.Series:
        """Return the first cells of a column."""
        return self._tables[0].head(name, rows)

    def fail(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise an ``InputError`` that names the file that the row is from."""
        number = int(np.searchsorted(self._ends, row, side="right"))
        start = 0 if number == 0 else int(self._ends[number - 1])
        self._tables[number].fail(int(self._rows[number][row - start]), column, problem)


class _Missing(NamedTuple):
    """A name that one of two folders has."""

    name: str
    has: Path
    lacks: Path


def _missing(first: Path, mine: Names, other: Path, others: Names) -> _Missing | None:
    name = next((name for name in (*mine, *others) if (name in mine) != (name in others)), None)
    if name is None:
        return None
    return _Missing(name, first, other) if name in mine else _Missing(name, other, first)


def _merged_labels(folders: Sequence[Path], graphs: Sequence[GraphData]) -> tuple[Tensor, Names]:
    """Labels of all graphs by one numbering of the classes."""
    numeric = next((k for k, data in enumerate(graphs) if data.task.numeric), None)
    if numeric is not None:
        for folder, data in zip(folders, graphs, strict=True):
            if not data.task.numeric and bool(data.known.any()):
                raise InputError(f"{folder}: labels are classes here, but numbers in {folders[numeric]}")
        none = [torch.full((data.graph.num_nodes,), torch.nan, dtype=torch.float64) for data in graphs]
        rows = [d.y if d.task.numeric else empty for d, empty in zip(graphs, none, strict=True)]
        return torch.cat(rows), ()
    several = next((k for k, data in enumerate(graphs) if not data.task.one_class_per_node), None)
    if several is not None:
        first, names = folders[several], graphs[several].class_names
        rows = [_in_order(first, names, *each) for each in zip(folders, graphs, strict=True)]
        return torch.cat(rows), names
    words = [np.array(["", *data.class_names])[data.y.numpy() + 1] for data in graphs]
    y, classes = encode_labels(np.concatenate(words), lambda row, problem: None)
    return torch.from_numpy(y), classes


def _in_order(first: Path, names: Names, folder: Path, data: GraphData) -> Tensor:
    """Several labels per node, [N, L], in the order of ``names``, which ``first`` has, or NaN."""
    if not data.class_names:
        return torch.full((data.graph.num_nodes, len(names)), torch.nan)
    if data.task.one_class_per_node:
        raise InputError(f"{folder}: a node has one class here, but several labels in {first}")
    missing = _missing(first, names, folder, data.class_names)
    if missing is not None:
        raise InputError(
            f"{missing.lacks}: there is no column of the label {missing.name!r}, which {missing.has} has; "
            "a graph must have all labels or none"
        )
    if len(set(data.class_names)) < len(data.class_names):
        raise InputError(f"{folder}: two columns of labels have the same name")
    return data.y[:, [data.class_names.index(name) for name in names]]


def _union(graphs: Sequence[Graph]) -> Graph:
    offsets = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    edges = torch.cat(
        [graph.edge_index + int(start) for graph, start in zip(graphs, offsets[:-1], strict=True)], 1
    )
    return Graph.from_edge_index(edges, torch.cat([graph.weight for graph in graphs]), int(offsets[-1]))


def _read_split(folder: Path, names: list[str], graph_of_node: Tensor) -> FixedSplits | None:
    path = only_table(folder, "split")
    if path is None:
        return None
    table = open_table(path)
    columns = find_column(table, ("graph",)), find_column(table, ("split", "set"))
    if None in columns:
        raise InputError(f"{path}: the columns graph and split are needed")
    code = torch.full((len(names),), -1)
    seen: set[str] = set()
    for row, (name, said) in enumerate(zip(*(table.column(str(column)) for column in columns), strict=True)):
        if str(name) not in names:
            table.fail(row, str(columns[0]), f"there is no graph {name!r} in {folder}")
        if str(name) in seen:
            table.fail(row, str(columns[0]), f"the graph {name!r} is there twice")
        seen.add(str(name))
        if said is None or said == "":
            continue
        if said not in SETS:
            table.fail(row, str(columns[1]), f"{said!r} is none of {', '.join(SETS)}")
        code[names.index(str(name))] = SETS.index(said)
    of_node = code[graph_of_node]
    return FixedSplits(*((of_node == k).unsqueeze(1) for k in range(len(SETS))))


def _provenance(folder: Path, names: list[str], graphs: Sequence[GraphData]) -> Provenance:
    files: dict[str, str] = {}
    notes: list[str] = []
    for name, data in zip(names, graphs, strict=True):
        files |= {f"{name}/{file}": digest for file, digest in data.provenance.files.items()}
        notes += [f"{name}: {note}" for note in data.notes]
    if len(notes) > _NOTES:
        notes = [*notes[:_NOTES], f"{len(notes) - _NOTES} more notes on other graphs are left out."]
    said = (f"{len(graphs)} graphs, as one of several components.", *notes)
    return Provenance(str(folder), files, said, graphs[0].provenance.table)
