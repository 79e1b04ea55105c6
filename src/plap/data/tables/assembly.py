"""The last step of every loader: raw columns to features, checked parts to a :class:`GraphData`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import polars as pl
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.data.columns import (
    CellError,
    Column,
    ColumnDrift,
    ColumnPlan,
    ColumnTransform,
    DataDictionary,
    Kind,
    OnBad,
    Role,
    drift,
    giveaways,
    infer_columns,
)
from plap.data.dataset import GraphData, Provenance
from plap.data.tables.options import TableOptions, other_labels
from plap.data.tables.table_file import Table
from plap.errors import InputError
from plap.graph import Graph, Symmetrize
from plap.sparse import compact


def assemble(
    *,
    name: str,
    source: str,
    files: dict[str, str],
    edge_index: Tensor,
    weight: Tensor | None,
    num_nodes: int,
    x: Tensor | None,
    y: Tensor | None,
    class_names: tuple[str, ...] = (),
    feature_names: tuple[str, ...] | None = None,
    node_ids: tuple[str, ...] | tuple[int, ...] = (),
    notes: tuple[str, ...] = (),
    symmetrize: Symmetrize = "max",
    columns: NodeColumns | None = None,
) -> GraphData:
    """Build the graph, make features up if there are neither any nor raw columns, and note that."""
    graph = Graph.from_edge_index(edge_index, weight, num_nodes, symmetrize=symmetrize)
    if columns is not None:
        x, feature_names = torch.zeros(num_nodes, 0), ()
    if x is None:
        x, feature_names = structural_features(graph), STRUCTURAL_NAMES
        notes = (
            *notes,
            f"No features were given: {', '.join(STRUCTURAL_NAMES)} were computed from the edges.",
        )
    return GraphData(
        name=name,
        graph=graph,
        x=compact(x),
        y=torch.full((num_nodes,), -1) if y is None else y,
        class_names=class_names,
        node_ids=node_ids,
        feature_names=feature_names,
        provenance=Provenance(source, files, notes),
        columns=columns,
    )


STRUCTURAL_NAMES = ("log_degree", "log_neighbour_degree", "return_probability", "log_pagerank")
_DAMPING = 0.85
_STEPS = 30
_TOLERANCE = 1e-3


def structural_features(graph: Graph) -> Tensor:
    r"""Return four features of every node, float32 [N, 4], in time linear in the edges.

    ======================  ===========================================================================
    log_degree              :math:`\log(1 + D_i)`
    log_neighbour_degree    :math:`\log(1 + \sum_j W_{ij} D_j / D_i)`, how busy the neighbours are
    return_probability      :math:`\sum_j W_{ij}^2 / (D_i D_j)`, of a walk to be back after two steps:
                            high where neighbours have few others
    log_pagerank            :math:`\log(1 + N \pi_i)`, damping 0.85, to a thousandth
    ======================  ===========================================================================

    A node without edges has zero in all but the last.

    Examples
    --------
    >>> import plap
    >>> structural_features(plap.Graph.from_edges([(0, 1)], num_nodes=3))[:, 2]
    tensor([1., 1., 0.])
    """
    n = graph.num_nodes
    if n == 0:
        return torch.zeros(0, len(STRUCTURAL_NAMES))
    # Vectors of the matrix's own type: SciPy would copy all its entries for another.
    matrix = graph.to_scipy(copy=False)
    degree = graph.degree.detach().cpu().numpy().astype(matrix.dtype)
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
    back = inverse * ((matrix.power(2) if graph.is_weighted else matrix) @ inverse)
    columns = [
        np.log1p(degree),
        np.log1p(inverse * (matrix @ degree)),
        back,
        np.log1p(n * _pagerank(matrix, inverse)),
    ]
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


def _pagerank(matrix: scipy.sparse.csr_array, inverse_degree: np.ndarray) -> np.ndarray:
    """Stationary probabilities of a walk that restarts anywhere; from a node without edges it always does."""
    n = matrix.shape[0]
    rank = np.full(n, 1 / n, dtype=inverse_degree.dtype)
    stuck = inverse_degree == 0
    for _ in range(_STEPS):
        walked = matrix @ (rank * inverse_degree)
        restart = 1 - _DAMPING * (1 - float(rank[stuck].sum()))
        following = _DAMPING * walked + restart / n
        change = float(np.abs(following - rank).sum())
        rank = following
        if change < _TOLERANCE:
            break
    return rank


_WHY = {
    Role.ID: "what nodes are called",
    Role.LABEL: "what is predicted",
    Role.SPLIT: "which nodes are for training, validation and test",
    Role.IGNORED: "as requested",
}


@dataclass(frozen=True, eq=False)
class NodeColumns:
    """One row per node, one column per column of the table; the transform is None until it is fitted."""

    frame: pl.DataFrame
    """Every column of the table but the ids, the labels and, where there is one, the split."""
    roles: dict[str, Role]
    """Columns of the table with another use."""
    options: TableOptions
    table: Table
    rows: NDArray[np.intp]
    """The row of the table that each node has."""
    plan: ColumnPlan | None = None
    transform: ColumnTransform | None = None
    notes: tuple[str, ...] = ()
    """What happened to the cells on the way, one sentence each."""

    def remembered(self) -> dict[str, Any]:
        """The options that a fitted model remembers.

        The column of labels is among them where another one might be taken for it.
        """
        label = next((name for name, role in self.roles.items() if role is Role.LABEL), None)
        doubtful = other_labels([*self.frame.columns, *self.roles], label)
        return ({"label": label} if doubtful else {}) | self.options.stored()

    def fitted(self, train: NDArray[np.bool_]) -> tuple[NodeColumns, NDArray[np.float32]]:
        """The columns with a transform that was fitted on the nodes ``train``, and all nodes' features."""
        options = self.options
        try:
            plan = infer_columns(
                self.frame,
                train,
                categorical=options.categorical,
                numeric=options.numeric,
                text=options.text,
                day_first=options.day_first,
            )
            transform = ColumnTransform.fit(self.frame, train, plan, on_bad=self._on_bad)
            matrix, notes = transform.apply(self.frame, on_bad=self._on_bad)
        except CellError as error:
            self.fail(error)
        looks = [column.name for column in plan.features if column.looks_like_codes]
        said = [f"{self.table.path.name}, {note}." for note in map(str, notes)]
        said += [
            f"{self.table.path.name}: the column {name!r} holds few whole numbers and may be codes of a "
            f"category; --categorical {name} reads it so."
            for name in looks
        ]
        said += [
            f"{self.table.path.name}: the column {column.name!r} {column.why}, and is left out."
            for column in plan
            if column.kind is Kind.UNSUPPORTED
        ]
        transform = replace(transform, unused=(*transform.unused, *self.roles))
        columns = replace(self, plan=plan, transform=transform, notes=tuple(said))
        return columns, matrix

    def applied(self, transform: ColumnTransform) -> tuple[NodeColumns, NDArray[np.float32]]:
        """The columns with a transform that was fitted elsewhere, and all nodes' features."""
        frame = transform.renamed(self.frame)
        try:
            matrix, notes = transform.apply(frame, on_bad=self._on_bad)
        except CellError as error:
            self.fail(error)
        except InputError as error:
            raise InputError(f"{self.table.path}: {error}") from None
        said = tuple(f"{self.table.path.name}, {note}." for note in map(str, notes))
        return replace(self, frame=frame, transform=transform, notes=said), matrix

    @property
    def _on_bad(self) -> OnBad:
        return "missing" if self.options.drops else "error"

    def drift(self) -> list[ColumnDrift]:
        """How far each column is from the rows that the transform was fitted on."""
        assert self.transform is not None
        return drift(self.transform, self.frame)

    def fail(self, error: CellError) -> NoReturn:
        """Refuse a cell, naming its file and line."""
        self.table.fail(int(self.rows[error.row]), error.column, error.problem)

    @cached_property
    def dictionary(self) -> DataDictionary | None:
        """What each column became and why; None until that is decided."""
        if self.plan is None or self.transform is None:
            return None
        others = [Column(name, Kind.UNREAD, role, _WHY[role]) for name, role in self.roles.items()]
        plan = ColumnPlan((*self.plan.columns, *others), self.plan.rows)
        return DataDictionary.of(plan, self.transform)

    def take(self, nodes: NDArray[np.intp]) -> NodeColumns:
        """The rows of some nodes."""
        return replace(self, frame=self.frame[nodes], rows=self.rows[nodes])


def encode_columns(data: GraphData, train: Tensor) -> GraphData:
    """``data`` with the features that its raw columns become, scaled by the nodes ``train`` alone.

    Data without raw columns, such as a benchmark, stays as it is. Where no column is left that could be a
    feature, structural features take their place.

    Parameters
    ----------
    data : GraphData
    train : boolean Tensor [N]
    """
    if data.columns is None:
        return data
    columns, matrix = data.columns.fitted(train.numpy())
    if data.task.one_class_per_node and columns.plan is not None:
        told = giveaways(columns.frame, columns.plan, data.y.numpy(), train.numpy())
        columns = replace(columns, notes=(*columns.notes, *(_warning(data, columns, name) for name in told)))
    return _with_features(data, columns, matrix)


def _warning(data: GraphData, columns: NodeColumns, name: str) -> str:
    """What to say of a column that tells the label."""
    empty = torch.from_numpy(columns.frame[name].is_null().to_numpy().copy())
    unknown = ~data.known
    too = (
        " and is empty where the label is unknown"
        if bool(unknown.any()) and torch.equal(empty, unknown)
        else ""
    )
    return (
        f"{columns.table.path.name}: the column {name!r} alone tells the label{too}; if it is not known "
        f"before the label is, --ignore {name} leaves it out."
    )


def apply_columns(data: GraphData, transform: ColumnTransform) -> GraphData:
    """``data`` with the features that its raw columns become by a transform that was fitted elsewhere."""
    assert data.columns is not None
    return _with_features(data, *data.columns.applied(transform))


def _with_features(data: GraphData, columns: NodeColumns, matrix: NDArray[np.float32]) -> GraphData:
    assert columns.transform is not None
    if matrix.shape[1]:
        x, names = compact(torch.from_numpy(matrix)), columns.transform.feature_names
    else:
        x, names = structural_features(data.graph), STRUCTURAL_NAMES
        said = (*columns.notes, f"No column is a feature: {', '.join(names)} were computed from the edges.")
        columns = replace(columns, notes=said)
    return replace(data, x=x, feature_names=names, columns=columns)
