"""Simple scores of an edge, to measure edge trust against; higher is more trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.graph import Graph
from plap.insight.weights import learned_weights, reverse_entries
from plap.nn.linear import Features

_PAIRS = 1 << 14
"""Pairs whose rows are held at a time."""


def feature_cosine(x: Features, pairs: Tensor) -> NDArray[np.float64]:
    """Cosine between the features of the two nodes of each pair; 0 where one has none.

    Parameters
    ----------
    x : Tensor or sparse matrix, shape [N, F]
    pairs : Tensor, shape [2, P]

    Examples
    --------
    >>> feature_cosine(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), torch.tensor([[0, 0], [1, 2]]))
    array([0.70710678, 0.        ])
    """
    rows = _rows(x)
    square = np.asarray((rows * rows).sum(axis=1), dtype=np.float64).ravel()
    norm = np.sqrt(square[pairs[0]] * square[pairs[1]])
    return _quotients(_row_products(rows, pairs), norm)


def neighbour_jaccard(graph: Graph, pairs: Tensor) -> NDArray[np.float64]:
    """Common neighbours of the two nodes of each pair, over the neighbours of either; weights do not count.

    Parameters
    ----------
    graph : Graph
    pairs : Tensor, shape [2, P]

    Examples
    --------
    >>> import plap
    >>> square = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    >>> neighbour_jaccard(square, torch.tensor([[0, 0], [1, 2]]))
    array([0.25, 0.5 ])
    """
    n = graph.num_nodes
    ones = np.ones(graph.num_entries)
    A = scipy.sparse.csr_array((ones, graph.indices.numpy(), graph.indptr.numpy()), shape=(n, n))
    common = _row_products(A, pairs)
    count = np.diff(graph.indptr.numpy())
    either = count[pairs[0]] + count[pairs[1]] - common
    return _quotients(common, either)


def attention_trust(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """GAT's attention in units of an even share, the mean over heads and both directions; [entries].

    Examples
    --------
    >>> import plap
    >>> graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> attention_trust(plap.nn.baselines.GAT(3, 4, 2, heads=2), torch.ones(3, 3), graph)
    tensor([1., 1., 1., 1.])
    """
    attention = learned_weights(module, x, graph).mean(1)
    neighbours = torch.bincount(graph.receivers(), minlength=graph.num_nodes)
    relative = attention * (neighbours + 1)[graph.receivers()]  # a node attends to itself too
    return (relative + relative[reverse_entries(graph)]) / 2


def _rows(x: Features) -> Any:
    """Something whose rows can be taken by number: a NumPy array, or a SciPy CSR one."""
    if not isinstance(x, Tensor):
        return scipy.sparse.csr_array(x)
    x = x.detach()
    if x.layout == torch.strided:
        return x.numpy()
    x = x.to_sparse_csr()
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_array(parts, shape=tuple(x.shape))


def _quotients(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 where there is nothing to divide by."""
    result: NDArray[np.float64] = np.divide(above, below, out=np.zeros(below.size), where=below > 0)
    return result


def _row_products(rows: Any, pairs: Tensor) -> NDArray[np.float64]:
    """Inner products of the two rows of each pair, without an array of pairs × columns."""
    first, second = pairs.numpy()
    result = np.empty(first.size)
    for start in range(0, first.size, _PAIRS):
        part = slice(start, start + _PAIRS)
        result[part] = np.asarray((rows[first[part]] * rows[second[part]]).sum(axis=1)).ravel()
    return result
