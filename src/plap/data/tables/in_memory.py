"""Tables and graphs that are in memory already: pandas, Polars, Arrow, NetworkX, PyG."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import polars as pl
import torch
from torch import Tensor

from plap.data.dataset import FixedSplits, GraphData
from plap.data.labels import is_signs, looks_numeric_target
from plap.data.tables.assembly import assemble
from plap.data.tables.loading import load_folder, load_tables
from plap.data.tables.options import TableOptions
from plap.data.tables.table_file import Table, categories_of, open_table, plain
from plap.errors import InputError
from plap.graph import Graph, Symmetrize

if TYPE_CHECKING:
    import networkx


def read_tables(
    nodes: Any,
    edges: Any = None,
    *,
    name: str | None = None,
    symmetrize: Symmetrize = "max",
    **options: Any,
) -> GraphData:
    """Read a graph from tables, or from a graph of another library, for :func:`plap.fit`.

    Parameters
    ----------
    nodes : path, pandas, Polars or Arrow table, dict of columns; or a graph
        A table of nodes, or None if there are only edges; a NetworkX graph, whose nodes' attributes are the
        columns and whose edges' attribute ``weight`` the weights (``type`` or ``relation``: relations); a PyG
        ``Data``; or, without ``edges``, a
        folder.
    edges : path, pandas, Polars or Arrow table, dict of columns
        A table of edges.
    name : str, optional
        What the graph is called.
    symmetrize : {"max", "mean", "sum", "error"}
        See :meth:`plap.Graph.from_edge_index`.
    **options :
        Which column is what: ``id``, ``label``, ``source``, ``target``, ``weight``, ``split``, ``ignore``,
        ``categorical``, …; see :class:`plap.data.tables.options.TableOptions`.

    Examples
    --------
    >>> people = {"name": ["ann", "bob", "cy"], "team": ["a", "b", None], "age": [31, None, 52]}
    >>> calls = {"caller": ["ann", "bob"], "called": ["bob", "cy"]}
    >>> data = read_tables(people, calls, id="name", label="team", source="caller", target="called",
    ...                    on_bad_rows="drop")
    >>> data.graph, data.feature_names
    (Graph(3 nodes, 2 edges, unweighted, made undirected), ('age', 'age is missing'))
    """
    chosen = _options(options)
    if edges is None:
        if isinstance(nodes, str | os.PathLike):
            return load_folder(nodes, chosen, symmetrize=symmetrize)
        if type(nodes).__module__.startswith("networkx"):
            return _from_networkx(nodes, chosen, name, symmetrize)
        if hasattr(nodes, "edge_index"):
            if named := chosen.naming_columns:
                raise InputError(f"a PyG Data has no columns, so {named} does not apply to it")
            if isinstance(nodes, Graph):
                raise InputError(
                    "a plap.Graph has neither features nor labels; plap.data.GraphData(name, graph, x, y) has"
                )
            return from_pyg(nodes, chosen, name=name, symmetrize=symmetrize)
        raise InputError("read_tables needs a table of edges, a folder, a NetworkX graph or a PyG Data")
    return load_tables(
        _table(edges, "edges"),
        None if nodes is None else _table(nodes, "nodes"),
        chosen,
        name=name,
        symmetrize=symmetrize,
    )


def from_pyg(
    data: Any, options: TableOptions | None = None, *, name: str | None = None, symmetrize: Symmetrize = "max"
) -> GraphData:
    """A PyG ``Data`` with ``edge_index``, ``x`` and ``y``; its masks are the split that a fit uses.

    Masks may hold several splits, [N, S]. Labels of exactly -1 and 1 are two classes, and so are few whole
    numbers that are stored as floats, unless ``options.task`` says otherwise. Without ``x`` features
    are computed from the edges; other attributes are not used, and a note says so.
    """
    n = int(data.num_nodes)
    y = getattr(data, "y", None)
    notes = [*_unused_attributes(data)]
    y, classes = _labels(torch.full((n,), -1) if y is None else y, options or TableOptions(), notes)
    names = ("train_mask", "val_mask", "test_mask")
    masks = [mask for mask in (getattr(data, name, None) for name in names) if mask is not None]
    if masks and len(masks) < len(names):
        raise InputError(f"the PyG Data must have all or none of {', '.join(names)}")
    columns = [(mask if mask.ndim == 2 else mask[:, None]).bool() for mask in masks]
    splits = FixedSplits(*columns, preferred=True) if columns else None
    x = getattr(data, "x", None)
    assembled = assemble(
        name=name or type(data).__name__, source="a PyG Data", files={}, edge_index=data.edge_index,
        weight=getattr(data, "edge_weight", None), num_nodes=n, x=None if x is None else x.float(),
        y=y, class_names=classes, notes=tuple(notes), symmetrize=symmetrize,
    )  # fmt: skip
    return replace(assembled, splits=splits)


def _labels(y: Tensor, options: TableOptions, notes: list[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Labels as a ``GraphData`` has them, and the names of the classes if they are not 0, 1, ….

    Numbers are told from classes as in a table of nodes.
    """
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.squeeze(-1)
    if y.ndim == 2:
        return (y if y.is_floating_point() else y.float()), ()
    values = y.double()
    if options.unknown is not None:
        try:
            values[values == float(options.unknown)] = torch.nan
        except ValueError:
            raise InputError(f"unknown must be a number for a PyG Data, not {options.unknown!r}") from None
    elif options.task != "numbers" and is_signs(y.numpy(force=True)):
        notes.append("The labels -1 and 1 are two classes, so -1 is not unknown here.")
        return (y > 0).long(), ("-1", "1")
    odd = values.isfinite() & (values != values.floor())
    floats = y.is_floating_point()
    guess = floats and (bool(odd.any()) or looks_numeric_target(values.numpy(force=True)))
    if (options.task == "numbers") if options.task else guess:
        return values.to(y.dtype if floats else torch.float64), ()
    if bool(odd.any()):
        if options.predicts:
            return torch.full_like(y, -1, dtype=torch.int64), ()
        node = int(odd.nonzero()[0])
        raise InputError(f"task='classes' needs whole numbers as labels, and y[{node}] is {float(y[node])}")
    if floats and options.task is None:
        notes.append(
            "The labels are few whole numbers, so they are classes although they are stored as floats; "
            "plap.read_tables(data, task='numbers') takes them for numbers."
        )
    return values.nan_to_num(-1.0).long(), ()


def _unused_attributes(data: Any) -> tuple[str, ...]:
    """Say which attributes of a PyG ``Data`` have no use."""
    rest = [key for key in sorted(data.keys()) if key not in _PYG_KEYS and data[key] is not None]
    notes = [f"The PyG Data has attributes that are not used: {', '.join(map(repr, rest))}."] if rest else []
    edges = data["edge_attr"] if "edge_attr" in rest and "edge_weight" not in data else None
    if (
        isinstance(edges, torch.Tensor)
        and edges.numel() == data.edge_index.shape[1]
        and bool((edges > 0).all())
    ):
        notes.append("All edges count the same; 'edge_attr' may be weights: as edge_weight [E] it is used.")
    return tuple(notes)


_PYG_KEYS = ("x", "y", "edge_index", "edge_weight", "train_mask", "val_mask", "test_mask", "num_nodes")


def _from_networkx(
    graph: networkx.Graph, options: TableOptions, name: str | None, symmetrize: Symmetrize
) -> GraphData:
    id_column = options.id or "id"
    of_nodes = [_by_text(attributes) for _, attributes in graph.nodes(data=True)]
    names = dict.fromkeys(key for attributes in of_nodes for key in attributes)
    nodes: dict[str, list[Any]] = {id_column: [str(node) for node in graph]}
    for column in names:
        if column != id_column:
            nodes[column] = [attributes.get(column) for attributes in of_nodes]
    ends = [(source, target, _by_text(attributes)) for source, target, attributes in graph.edges(data=True)]
    if not graph.is_directed():
        ends += [(target, source, attributes) for source, target, attributes in ends if source != target]
    known = dict.fromkeys(key for _, _, attributes in ends for key in attributes)
    first, second = ("source", "target") if not {"source", "target"} & set(known) else ("node 1", "node 2")
    edges: dict[str, list[Any]] = {
        first: [str(source) for source, _, _ in ends],
        second: [str(target) for _, target, _ in ends],
    }
    weight = options.weight or "weight"
    for key in known:
        default = 1.0 if key == weight else None
        edges[key] = [attributes.get(key, default) for _, _, attributes in ends]
    chosen = replace(options, id=id_column, source=first, target=second)
    if len(set(nodes[id_column])) < len(nodes[id_column]):
        raise InputError("two nodes of the NetworkX graph have the same name as text")
    return load_tables(
        _table(edges, "edges"), _table(nodes, "nodes"), chosen, name=name or graph.name or "graph",
        symmetrize=symmetrize,
    )  # fmt: skip


def _by_text(attributes: dict[Any, Any]) -> dict[str, Any]:
    """Attributes by what a column is called, whatever their keys are."""
    return {str(key): value for key, value in attributes.items()}


def _options(options: dict[str, Any]) -> TableOptions:
    try:
        return TableOptions(**options)
    except TypeError:
        known = TableOptions.__dataclass_fields__
        unknown = next(name for name in options if name not in known)
        raise InputError(f"read_tables has no option {unknown!r}; it has {', '.join(known)}") from None


def _table(source: Any, name: str) -> Table:
    """A table as the loaders take it."""
    if isinstance(source, str | os.PathLike):
        return open_table(source)
    return FrameTable(as_frame(source, name), name)


def is_frame(source: Any) -> bool:
    """Whether ``source`` is a pandas, Polars or Arrow table."""
    if isinstance(source, pl.LazyFrame):
        return True
    named = hasattr(source, "columns") or hasattr(source, "column_names")
    return named and hasattr(source, "__arrow_c_stream__")


def as_frame(source: Any, name: str) -> pl.DataFrame:
    """A table in memory as a Polars one; ``name`` is what a sentence calls it."""
    try:
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        if isinstance(source, pl.DataFrame):
            return source
        if isinstance(source, dict):
            return pl.DataFrame(source, strict=False)
        if type(source).__module__.startswith("pandas"):
            return _from_pandas(source)
        if hasattr(source, "__arrow_c_stream__"):
            return pl.DataFrame(source)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        first = str(error).split("\n", 1)[0]
        raise InputError(f"the table of {name} cannot be read ({first})") from None
    raise InputError(
        f"the table of {name} must be a path, a pandas, Polars or Arrow table or a dict of columns, "
        f"not {type(source).__name__}"
    )


def _from_pandas(source: Any) -> pl.DataFrame:
    """A pandas table by column, so that cells of mixed types become text; a named index is a column."""
    if source.index.name is not None:
        source = source.reset_index()
    columns: dict[str, pl.Series] = {}
    for place, name in enumerate(source.columns):
        if str(name) in columns:
            raise ValueError(f"two columns are called {str(name)!r}")
        values = source.iloc[:, place]
        missing = values.isna().to_numpy()
        if values.dtype.kind in "biufM" and isinstance(values.dtype, np.dtype):
            array = values.to_numpy()
            series = pl.Series(str(name), array.astype(np.float64) if array.dtype.itemsize > 8 else array)
        else:
            cells = [
                None if gone else _plain(cell) for cell, gone in zip(values.tolist(), missing, strict=True)
            ]
            series = pl.Series(str(name), cells, strict=False)
            if _is_category(values):
                series = pl.Series(str(name), [None if cell is None else str(cell) for cell in cells])
                series = series.cast(pl.Categorical)
        columns[str(name)] = series.set(pl.Series(missing), None) if missing.any() else series
    return pl.DataFrame(columns)


def _is_category(values: Any) -> bool:
    """Whether a pandas column is one of categories that are text or whole numbers."""
    categories = getattr(values.dtype, "categories", None)
    return categories is not None and all(isinstance(value, str | int) for value in categories.tolist())


def _plain(cell: Any) -> Any:
    """A cell of a type that Polars does not have as one that it has: a period as its first moment."""
    if isinstance(cell, uuid.UUID):
        return str(cell)
    kind = type(cell).__name__ if type(cell).__module__.startswith("pandas") else ""
    if kind == "Period":
        return cell.start_time.to_pydatetime()
    return str(cell) if kind == "Interval" else cell


class FrameTable:
    """A Polars table with the methods of a file."""

    def __init__(self, frame: pl.DataFrame, name: str) -> None:
        self.path = Path(name)
        self.notes: list[str] = []
        self.columns: tuple[str, ...] = tuple(frame.columns)
        self.categories = categories_of(frame.schema)
        self.height = frame.height
        self._frame = frame

    def column(self, name: str) -> pl.Series:
        """Return one column; text has no blanks around it, and is null where it is empty."""
        return plain(self._frame[name])

    def head(self, name: str, rows: int) -> pl.Series:
        """Return the first cells of a column as they are."""
        return self._frame[name].head(rows)

    def fail(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise an ``InputError`` that names the table, the row (the first is 0) and the column."""
        raise InputError(f"{self.path}, row {row}, column {column!r}: {problem}")
