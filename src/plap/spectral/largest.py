"""The largest p-eigenpair, by a power method from several starts at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plap.checks import check_integer
from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.frequencies import spectrum
from plap.spectral.operator import (
    Array,
    EdgeOperator,
    Eigenpair,
    check_p,
    eigenpair,
    signed_power,
    unit,
)

_TRIAL, _FINALISTS = 100, 4
"""Steps from every start, after which only the best of them go on."""


def largest_eigenpair(
    graph: Graph, p: float, *, starts: int = 32, tol: float = 1e-9, max_iter: int = 5_000
) -> Eigenpair:
    r"""The p-eigenpair of the largest p-eigenvalue, max S_p(u) / ‖u‖_p^p.

    .. math:: u \leftarrow \phi_q(\Delta_p u) / \|\phi_q(\Delta_p u)\|_p, \qquad 1/p + 1/q = 1

    maximises what touches the convex S_p from below at u, so that no step lowers the quotient (Boyd's power
    method). It can end below the maximum, and is therefore run from several starts: the largest eigenvector
    of Δ_2, functions that are 1 at one node, which are where the maximum goes for p → 1, and ±D^1/2 with
    random signs, because the larger p is, the more a cut of many edges counts. At p = 1 a node is the answer
    (in the set-valued sense), at p = 2 linear algebra gives it; otherwise the value is a lower bound of the
    largest.

    Parameters
    ----------
    graph : Graph
        With at least one edge between two nodes.
    p : float, at least 1
    starts : int
        How many nodes to start from, those of the largest Σ_j (W_ij/D_i)^(p/2) first, and how many signs.
    tol : float
        The residual at which a run has converged.
    max_iter : int

    Returns
    -------
    Eigenpair

    Examples
    --------
    On one edge the difference is the only direction, with λ = 2^(p−1).

    >>> import plap
    >>> edge = plap.Graph.from_edges([(0, 1)])
    >>> round(plap.spectral.largest_eigenpair(edge, p=3).value, 12)
    4.0
    """
    operator, p = EdgeOperator(graph), check_p(p)
    check_integer("starts", starts, 0)
    check_integer("max_iter", max_iter, 1)
    if operator.B.shape[0] == 0:
        raise InputError("graph has no edge between two nodes, so its only p-eigenvalue is 0")
    if p == 1:
        # S_1 is convex, and the unit ball of ‖u‖_1 has its corners at these functions
        return Eigenpair(p, float(operator.row_sums(1).max()), _corners(operator, p, 1)[:, 0], 0.0, True)
    top = spectrum(graph, k=1, which="largest").vectors
    if p == 2:
        return eigenpair(operator, top[:, 0], p, tol)
    u = unit(np.hstack([top, _corners(operator, p, starts), _signs(operator, starts)]), p)
    quotient = operator.quotient(u, p)
    u = u[:, quotient > 1e-9 * quotient.max()]  # equal signs give the constant, which has no slope
    u = _climb(operator, u, p, tol / 100, min(_TRIAL, max_iter))
    u = _climb(operator, u[:, _best(operator, u, p)[:_FINALISTS]], p, tol / 100, max_iter - _TRIAL)
    return eigenpair(operator, u[:, _best(operator, u, p)[0]], p, tol)


def _corners(operator: EdgeOperator, p: float, count: int) -> Array:
    """Functions that are 1 at one node, [N, count or fewer], those of the largest quotient first."""
    sums = operator.row_sums(p)
    nodes = np.argsort(-sums, kind="stable")[: min(count, np.count_nonzero(sums))]
    u = np.zeros((operator.num_nodes, nodes.size))
    u[nodes, np.arange(nodes.size)] = 1
    return u


def _signs(operator: EdgeOperator, count: int) -> Array:
    """±D^1/2 with random signs, [N, count]."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (operator.num_nodes, count))
    result: Array = signs * np.sqrt(operator.degree)[:, None]
    return result


def _best(operator: EdgeOperator, u: Array, p: float) -> NDArray[np.int64]:
    """Columns in descending order of their quotients."""
    return np.argsort(-operator.quotient(u, p), kind="stable")


def _climb(operator: EdgeOperator, u: Array, p: float, tol: float, max_iter: int) -> Array:
    """Iterate on all columns, of norm 1, until Δ_p u = λ φ_p(u) on every one of them."""
    for _ in range(max_iter):
        slope = operator.apply(u, p)
        value = (u * slope).sum(axis=0)
        if np.abs(slope - value * signed_power(u, p - 1)).max() <= tol:
            break
        slope /= np.abs(slope).max(axis=0)
        u = unit(signed_power(slope, 1 / (p - 1)), p)
    return u
