"""Descent of the shifted Rayleigh quotient S_p(u) / min_c ‖u − c D^1/2 1‖_p^p from a given vector."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.optimize import brentq, minimize
from scipy.sparse.linalg import cg, splu

from plap.spectral.operator import Array, EdgeOperator, signed_power, unit

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
