"""The second p-eigenpair: the smallest of the shifted Rayleigh quotient, followed from p = 2."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize
from scipy.sparse.linalg import cg, splu

from plap.checks import check_integer
from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.frequencies import spectrum
from plap.spectral.newton import refine
from plap.spectral.operator import Array, EdgeOperator, Eigenpair, check_p, eigenpair, signed_power, unit

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


_LEVELS = (1e-2, 1e-5, 1e-8)
"""Shares of the largest difference below which edges are glued rather than weighed, one after the other."""

_DENSE, _DIRECT = 500, 5_000
"""Nodes and edges up to which systems are dense, and nodes up to which they are factorised; beyond that
conjugate gradients solve them roughly."""

_GRADIENT_STEPS = 50
_REGULAR = 1e-14
"""What is added to a diagonal of ones, so that no weights make a system singular."""


def lowered(operator: EdgeOperator, u: Array, p: float, tol: float, max_iter: int) -> Array:
    """A vector of no higher quotient, near a local minimum of it if ``max_iter`` allows.

    It is shifted so that D^1/2 1 · φ_p(u) = 0 and has ‖u‖_p = 1; ``tol`` is the relative fall of the quotient
    that counts as none.
    """
    if p < 2:
        return _reweighted(operator, u, p, tol, max_iter)
    return _quasi_newton(operator, u, p, max_iter)


def shifted(operator: EdgeOperator, u: Array, p: float) -> Array:
    """The vector u − c D^1/2 1 for the c that makes its p-norm smallest."""
    root = np.sqrt(operator.degree)
    levels = u / root
    low, high = float(levels.min()), float(levels.max())

    def balance(c: float) -> float:
        return float(root @ signed_power(u - c * root, p - 1))

    if low < high:
        low = brentq(balance, low, high, xtol=4e-16 * max(-low, high), rtol=1e-15, maxiter=500, disp=False)
    result: Array = u - low * root
    return result


def _reweighted(operator: EdgeOperator, u: Array, p: float, tol: float, max_iter: int) -> Array:
    """Inverse iteration with weights: B^T (|Bu|^(p−2) Bv) = λ φ_p(u) for the next vector v, p < 2.

    The left side is the slope of a quadratic that lies above S_p and touches it at u, the right side that of
    λ times what lies below the norm; so v has the lower quotient, even where it solves this only roughly.
    Small differences would weigh without bound, so weights are cut off, at a level that sinks.
    """
    u = unit(shifted(operator, u, p), p)
    best, lowest = u, float(operator.quotient(u, p))
    for level in _LEVELS:
        u, value = best, lowest
        for _ in range(max_iter):
            last = value
            u = unit(shifted(operator, _weighted_solution(operator, u, p, value, level), p), p)
            if not u.any():
                break
            value = float(operator.quotient(u, p))
            if value < lowest:
                best, lowest = u, value
            if last - value <= tol * last:
                break
    return best


def _weighted_solution(operator: EdgeOperator, u: Array, p: float, value: float, level: float) -> Array:
    size = np.abs(operator.B @ u)
    weight = np.maximum(size, level * size.max()) ** (p - 2)
    pull = value * signed_power(u, p - 1)
    dense = sum(operator.B.shape) <= _DENSE
    if dense:
        matrix = (operator.dense.T * weight) @ operator.dense
    else:
        matrix = operator.transpose @ scipy.sparse.diags_array(weight) @ operator.B
    scale = 1 / np.sqrt(matrix.diagonal())
    if u.size > _DIRECT:
        preconditioner = scipy.sparse.diags_array(scale**2)
        solution, _ = cg(matrix, pull, x0=u, rtol=1e-3, maxiter=_GRADIENT_STEPS, M=preconditioner)
        return np.asarray(solution, dtype=np.float64)
    # D^1/2 1 can be added at will, so one node may stay at 0, best that where it is largest
    others = np.delete(np.arange(u.size), np.argmax(operator.degree))
    scale, v = scale[others], np.zeros_like(u)
    if dense:
        scaled = scale[:, None] * matrix[np.ix_(others, others)] * scale + _REGULAR * np.eye(scale.size)
        v[others] = scale * np.linalg.solve(scaled, scale * pull[others])
        return v
    diagonal = scipy.sparse.diags_array(scale)
    scaled = diagonal @ scipy.sparse.csr_array(matrix)[others][:, others] @ diagonal
    scaled = scipy.sparse.csc_array(scaled + _REGULAR * scipy.sparse.eye_array(scale.size))
    factors = splu(scaled, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    v[others] = scale * factors.solve(scale * pull[others])
    return v


def _quasi_newton(operator: EdgeOperator, u: Array, p: float, max_iter: int) -> Array:
    """L-BFGS, for p > 2, where the quotient is smooth."""

    def quotient(u: Array) -> tuple[float, Array]:
        difference, around = operator.B @ u, shifted(operator, u, p)
        norm = (np.abs(around) ** p).sum()
        value = (np.abs(difference) ** p).sum() / norm
        slope = operator.transpose @ signed_power(difference, p - 1) - value * signed_power(around, p - 1)
        return value, p * slope / norm

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 20, "ftol": 1e-16, "gtol": 1e-12}
    result = minimize(quotient, unit(u, p), jac=True, method="L-BFGS-B", options=options)
    return unit(shifted(operator, result.x, p), p)
