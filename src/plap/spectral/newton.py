"""Newton's method for one p-eigenpair near a guess, with dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plap.spectral.operator import Array, signed_power, unit

_TOLERANCE = 1e-12
_ITERATIONS = 40
_SMALLEST_STEP = 1e-4
_RANK = 1e-9
"""Singular values below this share of the largest count as 0: a multiple eigenvalue has such directions."""


@dataclass(frozen=True)
class Solution:
    """Where Newton's method ended."""

    vector: Array
    residual: float
    """Norm of all equations."""


def refine(B: Array, u: Array, p: float) -> Solution:
    r"""Solve :math:`B^\top \phi_p(B u) = \lambda \phi_p(u)`, ‖u‖_p = 1, from a guess of u.

    For p ≥ 2 these are the equations. For p < 2 their derivatives are infinite where u or Bu is 0; there the
    unknowns are v = φ_p(u) and the fluxes z, and the equations, with φ_q the inverse of φ_p,

    .. math:: B^\top z = \lambda v, \qquad B \phi_q(v) = \phi_q(z), \qquad \|v\|_q = 1,

    which are smooth. Steps are those of smallest norm, for multiple eigenvalues make the matrix singular, and
    are halved until the norm of the equations falls.

    Parameters
    ----------
    B : array, shape [edges, N]
    u : array, shape [N]
    p : float, above 1
    """
    u = unit(u, p)
    value = (np.abs(B @ u) ** p).sum()
    if p >= 2:
        x, residual = _newton(*_direct(B, p), np.append(u, value))
        return Solution(x[:-1], residual)
    guess = np.concatenate([signed_power(u, p - 1), signed_power(B @ u, p - 1), [value]])
    x, residual = _newton(*_with_fluxes(B, p), guess)
    return Solution(signed_power(x[: u.size], 1 / (p - 1)), residual)


Equations = Callable[[Array], Array]


def _direct(B: Array, p: float) -> tuple[Equations, Equations]:
    """The equations in (u, λ) and their matrix of derivatives."""
    n = B.shape[1]

    def equations(x: Array) -> Array:
        u, value = x[:n], x[n]
        turn = B.T @ signed_power(B @ u, p - 1) - value * signed_power(u, p - 1)
        return np.append(turn, ((np.abs(u) ** p).sum() - 1) / p)

    def derivatives(x: Array) -> Array:
        u, value = x[:n], x[n]
        J = np.zeros((n + 1, n + 1))
        J[:n, :n] = (B.T * np.abs(B @ u) ** (p - 2)) @ B
        J[:n, :n] -= value * np.diag(np.abs(u) ** (p - 2))
        J[:n, :n] *= p - 1
        J[:n, n] = -signed_power(u, p - 1)
        J[n, :n] = signed_power(u, p - 1)
        return J

    return equations, derivatives


def _with_fluxes(B: Array, p: float) -> tuple[Equations, Equations]:
    """The equations in (v, z, λ) and their matrix of derivatives."""
    m, n = B.shape
    q = p / (p - 1)

    def equations(x: Array) -> Array:
        v, z, value = x[:n], x[n:-1], x[-1]
        balance = B.T @ z - value * v
        flux = B @ signed_power(v, q - 1) - signed_power(z, q - 1)
        return np.concatenate([balance, flux, [((np.abs(v) ** q).sum() - 1) / q]])

    def derivatives(x: Array) -> Array:
        v, z, value = x[:n], x[n:-1], x[-1]
        J = np.zeros((n + m + 1, n + m + 1))
        J[:n, :n] = -value * np.eye(n)
        J[:n, n:-1] = B.T
        J[:n, -1] = -v
        J[n:-1, :n] = B * ((q - 1) * np.abs(v) ** (q - 2))
        J[n:-1, n:-1] = -np.diag((q - 1) * np.abs(z) ** (q - 2))
        J[-1, :n] = signed_power(v, q - 1)
        return J

    return equations, derivatives


@np.errstate(over="ignore", invalid="ignore")
def _newton(equations: Equations, derivatives: Equations, x: Array) -> tuple[Array, float]:
    """Damped Newton; a step that overflows is one that does not make the norm fall."""
    r = equations(x)
    norm = float(np.linalg.norm(r))
    for _ in range(_ITERATIONS):
        if norm <= _TOLERANCE:
            break
        step = np.linalg.lstsq(derivatives(x), -r, rcond=_RANK)[0]
        share = 1.0
        while share >= _SMALLEST_STEP:
            there = equations(x + share * step)
            if float(np.linalg.norm(there)) < norm * (1 - 1e-4 * share):
                break
            share /= 2
        else:
            break
        x, r, norm = x + share * step, there, float(np.linalg.norm(there))
    return x, norm
