"""A user's own graph from tables: a folder, or one file of edges and one of nodes."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import torch

from plap.data.columns import SplitColumns
from plap.data.dataset import FixedSplits, GraphData, Relations
from plap.data.splits import hold_out
from plap.data.tables.assembly import assemble, encode_columns
from plap.data.tables.node_and_edge_tables import Edges, read_edges, read_nodes
from plap.data.tables.options import TableOptions, quoted
from plap.data.tables.table_file import SUFFIXES, Table, open_table
from plap.errors import InputError
from plap.graph import Graph, Symmetrize

PathLike = str | os.PathLike[str]
_HELD_OUT = 0.2


def load_folder(
    path: PathLike,
    options: TableOptions | None = None,
    *,
    symmetrize: Symmetrize = "max",
    lone_classes: bool = False,
) -> GraphData:
    """Load a folder that holds ``edges`` and, optionally, ``nodes``; see :func:`load_tables`.

    Each may end in ``.csv``, ``.csv.gz``, ``.tsv``, ``.tsv.gz`` or ``.parquet``; two files of one name are
    refused, because nothing says which is meant.
    """
    folder = Path(path)
    if not folder.exists():
        raise InputError(f"{folder}: there is no such folder")
    if not folder.is_dir():
        raise InputError(f"{folder}: this is not a folder")
    edges: PathLike | dict[str, Table] | None = only_table(folder, "edges")
    unused = [] if edges is None else [path.name for path in _relation_paths(folder)]
    if edges is None:
        edges = relation_tables(folder)
    if not edges:
        raise InputError(f"{folder}: the folder has no edges{' or edges'.join(SUFFIXES)}")
    data = load_tables(
        edges, only_table(folder, "nodes"), options, name=folder.resolve().name, symmetrize=symmetrize,
        lone_classes=lone_classes,
    )  # fmt: skip
    if not unused:
        return data
    said = f"Not used, because there is a table of all edges: {quoted(unused)}."
    return replace(data, provenance=replace(data.provenance, notes=(*data.provenance.notes, said)))


def load_tables(
    edges: PathLike | Table | dict[str, Table],
    nodes: PathLike | Table | None = None,
    options: TableOptions | None = None,
    *,
    name: str | None = None,
    symmetrize: Symmetrize = "max",
    lone_classes: bool = False,
) -> GraphData:
    r"""Load a graph from a table of edges and, optionally, one of nodes.

    Parameters
    ----------
    edges : path
        CSV, TSV (both gzip or not, with a header, UTF-8) or Parquet. Columns, in upper or lower case:
        ``source`` (``src``, ``from``), ``target`` (``dst``, ``to``), optionally ``weight`` (``w``); where
        several of these are present the first named here counts. A column ``type`` (``relation``) of a few
        values names relations. Tables by the names of their relations are several relations as well.
    nodes : path, optional
        Columns ``id`` (``node``, ``node_id``), optionally ``label`` (``class``; empty: unknown) or, for
        several labels per node, ``label:a``, ``label:b`` and so on of 0 and 1, and optionally a split
        (``split`` of train, val and test, or masks such as ``train_mask``). The remaining columns become
        features: numbers, categories, dates, text, vectors; see ``plap.data.columns``. Nodes without
        edges stay. Without this table the nodes are what the edges name, in ascending order.
    options : TableOptions, optional
        Which column is what, and how its cells are read. ``TableOptions(raw_features=True)`` takes the
        numeric columns as they are.
    name : str, optional
        What the graph is called; the name of the file of edges if not given.
    symmetrize : {"max", "mean", "sum", "error"}
        See :meth:`plap.Graph.from_edge_index`.
    lone_classes : bool
        Whether a class may have one node only, because others have it in another graph.

    Returns
    -------
    GraphData
        Ids may be any text or integers; ``node_ids`` has them unless they are 0..N-1 in this order. A
        graph without features gets structural ones, see
        ``plap.data.tables.assembly.structural_features``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> scratch = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(scratch.name)
    >>> _ = (folder / "edges.csv").write_text("source,target\nann,bob\nbob,cy\n")
    >>> _ = (folder / "nodes.csv").write_text("id,label,age\nann,a,30\nbob,,40\ncy,a,50\n")
    >>> data = load_tables(folder / "edges.csv", folder / "nodes.csv")
    >>> data.graph, data.y.tolist(), data.feature_names
    (Graph(3 nodes, 2 edges, unweighted, made undirected), [0, -1, 0], ('age',))
    >>> load_folder(folder, TableOptions(raw_features=True)).x.tolist()
    [[30.0], [40.0], [50.0]]
    """
    options = options or TableOptions()
    edge_tables = edges if isinstance(edges, dict) else {"": open_table(edges)}
    edge_table = next(iter(edge_tables.values()))
    node_table = None if nodes is None else open_table(nodes)
    found = None if node_table is None else read_nodes(node_table, options, lone_classes=lone_classes)
    if found is None and len(edge_tables) > 1:
        raise InputError(f"{edge_table.path}: several tables of edges need a table of nodes")
    ids = None if found is None else found.ids
    place = node_table and node_table.path
    parts = {name: read_edges(each, ids, options, place) for name, each in edge_tables.items()}
    read = joined(parts, predicts=options.predicts)
    tables = (*edge_tables.values(), *([] if node_table is None else [node_table]))
    paths = [table.path for table in tables if table.path.is_file()]
    ids = read.nodes.ids
    node_ids = () if read.nodes.is_trivial else tuple(ids.to_list())
    data = assemble(
        name=name or edge_table.path.name.split(".")[0],
        source=str(edge_table.path),
        files={path.name: _sha256(path) for path in paths},
        edge_index=torch.from_numpy(read.index),
        weight=None if read.weight is None else torch.from_numpy(read.weight),
        num_nodes=ids.len(),
        x=None if found is None or found.x is None else torch.from_numpy(np.ascontiguousarray(found.x)),
        y=None if found is None else torch.from_numpy(found.y),
        class_names=() if found is None else found.class_names,
        feature_names=None if found is None else found.feature_names,
        node_ids=node_ids,
        notes=(*(() if found is None else found.notes), *read.notes),
        symmetrize=symmetrize,
        columns=None if found is None else found.columns,
    )
    data = replace(data, provenance=replace(data.provenance, table=options.stored()))
    if read.relation is not None:
        data = replace(data, relations=_relations(read, data.graph, symmetrize))
    if found is not None and found.split is not None and bool(data.known.any()):
        assert node_table is not None
        data = with_split(data, found.split, node_table.path)
    return encode_columns(data, torch.ones(ids.len(), dtype=torch.bool)) if options.encode else data


def relation_tables(folder: Path) -> dict[str, Table]:
    """Tables called ``edges_NAME``, by the names of their relations."""
    paths = _relation_paths(folder)
    return {path.name.split(".")[0].removeprefix("edges_"): open_table(path) for path in paths}


def _relation_paths(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("edges_*") if path.name.lower().endswith(SUFFIXES))


def has_edges(folder: Path) -> bool:
    """Whether a folder holds a graph itself: a table of edges, or several, one per relation."""
    return only_table(folder, "edges") is not None or bool(relation_tables(folder))


def is_collection(path: PathLike) -> bool:
    """Whether a folder holds no graph itself, but folders that do."""
    folder = Path(path)
    return not has_edges(folder) and bool(graph_folders(folder))


def graph_folders(folder: Path) -> list[Path]:
    """The folders inside a folder that hold a graph, by name."""
    try:
        inside = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror})") from None
    seen = (entry for entry in inside if not entry.name.startswith("."))
    return [entry for entry in seen if has_edges(entry)]


def joined(parts: dict[str, Edges], *, predicts: bool = False) -> Edges:
    """The edges of several relations one after another; of one, as they are.

    For a prediction one table ``edges_NAME`` is a relation too: the model may know it beside others.
    """
    first = next(iter(parts.values()))
    if len(parts) == 1:
        (name,) = parts
        named = predicts and name and first.relation is None
        return replace(first, relation=pl.Series([name] * first.index.shape[1])) if named else first
    said = f"{len(parts)} relations ({', '.join(parts)}), each of which gets a weight of its own."
    sizes = [part.index.shape[1] for part in parts.values()]
    weights = [
        np.ones(size, dtype=np.float32) if part.weight is None else part.weight
        for part, size in zip(parts.values(), sizes, strict=True)
    ]
    return Edges(
        np.concatenate([part.index for part in parts.values()], axis=1),
        None if all(part.weight is None for part in parts.values()) else np.concatenate(weights),
        first.nodes,
        (
            *(note for part in parts.values() for note in part.notes),
            *(() if predicts else (said,)),
        ),
        pl.Series(np.repeat(list(parts), sizes)),
    )


def _relations(read: Edges, union: Graph, symmetrize: Symmetrize) -> Relations:
    assert read.relation is not None
    parts = {}
    for name in read.relation.unique().sort().to_list():
        own = (read.relation == name).to_numpy()
        weight = None if read.weight is None else torch.from_numpy(read.weight[own])
        index = torch.from_numpy(np.ascontiguousarray(read.index[:, own]))
        parts[name] = Graph.from_edge_index(index, weight, union.num_nodes, symmetrize=symmetrize)
    return Relations.of(union, parts)


def with_split(data: GraphData, split: SplitColumns, table: Path) -> GraphData:
    """``data`` with the split that its table describes; parts that are missing are taken from training."""
    train, val, test = (torch.from_numpy(mask) & data.known for mask in (split.train, split.val, split.test))
    notes = list(data.provenance.notes)
    rest = data.known & ~train & ~val
    if split.rest_is_test and bool(rest.any()):
        test = rest
        notes.append("No column marks test nodes: they are the labelled nodes that no mask names.")
    for part, what in ((val, "validation"), (test, "test")):
        if not bool(part.any()):
            known = data.y.clone()
            known[~train] = torch.nan if known.is_floating_point() else -1
            try:
                sets = hold_out(known, _HELD_OUT, seed=0)
            except InputError as error:
                raise InputError(
                    f"{table}: the split in {quoted(split.names)} has no {what} nodes with labels, and its "
                    f"training nodes cannot serve: {error}"
                ) from None
            train, part[:] = sets.train, sets.val
            notes.append(f"The split has no {what} nodes: a fifth of the training nodes is used for that.")
    splits = FixedSplits(train[:, None], val[:, None], test[:, None], preferred=True)
    return replace(data, splits=splits, provenance=replace(data.provenance, notes=tuple(notes)))


def only_table(folder: Path, stem: str) -> Path | None:
    """The one table called ``stem``, in upper or lower case; None if there is none."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror})") from None
    found = [folder / name for name in names if name.lower() in {stem + suffix for suffix in SUFFIXES}]
    if len(found) > 1:
        raise InputError(f"{folder}: both {found[0].name} and {found[1].name} are there, and one must go")
    return found[0] if found else None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
