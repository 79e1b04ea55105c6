"""The graph gradient, Eq. 1, as a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plap.calculus import incidence
from plap.graph import Graph
from plap.sparse import csr_tensor

_BLOCK = 1 << 20
"""Largest number of elements of an edges × channels array held at a time, unless x itself has more."""

_DENSE = 1 << 15
"""Entries up to which a dense matrix is faster: a sparse product wakes all threads, however small it is."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of the incidence matrix B; that of the edge i-j has (W_ij/D_i)^½ at i and −(W_ij/D_j)^½ at j."""

    matrix: Tensor
    """B, shape [edges, N], sparse unless it is small; B F is the gradient of F on the edges, up to sign."""
    adjoint: Tensor
    """Bᵀ, shape [N, edges]."""
    squared: Tensor
    """The squares of Bᵀ's entries, W_ij/D_i."""


class Incidence:
    """The incidence matrix of :func:`plap.calculus.incidence` in blocks of rows, and its edges' ends."""

    def __init__(self, graph: Graph, channels: int) -> None:
        self.ends, share = incidence(graph)
        size = max(1, _BLOCK // max(1, channels), graph.num_nodes)
        parts = zip(self.ends.split(size), share.split(size), strict=True)
        self.blocks = [_block(*part, graph.num_nodes) for part in parts if part[0].numel()]


def _block(ends: Tensor, share: Tensor, nodes: int) -> Block:
    count, column, value = ends.shape[0], ends.reshape(-1), share.reshape(-1)
    order = torch.argsort(column, stable=True)
    starts = torch.zeros(nodes + 1, dtype=torch.int64, device=ends.device)
    starts[1:] = torch.bincount(column, minlength=nodes).cumsum(0)
    rows = 2 * torch.arange(count + 1, device=ends.device)
    # 32-bit indices wherever they suffice: they take half the room, and products with them are faster
    index = torch.int32 if value.numel() < 2**31 else torch.int64
    edge, starts, transposed = (order // 2).to(index), starts.to(index), value[order]
    return Block(
        _matrix(rows.to(index), column.to(index), value, (count, nodes)),
        _matrix(starts, edge, transposed, (nodes, count)),
        _matrix(starts, edge, transposed.square(), (nodes, count)),
    )


def _matrix(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    matrix = csr_tensor(starts, columns, values, shape)
    return matrix.to_dense() if shape[0] * shape[1] <= _DENSE else matrix
