"""A graph on some of the nodes, alone or with a halo that makes results on them exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.checks import check_integer
from plap.graph import Graph, check_graph
from plap.sparse import csr_rows, entries_of, hops_from


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
            return csr_rows(values, self.nodes)
        return values.index_select(0, self.nodes.to(values.device))


def induced(graph: Graph, nodes: Any) -> Subgraph:
    """These nodes and the edges between them (:meth:`plap.Graph.subgraph`), with a way to their rows.

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
    piece = check_graph(graph).cut_out(nodes)
    return Subgraph(piece.graph, piece.nodes, torch.ones_like(piece.nodes, dtype=torch.bool))


def with_halo(graph: Graph, nodes: Any, hops: int, *, rim_loops: bool = True) -> Subgraph:
    """These nodes, everything within ``hops`` edges of them, and every degree as in the whole graph.

    What a model computes on the subgraph is then exact at ``core``: ``hops=K`` for K steps of
    :func:`plap.propagate`, ``hops=model.hops`` for :class:`plap.nn.DeepPGNN` (with dropout off), and one hop
    more than its number of steps for a model that adds self-loops to the graph, such as GCN.

    It is not exact where γ or the unit is measured on the graph (``unit="auto"``, ``MCP("auto")``,
    :class:`plap.penalties.Quantile`): the edge norms of the subgraph are not those of the whole graph, so
    give such lengths as numbers.

    Edges that lead out of the halo are replaced by a self-loop of their total weight at its rim. So the
    degrees there, which the neighbours' messages depend on, are right without one more hop.

    A model that takes edges without weights cannot use such loops. ``rim_loops=False`` leaves them out:
    neighbours and degrees are then those of the whole graph except at the last hop, so ``hops`` must be one
    more than the model's number of steps.

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
    hops = check_integer("hops", hops, 0)
    core = check_graph(graph).ascending(nodes)
    inside = hops_from(graph.indptr, graph.indices, core, hops) <= hops
    piece = graph.cut_out(inside)
    closed = _with_loops(piece.graph, piece.lost) if rim_loops else piece.graph
    inside.zero_()[core] = True
    return Subgraph(closed, piece.nodes, inside[piece.nodes])


def halo_size(graph: Graph, nodes: Tensor, hops: int, *, rim_loops: bool = True) -> int:
    """Nodes and stored entries that :func:`with_halo` would have, without building it.

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)])
    >>> halo_size(path, torch.tensor([0]), 2, rim_loops=False)  # nodes 0, 1, 2 and two edges
    7
    """
    away = hops_from(graph.indptr, graph.indices, nodes, hops)
    inside, rim = away <= hops, (away == hops).nonzero().squeeze(1)
    position, row = entries_of(graph.indptr, rim)
    column = graph.indices[position].long()
    leads_out = ~inside[column]  # which only the rim's entries can
    loops = torch.zeros_like(rim, dtype=torch.bool)
    if rim_loops:
        loops[row[leads_out]] = True
        loops[row[rim[row] == column]] = False  # an existing self-loop takes up the weight
    stored = int(graph.indptr.diff()[inside].sum()) - int(leads_out.sum())
    return int(inside.sum()) + stored + int(loops.sum())


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
