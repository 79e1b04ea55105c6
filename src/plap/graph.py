"""The one validated graph that every other part of plap takes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from plap.coalesce import Reduction, symmetric_rows
from plap.edge_input import (
    check_choice,
    checked_weights,
    count_nodes,
    edge_attribute,
    endpoints,
    weight_tensor,
)
from plap.errors import InputError

if TYPE_CHECKING:
    import networkx
    import scipy.sparse
    from torch_geometric.data import Data

Symmetrize = Literal["max", "mean", "sum", "error"]
SelfLoops = Literal["drop", "keep"]

_REDUCTIONS: dict[str, Reduction | None] = {"max": "amax", "mean": "mean", "sum": "sum", "error": None}


@dataclass(frozen=True)
class GraphInfo:
    """What happened to the input on its way into a :class:`Graph`."""

    input_edges: int
    """Edges as given."""
    self_loops: int
    """Self-loops found (dropped, unless ``self_loops="keep"``)."""
    duplicates: int
    """Repeated edges that were merged into one."""
    one_way: int
    """Edges whose reverse was not in the input."""
    symmetrize: str
    """The rule for duplicates and for the two directions of an edge."""
    symmetrized: bool
    """Whether the two directions had to be reconciled at all."""


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected weighted graph in symmetric CSR form, validated once and never changed.

    Row ``i`` of the CSR matrix lists the neighbours ``indices[indptr[i]:indptr[i+1]]`` of node ``i`` in
    ascending order; entry ``e`` is "receiver i ← source j" with weight ``weight[e]`` = W_ij = W_ji > 0.
    Build one with :meth:`from_edge_index`, :meth:`from_edges`, :meth:`from_scipy`, :meth:`from_networkx`
    or :meth:`from_pyg`; the constructor itself checks nothing.

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
            raise InputError("indices and weight must have one number an entry each")
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
            are merged by it (an absent direction counts as nothing). "error" refuses both.
        self_loops : {"drop", "keep"}
            The gradient on a self-loop is zero, so it can only dilute a node's degree.
        """
        check_choice("symmetrize", symmetrize, Symmetrize)
        check_choice("self_loops", self_loops, SelfLoops)
        source, target = endpoints(edge_index)
        n = count_nodes(source, target, num_nodes)
        weight = checked_weights(edge_weight, source.size)
        rows = symmetric_rows(
            source, target, weight, n, _REDUCTIONS[symmetrize], drop_loops=self_loops == "drop"
        )
        info = GraphInfo(
            edge_index.shape[1],
            rows.self_loops,
            rows.duplicates,
            rows.one_way,
            symmetrize,
            rows.symmetrized,
        )
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
        """Build a graph from an edge list: anything NumPy makes an [E, 2] integer array of."""
        try:
            array = np.asarray(edges)
        except ValueError:
            raise InputError("edges must have shape [E, 2], and its rows differ in length") from None
        if array.size == 0:
            array = np.zeros((0, 2), dtype=np.int64)
        if array.ndim != 2 or array.shape[1] != 2:
            raise InputError(f"edges must have shape [E, 2], not {list(array.shape)}")
        if array.dtype.kind not in "iu":
            raise InputError(f"edges must hold integer node indices, not {array.dtype}")
        if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.max(initial=0) >= 2**63:
            raise InputError("edges holds an index of 2^63 or more")
        edge_index = torch.from_numpy(np.ascontiguousarray(array.T).astype(np.int64, copy=False))
        edge_weight = None if weight is None else weight_tensor(np.asarray(weight))
        return cls.from_edge_index(
            edge_index, edge_weight, num_nodes, symmetrize=symmetrize, self_loops=self_loops
        )

    @classmethod
    def from_scipy(
        cls,
        matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
        *,
        symmetrize: Symmetrize = "max",
        self_loops: SelfLoops = "drop",
    ) -> Graph:
        """Build a graph from a square SciPy sparse matrix whose entry (i, j) is the weight of i → j."""
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"matrix must be square, not of shape {tuple(matrix.shape)}")
        coo = matrix.tocoo()
        return cls.from_edge_index(
            torch.from_numpy(np.stack([coo.row, coo.col])),
            weight_tensor(coo.data),
            matrix.shape[0],
            symmetrize=symmetrize,
            self_loops=self_loops,
        )

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

        ``weight`` names the edge attribute that holds the weight; edges without it weigh 1.
        """
        position = {node: k for k, node in enumerate(graph)}
        edges = [(position[u], position[v]) for u, v in graph.edges()]
        weights = None
        if weight is not None:
            weights = np.array([edge_attribute(*edge) for edge in graph.edges(data=weight, default=1.0)])
        if not graph.is_directed():
            back = [k for k, (u, v) in enumerate(edges) if u != v]
            edges += [edges[k][::-1] for k in back]
            weights = None if weights is None else np.concatenate([weights, weights[back]])
        return cls.from_edges(
            edges, weights, graph.number_of_nodes(), symmetrize=symmetrize, self_loops=self_loops
        )

    @classmethod
    def from_pyg(cls, data: Data, *, symmetrize: Symmetrize = "max", self_loops: SelfLoops = "drop") -> Graph:
        """Build a graph from a PyG ``Data``: its ``edge_index``, ``edge_weight`` if any, ``num_nodes``."""
        if data.edge_index is None:
            raise InputError("data.edge_index is missing")
        return cls.from_edge_index(
            data.edge_index,
            data.get("edge_weight"),
            data.num_nodes,
            symmetrize=symmetrize,
            self_loops=self_loops,
        )

    @classmethod
    def from_torch_sparse(
        cls, matrix: Tensor, *, symmetrize: Symmetrize = "max", self_loops: SelfLoops = "drop"
    ) -> Graph:
        """Build a graph from a square torch sparse CSR, CSC or COO matrix, entry (i, j) being i → j."""
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"matrix must be square, not of shape {tuple(matrix.shape)}")
        coo = matrix.to_sparse(layout=torch.sparse_coo).coalesce()
        return cls.from_edge_index(
            coo.indices(), coo.values(), matrix.shape[0], symmetrize=symmetrize, self_loops=self_loops
        )

    @property
    def num_nodes(self) -> int:
        """N, nodes without edges included."""
        return self.indptr.shape[0] - 1

    @property
    def num_entries(self) -> int:
        """Stored entries: two an edge, one a kept self-loop."""
        return self.indices.shape[0]

    @property
    def num_edges(self) -> int:
        """Undirected edges, kept self-loops included."""
        return (self.num_entries + self.num_self_loops) // 2

    @property
    def num_self_loops(self) -> int:
        """Self-loops in the graph (0 unless they were kept)."""
        if self.info.self_loops == 0:
            return 0
        return int((self.receivers() == self.indices).sum())

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.weight.device

    @property
    def edge_index(self) -> Tensor:
        """Both directions of every edge as PyG has them, shape [2, entries]: source above target."""
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
        """Row of every entry, int64, shape [entries]."""
        counts = (self.indptr[1:] - self.indptr[:-1]).long()
        nodes = torch.arange(self.num_nodes, device=counts.device)
        return torch.repeat_interleave(nodes, counts, output_size=self.num_entries)

    def _degree(self) -> Tensor:
        """Row sums in float64; on the CPU and without gradients, no array of entries is made for them."""
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
        return replace(
            self,
            indptr=self.indptr.to(device),
            indices=self.indices.to(device),
            weight=self.weight.to(device),
        )

    def with_weight(self, weight: Tensor) -> Graph:
        """Return a graph of the same structure with other weights, one for each stored entry.

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


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
