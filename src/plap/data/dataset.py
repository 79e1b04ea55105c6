"""A graph with features and labels, perhaps of several relations, as every loader returns it; its name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from plap.data.tasks import Task
from plap.errors import InputError
from plap.graph import Graph
from plap.sparse import scipy_from_tensor, select_rows

if TYPE_CHECKING:
    from plap.data.tables.assembly import NodeColumns

_ROWS_AT_A_TIME = 4096
"""Rows of features that are digested at a time."""
_OTHER_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32)


@dataclass(frozen=True)
class Provenance:
    """Where the data came from and what was done to it on the way in."""

    source: str
    """The public project, the generator and its arguments, or the user's path."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of every file that was read, by name."""
    notes: tuple[str, ...] = ()
    """What was left out, restricted or made up, one sentence each; see :attr:`GraphData.notes`."""
    table: dict[str, Any] = field(default_factory=dict)
    """How tables were read, as far as a fitted model remembers it for the next ones."""


@dataclass(frozen=True)
class FixedSplits:
    """Splits that came with the data, one column each: boolean tensors of shape [N, S]."""

    train: Tensor
    val: Tensor
    test: Tensor
    preferred: bool = field(default=False, kw_only=True)
    """Whether a fit uses them unless it is told otherwise: a table's own split, or that of a graph which was
    attacked with this split in mind."""

    @property
    def masks(self) -> tuple[Tensor, Tensor, Tensor]:
        """Training, validation and test."""
        return self.train, self.val, self.test


@dataclass(frozen=True)
class GraphData:
    """A graph, the features and labels of its nodes, and where all of it came from.

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> data = GraphData("path", path, torch.eye(3), torch.tensor([0, 1, -1]))
    >>> data.task.name, data.class_names, data.known.tolist(), list(data.node_ids)
    ('multiclass', ('0', '1'), [True, True, False], [0, 1, 2])
    >>> data
    GraphData('path', 3 nodes, 2 edges, 3 features, multiclass with 2 classes, 2 nodes labelled)
    """

    name: str
    graph: Graph
    x: Tensor
    """Features [N, F], float32; a torch sparse CSR tensor where that is smaller."""
    y: Tensor
    """int64 [N], -1 where unknown (other integers are converted); float32 [N, L] of 0 and 1 for multi-label
    data (NaN row: unknown); or floats [N] to predict numbers (NaN: unknown)."""
    class_names: tuple[str, ...] = ()
    """Names of the classes (or labels); their numbers if none are given."""
    node_ids: Sequence[str] | Sequence[int] = ()
    """What the source calls the nodes; 0..N-1 if nothing is given."""
    feature_names: tuple[str, ...] | None = None
    splits: FixedSplits | None = None
    directed_edge_index: Tensor | None = None
    """Edges exactly as the source has them, [2, E], where the source is directed or has self-loops."""
    graph_of_node: Tensor | None = None
    """int64 [N]: which of several disjoint graphs a node belongs to (PPI); None: there is only one."""
    provenance: Provenance = field(default_factory=lambda: Provenance("unknown"))
    columns: NodeColumns | None = None
    """The raw columns that ``x`` is made of, where it is; see ``plap.data.tables.assembly``."""

    relations: Relations | None = None
    """Which relation each edge is of, where there are several."""

    def __post_init__(self) -> None:
        if isinstance(self.y, Tensor) and self.y.ndim == 1 and self.y.dtype in _OTHER_INTEGERS:
            object.__setattr__(self, "y", self.y.long())
        object.__setattr__(self, "class_names", Task.of(self.y, self.class_names).class_names)
        if not len(self.node_ids):
            object.__setattr__(self, "node_ids", range(self.graph.num_nodes))

    def __repr__(self) -> str:
        """Name, sizes and task; a table of numbers tells nobody anything."""
        task = self.task.name + (f" with {self.num_classes} classes" if self.num_classes else "")
        return (
            f"GraphData({self.name!r}, {self.graph.num_nodes} nodes, {self.graph.num_edges} edges, "
            f"{self.x.shape[1]} features, {task}, {int(self.known.sum())} nodes labelled)"
        )

    @property
    def named(self) -> bool:
        """Whether the source gives nodes names; if not, ``node_ids`` are the numbers of their rows.

        Tables always do: where their ids are 0 to N - 1 in this order, ``node_ids`` is a range all the same.
        """
        of_table = self.columns is not None or bool(self.provenance.table)
        return of_table or not isinstance(self.node_ids, range)

    @cached_property
    def task(self) -> Task:
        """What is to be predicted of each node."""
        return Task.of(self.y, self.class_names)

    @cached_property
    def known(self) -> Tensor:
        """Boolean [N]: nodes whose label is known."""
        return self.task.known(self.y)

    @property
    def num_classes(self) -> int:
        """Classes (single-label) or labels (multi-label)."""
        return len(self.class_names)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was changed on the way in, one sentence each: by the loader, and by building the graph."""
        of_columns = () if self.columns is None else self.columns.notes
        return tuple(dict.fromkeys((*self.provenance.notes, *of_columns, *edge_changes(self.graph))))


def edge_changes(graph: Graph) -> tuple[str, ...]:
    """What happened to the edges when the graph was built, one sentence each.

    Examples
    --------
    >>> import plap
    >>> edge_changes(plap.Graph.from_edges([(0, 1), (0, 1), (2, 2)]))[:2]
    ('Self-loops dropped: 1.', 'Repeated edges merged by max: 1.')
    """
    info = graph.info
    notes = []
    if info.self_loops > graph.num_self_loops:
        notes.append(f"Self-loops dropped: {info.self_loops - graph.num_self_loops:,}.")
    if info.duplicates:
        notes.append(f"Repeated edges merged by {info.symmetrize}: {info.duplicates:,}.")
    if info.one_way:
        notes.append(f"Made undirected: {info.one_way:,} of {info.input_edges:,} edges had no reverse.")
    elif info.symmetrized:
        notes.append(
            f"Made undirected: the two directions differed in weight and were merged by {info.symmetrize}."
        )
    if not graph.num_edges and graph.num_nodes:
        notes.append("There are no edges, so that a model sees the features of each node alone.")
    return tuple(notes)


def largest_component(data: GraphData) -> GraphData:
    """Keep the largest connected component; of several, the one with the smallest node index.

    Nodes keep their order, and ``node_ids`` names each by what it was called (or its index) before.
    """
    nodes = largest_component_nodes(data.graph)
    if nodes.shape[0] == data.graph.num_nodes:
        return data
    return _restrict(data, nodes)


def components(graph: Graph) -> np.ndarray:
    """The number of each node's connected component, int32 [N].

    Examples
    --------
    >>> import plap
    >>> components(plap.Graph.from_edges([(0, 2)], num_nodes=3)).tolist()
    [0, 1, 0]
    """
    matrix = graph.to_scipy(weighted=False, dtype=np.int8, copy=False)
    number: np.ndarray = connected_components(matrix, directed=False)[1]
    return number


def largest_component_nodes(graph: Graph) -> Tensor:
    """Nodes of the largest connected component, ascending; of several, the one with the smallest index.

    Examples
    --------
    >>> import plap
    >>> largest_component_nodes(plap.Graph.from_edges([(0, 2), (3, 4), (4, 5)], num_nodes=6))
    tensor([3, 4, 5])
    """
    component = components(graph)
    sizes = np.bincount(component)
    first_node = np.unique(component, return_index=True)[1]
    largest = min(np.flatnonzero(sizes == sizes.max()), key=lambda c: first_node[c])
    return torch.from_numpy(np.flatnonzero(component == largest))


def _restrict(data: GraphData, nodes: Tensor) -> GraphData:
    """The part of ``data`` on ``nodes``, a union of components in ascending order."""
    n = data.graph.num_nodes
    new_index = torch.full((n,), -1)
    new_index[nodes] = torch.arange(nodes.shape[0])

    def inside(edge_index: Tensor) -> Tensor:
        return new_index[edge_index][:, new_index[edge_index[0]] >= 0]

    note = f"Kept the largest connected component, {nodes.shape[0]} of {n} nodes."
    return replace(
        data,
        graph=replace(data.graph.subgraph(nodes), info=data.graph.info),
        x=select_rows(data.x, nodes),
        y=data.y[nodes],
        node_ids=tuple(data.node_ids[k] for k in nodes.tolist()),
        splits=None if data.splits is None else _rows(data.splits, nodes),
        directed_edge_index=None if data.directed_edge_index is None else inside(data.directed_edge_index),
        graph_of_node=None if data.graph_of_node is None else data.graph_of_node[nodes],
        provenance=replace(data.provenance, notes=(*data.provenance.notes, note)),
        columns=None if data.columns is None else data.columns.take(nodes.numpy()),
    )


def _rows(splits: FixedSplits, nodes: Tensor) -> FixedSplits:
    return replace(splits, train=splits.train[nodes], val=splits.val[nodes], test=splits.test[nodes])


def features_digest(features: Features) -> str:
    """SHA-256 over the shape and the non-zero float32 values: equal features, dense or sparse, agree.

    Examples
    --------
    >>> x = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    >>> features_digest(x) == features_digest(x.to_sparse_csr())
    True
    """
    matrix = _sliceable(features)
    sha = hashlib.sha256(f"plap.features/1 {matrix.shape[0]} {matrix.shape[1]}".encode())
    for start in range(0, matrix.shape[0], _ROWS_AT_A_TIME):
        part = scipy.sparse.csr_array(matrix[start : start + _ROWS_AT_A_TIME]).astype(np.float32)
        part.sum_duplicates()
        part.eliminate_zeros()
        for values, dtype in ((part.indptr, "<i8"), (part.indices, "<i8"), (part.data, "<f4")):
            sha.update(np.ascontiguousarray(values, dtype=dtype).tobytes())
    return sha.hexdigest()


def _sliceable(features: Features) -> np.ndarray | scipy.sparse.csr_array:
    """Something whose rows can be cut out."""
    if not isinstance(features, Tensor):
        return scipy.sparse.csr_array(features)
    features = features.detach().cpu()
    if features.layout == torch.strided:
        return features.numpy()
    return scipy_from_tensor(features)


CSBM = "csbm"


@dataclass(frozen=True)
class DatasetName:
    """What stands before the last colon, and the parameters behind it.

    Examples
    --------
    >>> name = DatasetName.parse("csbm:phi=-0.5, n=100")
    >>> name.base, name.value("phi"), str(name)
    ('csbm', '-0.5', 'csbm:phi=-0.5,n=100')
    >>> DatasetName.parse("a:folder/graph").base
    'a:folder/graph'
    """

    base: str
    """A benchmark, ``csbm``, or a path."""
    parameters: tuple[tuple[str, str], ...] = ()
    """As they were written; one that is given twice stands here twice."""

    @classmethod
    def parse(cls, text: str) -> DatasetName:
        """Take a name apart; a colon belongs to the base unless parameters follow it."""
        text = text.strip()
        base, colon, behind = text.rpartition(":")
        if not colon or ("=" not in behind and base.lower() != CSBM):
            return cls(text)
        pairs = (entry.partition("=") for entry in behind.split(",") if entry.strip())
        return cls(base, tuple((key.strip(), value.strip()) for key, _, value in pairs))

    def __str__(self) -> str:
        behind = ",".join(f"{key}={value}" for key, value in self.parameters)
        return f"{self.base}:{behind}" if behind else self.base

    def value(self, key: str) -> str | None:
        """What a parameter is, as it was written; None where the name does not have it."""
        return dict(self.parameters).get(key)

    def without(self, key: str) -> DatasetName:
        """The same without a parameter.

        Examples
        --------
        >>> str(DatasetName.parse("computers:r=0.25").without("r"))
        'computers'
        """
        return DatasetName(self.base, tuple(pair for pair in self.parameters if pair[0] != key))

    def with_base(self, base: str) -> DatasetName:
        """The same parameters behind another base."""
        return DatasetName(base, self.parameters)

    @property
    def is_csbm(self) -> bool:
        """Whether it is a graph that is drawn at random."""
        return self.base.lower() == CSBM

    @property
    def is_path(self) -> bool:
        """Whether it is a file or folder; a bare name is a benchmark's, even where a folder is called so.

        Examples
        --------
        >>> [DatasetName.parse(text).is_path for text in ("texas", "csbm:phi=0.5", "./texas:r=0.5")]
        [False, False, True]
        """
        return os.sep in self.base or "/" in self.base

    @property
    def bare(self) -> DatasetName:
        """The same without the folders in front of it.

        Examples
        --------
        >>> str(DatasetName.parse("own/ours:r=0.5").bare)
        'ours:r=0.5'
        """
        return self.with_base(self.base.replace(os.sep, "/").rpartition("/")[2])


@dataclass(frozen=True, eq=False)
class Relations:
    """What each relation contributes to the weight of each entry of a graph.

    Examples
    --------
    >>> calls, mails = Graph.from_edges([(0, 1)], num_nodes=3), Graph.from_edges([(0, 1), (1, 2)])
    >>> relations = Relations.of(mails, {"calls": calls, "mails": mails})
    >>> relations.graph(mails, {"calls": 2.0, "mails": 0.5}).weight.tolist()
    [2.5, 2.5, 0.5, 0.5]
    """

    names: tuple[str, ...]
    shares: Tensor
    """[R, entries]: the weight of an entry in each relation, 0 where it is not of it."""
    factors: Mapping[str, float] | None = None
    """What each relation was multiplied by, once that is decided."""

    @classmethod
    def of(cls, union: Graph, parts: Mapping[str, Graph]) -> Relations:
        """The relations ``parts`` within a graph that has all their edges."""
        n = union.num_nodes
        keys = union.receivers().long() * n + union.indices.long()
        shares = torch.zeros(len(parts), union.num_entries)
        for row, part in enumerate(parts.values()):
            wanted = part.receivers().long() * n + part.indices.long()
            at = torch.searchsorted(keys, wanted).clamp(max=max(keys.shape[0] - 1, 0))
            if not bool((keys[at] == wanted).all()):
                raise InputError(f"the relation {list(parts)[row]!r} has an edge that the graph has not")
            shares[row, at] = part.weight.float()
        return cls(tuple(parts), shares)

    def graph(self, union: Graph, factors: Mapping[str, float]) -> Graph:
        """The graph with each relation multiplied by its factor; relations without one count as they are."""
        return union.with_weight(
            self.combined(torch.tensor([float(factors.get(name, 1.0)) for name in self.names]))
        )

    def combined(self, factors: Tensor) -> Tensor:
        """Weights [entries] for factors [R]; differentiable."""
        return (factors[:, None] * self.shares).sum(0)


Features: TypeAlias = "Tensor | scipy.sparse.sparray | scipy.sparse.spmatrix"
