"""Cheeger cuts by the weights that the paper's p-Laplacian has at p = 1, and the best one of a function."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.operator import Array, EdgeOperator


def cheeger_cut(graph: Graph, inside: ArrayLike) -> float:
    r"""The Cheeger cut of a set A of nodes, by the weights that the paper's p-Laplacian has at p = 1.

    .. math:: h(A) = \frac{\sum_{i \in A, j \notin A} \sqrt{W_{ij}}}
        {\min(\sum_{i \in A} \sqrt{D_i}, \sum_{j \notin A} \sqrt{D_j})}

    Parameters
    ----------
    graph : Graph
    inside : array of bool, shape [N]
        Neither all true nor all false, and with edges on both sides.

    Examples
    --------
    >>> import plap
    >>> plap.spectral.cheeger_cut(plap.Graph.from_edges([(0, 1), (2, 3), (1, 2)]), [1, 1, 0, 0])
    0.4142135623730951
    """
    operator = EdgeOperator(graph)
    chosen = np.asarray(inside).astype(bool)
    if chosen.shape != (operator.num_nodes,):
        raise InputError(f"inside must have shape [{operator.num_nodes}], not {list(chosen.shape)}")
    root = np.sqrt(operator.degree)
    smaller = min(root[chosen].sum(), root[~chosen].sum())
    if smaller == 0:
        raise InputError("inside must leave nodes with edges on both sides")
    i, j = operator.ends
    return float(np.sqrt(operator.weight[chosen[i] != chosen[j]]).sum() / smaller)


def best_threshold(operator: EdgeOperator, level: Array) -> tuple[NDArray[np.bool_], float]:
    """Which nodes lie above the best threshold, and its Cheeger cut.

    In ascending order of level, an edge is cut by every threshold from its lower end on up to its higher one.
    """
    order = np.argsort(level, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    low, high = np.sort(np.stack([rank[end] for end in operator.ends]), axis=0)
    weight, n = np.sqrt(operator.weight), order.size
    starting = np.bincount(low, weight, n) - np.bincount(high, weight, n)
    below = np.cumsum(np.sqrt(operator.degree)[order])
    cuts = np.cumsum(starting)[:-1] / np.minimum(below, below[-1] - below)[:-1]
    ties = np.diff(level[order]) <= 1e-12 * np.abs(level).max()
    best = int(np.argmin(np.where(ties, np.inf, cuts)))
    return rank > best, float(cuts[best])
