"""A graph on some of the nodes, alone or with a halo that makes results on them exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph, GraphInfo
from plap.parts.checks import check_count, check_graph


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A graph on some nodes of a larger one."""

    graph: Graph
    """Its node k is node ``nodes[k]`` of the larger graph."""
    nodes: Tensor
    """int64 [M], ascending."""
    core: Tensor
    """Boolean [M]: the nodes that were asked for; the others are their halo."""

    @property
    def core_nodes(self) -> Tensor:
        """The nodes that were asked for, numbered as in the larger graph, ascending."""
        return self.nodes[self.core]

    def rows(self, values: Any) -> Any:
        """The rows of features, labels or masks of the larger graph that belong to this one.

        A tensor (dense, or sparse CSR or COO), a NumPy array, or a SciPy sparse matrix; sparse stays sparse.
        """
        if scipy.sparse.issparse(values):
            return values.tocsr()[self.nodes.cpu().numpy()]
        if isinstance(values, np.ndarray):
            return values[self.nodes.cpu().numpy()]
        if values.layout == torch.sparse_csr:
            return _csr_rows(values, self.nodes)
        return values.index_select(0, self.nodes.to(values.device))


def induced(graph: Graph, nodes: Any) -> Subgraph:
    """Keep these nodes and the edges between them; degrees are those of the edges that are left.

    Parameters
    ----------
    graph : Graph
    nodes : integers without repetition, or a boolean mask of shape [N]

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> piece = induced(path, [3, 2, 0])
    >>> piece.nodes, piece.graph.degree
    (tensor([0, 2, 3]), tensor([0., 1., 1.], dtype=torch.float64))
    """
    nodes = _ascending(graph, nodes)
    return Subgraph(_cut_out(graph, nodes).graph, nodes, torch.ones_like(nodes, dtype=torch.bool))


def with_halo(graph: Graph, nodes: Any, hops: int, *, rim_loops: bool = True) -> Subgraph:
    """These nodes, everything within ``hops`` edges of them, and every degree as in the whole graph.

    What a model computes on the subgraph is then exact at ``core``: ``hops=K`` for K steps of
    :func:`plap.propagate`, ``hops=model.hops`` for :class:`plap.nn.DeepPGNN` (with dropout off), and one hop
    more than its steps for a model that adds self-loops to the graph, such as GCN.

    The edges that lead out of the halo are replaced by a self-loop of their total weight at its rim. So
    degrees there are right, which the neighbours' messages depend on, and a hop is saved that would only
    bring them.

    A model that knows edges but no weights cannot take such loops. ``rim_loops=False`` leaves them out:
    neighbours and degrees are then those of the whole graph at all nodes but the last hop's, so one hop more
    than the model has steps is exact.

    Parameters
    ----------
    graph : Graph
    nodes : integers without repetition, or a boolean mask of shape [N]
    hops : int
    rim_loops : bool

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)])
    >>> piece = with_halo(path, [0], hops=2)
    >>> piece.nodes, piece.core
    (tensor([0, 1, 2]), tensor([ True, False, False]))
    >>> piece.graph.degree
    tensor([1., 2., 2.], dtype=torch.float64)
    """
    hops = check_count("hops", hops, 0)
    core = _ascending(graph, nodes)
    inside = _reach(graph, core, hops).inside
    everything = inside.nonzero().squeeze(1)
    inside.zero_()[core] = True
    piece = _cut_out(graph, everything)
    closed = _with_loops(piece.graph, piece.lost) if rim_loops else piece.graph
    return Subgraph(closed, everything, inside[everything])


def halo_size(graph: Graph, nodes: Tensor, hops: int, *, rim_loops: bool = True) -> int:
    """Nodes and stored entries that :func:`with_halo` would have, without building it.

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)])
    >>> halo_size(path, torch.tensor([0]), 2, rim_loops=False)  # nodes 0, 1, 2 and two edges
    7
    """
    inside, rim = _reach(graph, nodes, hops)
    position, row = _entries_of(graph.indptr, rim)
    column = graph.indices[position].long()
    leads_out = ~inside[column]  # which only the rim's entries can
    loops = torch.zeros_like(rim, dtype=torch.bool)
    if rim_loops:
        loops[row[leads_out]] = True
        loops[row[rim[row] == column]] = False  # one that is there already takes up the weight
    stored = int(graph.indptr.diff()[inside].sum()) - int(leads_out.sum())
    return int(inside.sum()) + stored + int(loops.sum())


class _Reach(NamedTuple):
    inside: Tensor
    """Which nodes are within so many hops, [N]."""
    rim: Tensor
    """Those of the last hop."""


def _reach(graph: Graph, core: Tensor, hops: int) -> _Reach:
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.device)
    inside[core] = True
    rim = core
    for _ in range(hops):
        reached = torch.zeros_like(inside)
        reached[graph.indices[_entries_of(graph.indptr, rim).position].long()] = True
        rim = (reached & ~inside).nonzero().squeeze(1)
        inside[rim] = True
    return _Reach(inside, rim)


class _Piece(NamedTuple):
    graph: Graph
    lost: Tensor
    """Weight of the edges that lead out of the piece, float64 [M]."""


class _Entries(NamedTuple):
    position: Tensor
    """Of the stored entries of some rows among all."""
    row: Tensor
    """Which of these rows an entry is in."""


def _entries_of(indptr: Tensor, nodes: Tensor) -> _Entries:
    start = indptr[nodes].long()
    count = indptr[nodes + 1].long() - start
    row = torch.repeat_interleave(torch.arange(nodes.shape[0], device=nodes.device), count)
    before = count.cumsum(0) - count
    return _Entries(torch.arange(row.shape[0], device=nodes.device) + (start - before)[row], row)


def _cut_out(graph: Graph, nodes: Tensor) -> _Piece:
    position, row = _entries_of(graph.indptr, nodes)
    number = torch.full((graph.num_nodes,), -1, dtype=graph.indices.dtype, device=graph.device)
    number[nodes] = torch.arange(nodes.shape[0], dtype=number.dtype, device=graph.device)
    column = number[graph.indices[position].long()]
    kept = column >= 0
    weight = graph.weight[position]
    lost = torch.zeros(nodes.shape[0], dtype=torch.float64, device=graph.device)
    lost = lost.index_add(0, row[~kept], weight[~kept].double())
    row, column = row[kept], column[kept]
    indptr = torch.zeros(nodes.shape[0] + 1, dtype=graph.indptr.dtype, device=graph.device)
    indptr[1:] = row.bincount(minlength=nodes.shape[0]).cumsum(0)
    loops = int((row == column).sum()) if graph.info.self_loops else 0
    info = GraphInfo(column.shape[0], loops, 0, 0, graph.info.symmetrize, symmetrized=False)
    return _Piece(Graph(indptr, column, weight[kept], info), lost)


def _with_loops(graph: Graph, extra: Tensor) -> Graph:
    """The graph with a self-loop of weight ``extra`` at each node where that is positive."""
    rim = (extra > 0).nonzero().squeeze(1)
    return Graph.from_edge_index(
        torch.cat([graph.edge_index, rim.expand(2, -1)], 1),
        torch.cat([graph.weight, extra[rim].to(graph.weight.dtype)]),
        graph.num_nodes,
        symmetrize="sum",
        self_loops="keep",
    )


def _csr_rows(matrix: Tensor, nodes: Tensor) -> Tensor:
    nodes = nodes.to(matrix.device)
    crow, columns = matrix.crow_indices(), matrix.col_indices()
    position, row = _entries_of(crow, nodes)
    counts = row.bincount(minlength=nodes.shape[0]).cumsum(0)
    indptr = torch.cat([counts.new_zeros(1), counts]).to(crow.dtype)
    shape = (nodes.shape[0], matrix.shape[1])
    return torch.sparse_csr_tensor(
        indptr, columns[position], matrix.values()[position], shape, check_invariants=False
    )


def _ascending(graph: Graph, nodes: Any) -> Tensor:
    """Node indices in ascending order, checked."""
    check_graph(graph)
    try:
        given = torch.as_tensor(nodes, device=graph.device)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"nodes must be integers or a mask, not {type(nodes).__name__}") from None
    if given.dtype == torch.bool:
        if given.shape != (graph.num_nodes,):
            raise InputError(f"a mask of nodes must have shape [{graph.num_nodes}], not {list(given.shape)}")
        given = given.nonzero().squeeze(1)
    if given.numel() == 0:
        raise InputError("nodes must name at least one node")
    if given.ndim != 1 or given.dtype.is_floating_point or given.dtype.is_complex:
        raise InputError(f"nodes must be integers of shape [M], not {given.dtype} {list(given.shape)}")
    ordered = given.long().sort().values
    for node in (int(ordered[0]), int(ordered[-1])):
        if not 0 <= node < graph.num_nodes:
            raise InputError(f"nodes holds {node}, and the graph has the nodes 0 to {graph.num_nodes - 1}")
    if bool((ordered[1:] == ordered[:-1]).any()):
        raise InputError(f"nodes holds {int(ordered[:-1][ordered[1:] == ordered[:-1]][0])} twice")
    return ordered
