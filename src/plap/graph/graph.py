"""The one validated graph that every other part of plap works on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.checks import check_choice
from plap.errors import InputError
from plap.graph import conversion
from plap.graph.building import Reduction, symmetric_rows
from plap.sparse import entries_of

if TYPE_CHECKING:
    import networkx
    import scipy.sparse
    from torch_geometric.data import Data

Symmetrize = Literal["max", "mean", "sum", "error"]
SelfLoops = Literal["drop", "keep"]
Triangle = Literal["lower", "upper"]

_REDUCTIONS: dict[str, Reduction | None] = {"max": "amax", "mean": "mean", "sum": "sum", "error": None}


@dataclass(frozen=True)
class GraphInfo:
    """What happened to the input on its way into a :class:`Graph`."""

    input_edges: int
    """Edges in the input."""
    self_loops: int
    """Self-loops in the input (dropped unless ``self_loops="keep"``)."""
    duplicates: int
    """Repeated edges that were merged into one."""
    one_way: int
    """Edges whose reverse was not in the input."""
    symmetrize: str
    """The rule for duplicates and for the two directions of an edge."""
    symmetrized: bool
    """Whether the two directions had to be reconciled at all."""
    loops_dropped: bool = False
    """Whether self-loops of the input are not in the graph."""


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected weighted graph in symmetric CSR form, validated once and never changed.

    Row ``i`` of the CSR matrix lists the neighbours ``indices[indptr[i]:indptr[i+1]]`` of node ``i`` in
    ascending order; entry ``e`` is "receiver i ← source j" with weight ``weight[e]`` = W_ij = W_ji > 0.
    Build one with :meth:`from_edge_index`, :meth:`from_edges`, :meth:`from_scipy`, :meth:`from_networkx`
    or :meth:`from_pyg`, which check everything. The constructor checks only the types and lengths of the
    arrays: that rows are sorted, weights positive and W symmetric is up to its caller.

    Examples
    --------
    >>> import plap
    >>> g = plap.Graph.from_edges([(0, 1), (1, 2), (1, 2), (2, 2)], num_nodes=4)
    >>> g
    Graph(4 nodes, 2 edges, unweighted, 1 isolated, dropped 1 self-loop, merged 1 duplicate, made undirected)
    >>> g.degree
    tensor([1., 2., 1., 0.], dtype=torch.float64)
    """

    indptr: Tensor
    indices: Tensor
    weight: Tensor
    info: GraphInfo
    degree: Tensor = field(init=False)
    """Weighted degrees D_i = Σ_j W_ij, 0 for a node without edges; float64 whatever the weights are."""

    def __post_init__(self) -> None:
        kinds = {self.indptr.dtype, self.indices.dtype}
        flat = all(
            part.ndim == 1 and part.is_contiguous() for part in (self.indptr, self.indices, self.weight)
        )
        if len(kinds) > 1 or not kinds <= {torch.int32, torch.int64} or not flat:
            raise InputError("indptr and indices must be contiguous and both int32 or both int64")
        if self.indices.shape != self.weight.shape:
            raise InputError("indices and weight must have one value per stored entry")
        object.__setattr__(self, "degree", self._degree())

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        *,
        symmetrize: Symmetrize = "max",
        self_loops: SelfLoops = "drop",
    ) -> Graph:
        """Build a graph from PyG's ``edge_index``.

        Parameters
        ----------
        edge_index : Tensor, shape [2, E], integer
            Row 0 holds sources, row 1 targets. Both directions, one direction or a mixture may be given.
        edge_weight : Tensor, shape [E], optional
            Positive weights, 1 if not given. If they require gradients, so does ``graph.weight``.
        num_nodes : int, optional
            Largest index + 1 if not given.
        symmetrize : {"max", "mean", "sum", "error"}
            Repeated edges are merged by this rule; then, if W differs from its transpose, W_ij and W_ji
            are merged by it too (a missing direction is ignored). "error" refuses both.
        self_loops : {"drop", "keep"}
            The gradient along a self-loop is zero, so keeping it only increases the node's degree.
        """
        check_choice("symmetrize", symmetrize, Symmetrize)
        check_choice("self_loops", self_loops, SelfLoops)
        source, target = conversion.endpoints(edge_index)
        n = conversion.count_nodes(source, target, num_nodes)
        weight = conversion.checked_weights(edge_weight, source.size)
        rows = symmetric_rows(
            source, target, weight, n, _REDUCTIONS[symmetrize], drop_loops=self_loops == "drop"
        )
        info = GraphInfo(
            edge_index.shape[1], rows.self_loops, rows.duplicates, rows.one_way, symmetrize, rows.symmetrized,
            loops_dropped=self_loops == "drop",
        )  # fmt: skip
        graph = cls(torch.from_numpy(rows.indptr), torch.from_numpy(rows.indices), rows.weight, info)
        return graph.to(edge_index.device)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        weight: Any = None,
        num_nodes: int | None = None,
        *,
        symmetrize: Symmetrize = "max",
        self_loops: SelfLoops = "drop",
    ) -> Graph:
        """Build a graph from an edge list: anything that NumPy can turn into an [E, 2] integer array.

        ``weight`` is anything of length E; a tensor that requires gradients passes them on.
        """
        edge_list = conversion.from_pairs(edges, weight, num_nodes)
        return cls.from_edge_index(*edge_list, symmetrize=symmetrize, self_loops=self_loops)

    @classmethod
    def from_scipy(
        cls,
        matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
        *,
        symmetrize: Symmetrize = "max",
        self_loops: SelfLoops = "drop",
    ) -> Graph:
        """Build a graph from a square SciPy sparse matrix whose entry (i, j) is the weight of i → j.

        Repeated entries are summed, as SciPy does, and stored zeros are no edges.
        """
        edge_list = conversion.from_scipy(matrix)
        return cls.from_edge_index(*edge_list, symmetrize=symmetrize, self_loops=self_loops)

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph[Any],
        weight: str | None = "weight",
        *,
        symmetrize: Symmetrize = "max",
        self_loops: SelfLoops = "drop",
    ) -> Graph:
        """Build a graph from a NetworkX graph; node k is the k-th of ``list(graph)``.

        ``weight`` names the edge attribute that holds the weight; edges without it have weight 1. This needs
        the package networkx: ``pip install 'plap[networkx]'``.
        """
        edge_list = conversion.from_networkx(graph, weight)
        return cls.from_edge_index(*edge_list, symmetrize=symmetrize, self_loops=self_loops)

    @classmethod
    def from_pyg(cls, data: Data, *, symmetrize: Symmetrize = "max", self_loops: SelfLoops = "drop") -> Graph:
        """Build a graph from a PyG ``Data``: its ``edge_index``, ``edge_weight`` if any, ``num_nodes``."""
        return cls.from_edge_index(*conversion.from_pyg(data), symmetrize=symmetrize, self_loops=self_loops)

    @classmethod
    def from_torch_sparse(
        cls, matrix: Tensor, *, symmetrize: Symmetrize = "max", self_loops: SelfLoops = "drop"
    ) -> Graph:
        """Build a graph from a torch sparse CSR, CSC or COO matrix, read as by :meth:`from_scipy`."""
        edge_list = conversion.from_torch_sparse(matrix)
        return cls.from_edge_index(*edge_list, symmetrize=symmetrize, self_loops=self_loops)

    @property
    def num_nodes(self) -> int:
        """Number of nodes N, including nodes without edges."""
        return self.indptr.shape[0] - 1

    @property
    def num_entries(self) -> int:
        """Stored entries: two per edge, one per kept self-loop."""
        return self.indices.shape[0]

    @property
    def num_edges(self) -> int:
        """Number of undirected edges, including kept self-loops."""
        return (self.num_entries + self.num_self_loops) // 2

    @property
    def num_self_loops(self) -> int:
        """Number of self-loops in the graph (0 unless they were kept)."""
        if self.info.self_loops == 0 or self.info.loops_dropped:
            return 0
        return int((self.receivers() == self.indices).sum())

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self.weight.device

    @property
    def edge_index(self) -> Tensor:
        """Both directions of every edge in PyG's form, shape [2, entries]: sources, then targets."""
        return torch.stack([self.indices.long(), self.receivers()])

    @property
    def is_weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""
        return bool((self.weight != 1).any())

    @property
    def digest(self) -> str:
        """SHA-256 over structure and weights: equal graphs have equal digests, on every device."""
        sha = hashlib.sha256(f"plap.Graph/1 {self.num_nodes} {self.num_entries}".encode())
        for tensor, dtype in (
            (self.indptr, torch.int64),
            (self.indices, torch.int64),
            (self.weight, torch.float64),
        ):
            for start in range(0, tensor.shape[0], 1 << 22):
                chunk = tensor.detach()[start : start + (1 << 22)]
                sha.update(chunk.to("cpu", dtype).numpy().tobytes())
        return sha.hexdigest()

    def receivers(self) -> Tensor:
        """Row of each stored entry, int64, shape [entries]."""
        counts = (self.indptr[1:] - self.indptr[:-1]).long()
        nodes = torch.arange(self.num_nodes, device=counts.device)
        return torch.repeat_interleave(nodes, counts, output_size=self.num_entries)

    def edges_once(self, triangle: Triangle = "lower") -> Tensor:
        """Position of one stored entry per undirected edge, int64, shape [edges]; self-loops are left out.

        ``graph.edge_index[:, once]`` are the two ends of each edge and ``graph.weight[once]`` its weight.

        Parameters
        ----------
        triangle : {"lower", "upper"}
            Which entry "receiver i ← source j" stands for the edge. "lower": the one with j < i, so that the
            smaller node comes first in ``graph.edge_index``, and edges are in the order of (larger, smaller)
            node. "upper": the one with i < j, in the order of (smaller, larger) node.

        Examples
        --------
        >>> import plap
        >>> graph = plap.Graph.from_edges([(0, 1), (1, 2), (0, 2)])
        >>> graph.edge_index[:, graph.edges_once()]
        tensor([[0, 0, 1],
                [1, 2, 2]])
        """
        check_choice("triangle", triangle, Triangle)
        below = self.indices < self.receivers() if triangle == "lower" else self.receivers() < self.indices
        return below.nonzero().squeeze(1)

    def reverse_entries(self) -> Tensor:
        """Position of entry (j, i) for each stored entry (i, j), int64, shape [entries].

        Examples
        --------
        >>> import plap
        >>> plap.Graph.from_edges([(0, 1), (0, 2)]).reverse_entries()
        tensor([2, 3, 0, 1])
        """
        return torch.argsort(self.indices, stable=True)

    def ascending(self, nodes: Any) -> Tensor:
        """Nodes given as integers without repetition or as a boolean mask [N]: checked, int64, ascending."""
        return conversion.ascending_nodes(nodes, self.num_nodes, self.device)

    def subgraph(self, nodes: Any) -> Graph:
        """The induced subgraph: these nodes in ascending order, and the edges between them.

        Degrees are those of the edges that are left.

        Parameters
        ----------
        nodes : integers without repetition, or a boolean mask of shape [N]

        Examples
        --------
        >>> import plap
        >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
        >>> path.subgraph([3, 2, 0]).edge_index
        tensor([[2, 1],
                [1, 2]])
        """
        return self.cut_out(nodes).graph

    def cut_out(self, nodes: Any) -> CutOut:
        """The induced subgraph with its nodes, and what was cut off; see :meth:`subgraph`.

        Examples
        --------
        >>> import plap
        >>> plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)]).cut_out([3, 2, 0]).lost
        tensor([1., 1., 0.], dtype=torch.float64)
        """
        nodes = self.ascending(nodes)
        count = nodes.shape[0]
        position, row = entries_of(self.indptr, nodes)
        number = torch.full((self.num_nodes,), -1, dtype=self.indices.dtype, device=self.device)
        number[nodes] = torch.arange(count, dtype=number.dtype, device=self.device)
        column = number[self.indices[position].long()]
        kept = column >= 0
        weight = self.weight[position]
        lost = torch.zeros(count, dtype=torch.float64, device=self.device)
        lost = lost.index_add(0, row[~kept], weight[~kept].double())
        row, column = row[kept], column[kept]
        indptr = torch.zeros(count + 1, dtype=self.indptr.dtype, device=self.device)
        indptr[1:] = row.bincount(minlength=count).cumsum(0)
        loops = int((row == column).sum()) if self.info.self_loops else 0
        info = GraphInfo(column.shape[0], loops, 0, 0, self.info.symmetrize, symmetrized=False)
        return CutOut(Graph(indptr, column, weight[kept], info), nodes, lost)

    def to_scipy(
        self, *, weighted: bool = True, dtype: Any = None, copy: bool = True
    ) -> scipy.sparse.csr_array:
        """W as a SciPy CSR array, shape [N, N].

        Parameters
        ----------
        weighted : bool
            False gives every stored entry the value 1 (float64).
        dtype : NumPy type, optional
            That of the weights if not given.
        copy : bool
            False shares memory with the graph where it can: such an array must not be changed.

        Examples
        --------
        >>> import plap
        >>> plap.Graph.from_edges([(0, 1)], [3.0]).to_scipy().toarray()
        array([[0., 3.],
               [3., 0.]])
        """
        weight = self.weight if weighted else None
        return conversion.scipy_matrix(self.indptr, self.indices, weight, dtype, copy)

    def to_pyg(self, **attributes: Any) -> Data:
        """PyG's ``Data`` with ``edge_index``, ``edge_weight`` and ``num_nodes``, and further attributes.

        Examples
        --------
        >>> import torch, plap
        >>> plap.Graph.from_edges([(0, 1)]).to_pyg(x=torch.eye(2))
        Data(x=[2, 2], edge_index=[2, 2], edge_weight=[2], num_nodes=2)
        """
        return conversion.pyg_data(self.edge_index, self.weight, self.num_nodes, attributes)

    def to_networkx(self) -> networkx.Graph[int]:
        """An undirected NetworkX graph of the nodes 0 to N − 1 with the edge attribute ``weight``.

        This needs the package networkx: ``pip install 'plap[networkx]'``.

        Examples
        --------
        >>> import plap
        >>> list(plap.Graph.from_edges([(0, 1)], [3.0]).to_networkx().edges(data="weight"))
        [(0, 1, 3.0)]
        """
        once = (self.indices <= self.receivers()).nonzero().squeeze(1)
        return conversion.networkx_graph(self.edge_index[:, once], self.weight[once], self.num_nodes)

    def _degree(self) -> Tensor:
        """Row sums in float64; on the CPU and without gradients they need no further array of entries."""
        weight = self.weight
        if weight.requires_grad or weight.device.type != "cpu":
            total = torch.zeros(self.num_nodes, dtype=torch.float64, device=weight.device)
            return total.index_add(0, self.receivers(), weight.double())
        starts = self.indptr.numpy()
        filled = starts[:-1] < starts[1:]
        sums = np.zeros(self.num_nodes)
        sums[filled] = np.add.reduceat(weight.numpy(), starts[:-1][filled], dtype=np.float64)
        return torch.from_numpy(sums)

    def to(self, device: torch.device | str) -> Graph:
        """Return the graph on another device; the same object if it is there already."""
        if torch.device(device) == self.device:
            return self
        moved = {name: getattr(self, name).to(device) for name in ("indptr", "indices", "weight")}
        return replace(self, **moved)

    def with_weight(self, weight: Tensor) -> Graph:
        """Return a graph of the same structure with other weights, one per stored entry.

        W stays symmetric only if both entries of an edge get the same weight; this is checked.
        """
        if weight.shape != self.weight.shape:
            raise InputError(f"weight must have shape [{self.num_entries}], not {list(weight.shape)}")
        rebuilt = Graph.from_edge_index(
            self.edge_index, weight, self.num_nodes, symmetrize="error", self_loops="keep"
        )
        return replace(rebuilt, info=self.info)

    def __repr__(self) -> str:
        if self.device.type == "meta":
            return f"Graph({self.num_nodes} nodes, meta)"
        isolated = int((self.indptr[1:] == self.indptr[:-1]).sum())
        kept = self.num_self_loops
        dropped = 0 if kept else self.info.self_loops
        parts = [
            f"{self.num_nodes} nodes",
            f"{self.num_edges} edges",
            "weighted" if self.is_weighted else "unweighted",
            f"{isolated} isolated" if isolated else "",
            f"{_plural(kept, 'self-loop')}" if kept else "",
            f"dropped {_plural(dropped, 'self-loop')}" if dropped else "",
            f"merged {_plural(self.info.duplicates, 'duplicate')}" if self.info.duplicates else "",
            "made undirected" if self.info.symmetrized else "",
            str(self.device) if self.device.type != "cpu" else "",
        ]
        return f"Graph({', '.join(part for part in parts if part)})"


class CutOut(NamedTuple):
    """An induced subgraph, and what was cut off."""

    graph: Graph
    """Its node k is node ``nodes[k]`` of the larger graph."""
    nodes: Tensor
    """int64 [M], ascending."""
    lost: Tensor
    """Total weight of the edges that lead out of the subgraph at each of its nodes, float64 [M]."""


def check_graph(graph: Any) -> Graph:
    """Return ``graph`` if it is a :class:`plap.Graph`.

    Examples
    --------
    >>> check_graph([(0, 1)])
    Traceback (most recent call last):
    plap.errors.InputError: graph must be a plap.Graph, not list
    """
    if not isinstance(graph, Graph):
        raise InputError(f"graph must be a plap.Graph, not {type(graph).__name__}")
    return graph


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
