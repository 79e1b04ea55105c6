"""How much a function on the nodes varies around each node (Eq. 1 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.graph import Graph
from plap.sparse import scipy_from_tensor

_CELLS = 1 << 22
"""Numbers that one step may hold beside the features."""


def gradient_norms(x: Tensor, graph: Graph) -> NDArray[np.float64]:
    r"""Return ‖∇f(i)‖ of every node, float64 [N], for f given by the rows of dense or CSR ``x`` [N, F].

    .. math::
        \|\nabla f(i)\|^2 = \sum_j \Big\| \sqrt{W_{ij}/D_j}\, f(j) - \sqrt{W_{ij}/D_i}\, f(i) \Big\|^2
        = (W s)_i + D_i s_i - 2\, g_i \cdot (W g)_i, \qquad g_i = f(i)/\sqrt{D_i},\; s_i = \|g_i\|^2

    The last form needs no array of edges × features, and no dense one of sparse features. What is left of
    its cancellation, 1e-7 of the two terms' root, is rounded to 0.

    Examples
    --------
    >>> import plap
    >>> gradient_norms(torch.tensor([[0.0], [2.0], [2.0]]), plap.Graph.from_edges([(0, 1), (1, 2)]))
    array([1.41421356, 1.53073373, 0.58578644])
    """
    n = graph.num_nodes
    degree = graph.degree.detach().double().numpy()
    scale = np.divide(1, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    g = _rows(x, scale)
    matrix = graph.to_scipy(copy=False)
    square = _row_sums(g * g)
    terms = matrix @ square + degree * square
    norms: NDArray[np.float64] = np.zeros(n)
    for start, stop in _blocks(matrix, g):
        own, around = g[start:stop], matrix[start:stop] @ g
        norms[start:stop] = terms[start:stop] - 2 * _row_sums(own * around)
    norms[norms <= 1e-14 * terms] = 0
    return np.sqrt(norms)


def _rows(x: Tensor, scale: NDArray[np.float64]) -> Any:
    """Features as float64, each row times its scale, sparse if ``x`` is."""
    if x.layout == torch.strided:
        return x.detach().double().numpy() * scale[:, None]
    matrix = scipy_from_tensor(x).astype(np.float64)
    matrix.data *= np.repeat(scale, np.diff(matrix.indptr))
    return matrix


def _row_sums(matrix: Any) -> NDArray[np.float64]:
    return np.asarray(matrix.sum(axis=1)).ravel()


def _blocks(matrix: scipy.sparse.csr_array, g: Any) -> list[tuple[int, int]]:
    """Ranges of rows whose product with ``g`` stays small."""
    n = matrix.shape[0]
    entries = np.diff(matrix.indptr).astype(np.int64)
    width = g.shape[1]
    if scipy.sparse.issparse(g):
        filled = g.nnz / max(n, 1)
        cost = np.minimum(width, 1 + entries * filled)
    else:
        cost = np.full(n, float(width))
    part = (np.cumsum(cost) // _CELLS).astype(np.int64)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True)) if n else []
