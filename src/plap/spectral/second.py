"""The second p-eigenpair: the smallest of the shifted Rayleigh quotient, followed from p = 2."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plap.checks import check_integer
from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.exact import spectrum
from plap.spectral.newton import refine
from plap.spectral.operator import Array, EdgeOperator, Eigenpair, check_p, eigenpair
from plap.spectral.quotient import lowered, shifted

_STEP = 0.1
_ROUGH, _FINE = 1e-6, 1e-9
"""Relative fall of the quotient that counts as none, on the way and at the end."""

_SMALL = 250
"""Nodes and edges together up to which Newton's method, with dense matrices, has the last word."""


def second_eigenpair(
    graph: Graph, p: float, *, starts: int = 3, tol: float = 1e-8, max_iter: int = 100
) -> Eigenpair:
    r"""The p-eigenpair of the smallest non-zero p-eigenvalue, whose signs cut the graph in two.

    .. math:: \lambda_2 = \min_u \frac{\mathcal{S}_p(u)}{\min_c \|u - c\, D^{1/2} 1\|_p^p}

    for a connected graph (Bühler and Hein, 2009). It is minimised at 2, 2 ± 0.1, … up to p, each time from
    the last vector or, for p < 2, from its best cut, whichever is lower: by inverse iteration with weights
    for p < 2, by L-BFGS for p > 2. The quotient is not convex, so what is found may be a local minimum, and
    the value is an upper bound of λ₂. As p → 1 it goes to the best Cheeger cut of the graph
    (:func:`plap.spectral.spectral_clustering`), which is hard to find, so p = 1 is not offered. On graphs of
    up to 250 nodes and edges Newton's method sharpens the result; on larger ones the value is good near
    p = 1, the residual is not.

    Parameters
    ----------
    graph : Graph
        Connected, with two nodes or more.
    p : float, above 1
    starts : int
        How many eigenvectors of Δ_2, from the second on, are followed; the best result counts.
    tol : float
        The residual at which the pair has converged.
    max_iter : int
        Steps at each of the values of p (for p < 2, at each of three levels of smoothing).

    Returns
    -------
    Eigenpair

    Examples
    --------
    The leaves of a star differ by λ = 1 for every p.

    >>> import plap
    >>> star = plap.Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> round(plap.spectral.second_eigenpair(star, p=1.5).value, 9)
    1.0
    """
    operator, p = EdgeOperator(graph), check_p(p, above_one=True)
    operator.require_connected("the second p-eigenpair")
    count = min(check_integer("starts", starts, 1), operator.num_nodes - 1)
    check_integer("max_iter", max_iter, 1)
    vectors = spectrum(graph, k=count + 1).vectors[:, 1:]
    if p == 2:
        return eigenpair(operator, vectors[:, 0], p, tol)
    found = [_followed(operator, u, p, tol, max_iter) for u in vectors.T]
    return min(found, key=lambda pair: pair.value)


def _followed(operator: EdgeOperator, u: Array, p: float, tol: float, max_iter: int) -> Eigenpair:
    """Minimise at every p on the way; on small graphs sharpen what comes out.

    Not before the end, for what is exact keeps the symmetries of the graph, and the minimum may break them.
    """
    steps = int(np.ceil(abs(p - 2) / _STEP - 1e-9))
    for q in np.linspace(2, p, steps + 1)[1:].tolist():
        u = lowered(operator, _start(operator, u, q), q, _FINE if q == p else _ROUGH, max_iter)
    pair = eigenpair(operator, u, p, tol)
    return _sharpened(operator, pair, tol) if sum(operator.B.shape) <= _SMALL else pair


def _start(operator: EdgeOperator, u: Array, p: float) -> Array:
    """The vector itself, or its best cut where that has the lower quotient already, as happens for p → 1."""
    if p > 2:
        return u
    root = np.sqrt(operator.degree)
    inside, _ = best_threshold(operator, u / root)
    cut = shifted(operator, np.where(inside, root, 0.0), p)
    lower = operator.quotient(cut, p) < operator.quotient(shifted(operator, u, p), p)
    return cut if lower else u


def _sharpened(operator: EdgeOperator, pair: Eigenpair, tol: float) -> Eigenpair:
    """The pair that Newton's method finds near this one, unless it is a higher one."""
    solution = refine(operator.dense, pair.vector, pair.p)
    sharper = eigenpair(operator, solution.vector, pair.p, tol, solution.residual)
    no_other = 0 < sharper.value <= pair.value * (1 + 1e-9)
    return sharper if no_other and sharper.residual < pair.residual else pair


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
