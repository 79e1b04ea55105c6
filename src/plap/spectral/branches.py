"""All p-eigenpairs that grow out of the eigenpairs of Δ_2, followed in p, and which of them arrived."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.newton import refine
from plap.spectral.operator import Array, EdgeOperator, Eigenpair, check_p, eigenpair, signed_power, unit

_MOST = 500
_STEP, _SMALLEST_STEP = 0.05, 1e-3
_SOLVED = 1e-9
_SAME_BRANCH = 0.95
"""|cos| between vectors of one step, below which Newton's method went over to another branch."""

_SAME_VECTOR = 1 - 1e-6
_SAME_VALUE = 1e-8


@dataclass(frozen=True)
class Branch:
    """One eigenpair of Δ_2 and what became of it."""

    start: float
    """The eigenvalue at p = 2."""
    pair: Eigenpair
    """The pair at the p that was reached."""
    arrived: bool
    """Whether that is the p that was asked for."""
    merged_with: int | None
    """The earlier branch that ended in the same pair, if any."""


@dataclass(frozen=True)
class Branches:
    """The branches of a graph, in the order of their eigenvalues at p = 2, that of 0 first."""

    p: float
    branches: tuple[Branch, ...]

    @property
    def found(self) -> tuple[Eigenpair, ...]:
        """The different pairs at p, that of the eigenvalue 0 first."""
        return tuple(b.pair for b in self.branches if b.arrived and b.merged_with is None)

    @property
    def expected(self) -> int:
        """N, as many as there are at p = 2; for other p there can be more."""
        return len(self.branches)

    def __str__(self) -> str:
        lines = [
            f"p = {self.p:g}: {len(self.found) - 1} of {self.expected - 1} non-zero eigenvalues followed"
        ]
        for k, branch in enumerate(self.branches):
            lost = f"lost at p = {branch.pair.p:g}" if not branch.arrived else ""
            merged = f"merged with {branch.merged_with}" if branch.merged_with is not None else ""
            fate = lost or merged or f"{branch.pair.value:.6g}"
            lines.append(f"{k:4d}  {branch.start:.6g} → {fate}")
        return "\n".join(lines)


def eigenpair_branches(graph: Graph, p: float) -> Branches:
    """Follow every eigenpair of Δ_2 to a p-eigenpair, as far as it goes.

    Newton's method (``plap.spectral.newton.refine``) takes each pair from p = 2 in steps of 0.05, halved
    where it fails or leaves the branch. Of a multiple eigenvalue only some directions continue; as many
    independent ones as its multiplicity are looked for, as extremes of the quotient among its vectors.
    Branches can fold or merge, so not all of them arrive, and the result says which did. It is a best effort:
    for p ≠ 2 there can also be pairs that no branch leads to.

    Parameters
    ----------
    graph : Graph
        Connected, of at most 500 nodes and edges together, for the work is done with dense matrices.
    p : float, above 1

    Returns
    -------
    Branches

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> print(plap.spectral.eigenpair_branches(path, p=1.5))
    p = 1.5: 3 of 3 non-zero eigenvalues followed
       0  0 → 0
       1  0.5 → 0.498747
       2  1.5 → 1.16342
       3  2 → 1.60199
    """
    operator, p = EdgeOperator(graph), check_p(p, above_one=True)
    operator.require_connected("following branches")
    if sum(operator.B.shape) > _MOST:
        raise InputError(
            f"following branches is for at most {_MOST} nodes and edges together, not {sum(operator.B.shape)}"
        )
    zero = Eigenpair(p, 0.0, unit(np.sqrt(operator.degree), p), 0.0, True)
    branches = [Branch(0.0, zero, True, None)]
    for start, vector in _starts(operator, p):
        reached, u, residual = _follow(operator.dense, vector, p)
        pair = eigenpair(operator, u, reached, _SOLVED, residual)
        arrived = reached == p
        branches.append(Branch(start, pair, arrived, _twin(branches, pair) if arrived else None))
    return Branches(p, tuple(branches))


def _follow(B: Array, u: Array, target: float) -> tuple[float, Array, float]:
    """The p that was reached on the way from 2, the vector there and its residual."""
    p, residual, step = 2.0, 0.0, _STEP
    while p != target and step >= _SMALLEST_STEP:
        far = abs(target - p) > step * (1 + 1e-9)
        q = p + math.copysign(step, target - p) if far else target
        solution = refine(B, u, q)
        if solution.residual <= _SOLVED and _cosine(solution.vector, u) >= _SAME_BRANCH:
            p, u, residual = q, solution.vector, solution.residual
            step = min(_STEP, 2 * step)
        else:
            step /= 2
    return p, u, residual


def _cosine(u: Array, v: Array) -> float:
    return float(abs(u @ v) / (np.linalg.norm(u) * np.linalg.norm(v)))


def _twin(earlier: list[Branch], pair: Eigenpair) -> int | None:
    """Which earlier branch has this pair, if one has."""
    for k, branch in enumerate(earlier):
        if branch.arrived and _cosine(branch.pair.vector, pair.vector) > _SAME_VECTOR:
            return k if branch.merged_with is None else branch.merged_with
    return None


def _starts(operator: EdgeOperator, p: float) -> Iterator[tuple[float, Array]]:
    """Non-zero eigenvalues of Δ_2 and the vectors in which their branches begin."""
    values, vectors = np.linalg.eigh(operator.laplacian.toarray())
    groups = np.split(np.arange(values.size), np.flatnonzero(np.diff(values) > _SAME_VALUE) + 1)
    first = 2 + math.copysign(_STEP, p - 2)
    for group in groups[1:]:
        space = vectors[:, group]
        columns = space if group.size == 1 else _directions(operator, space, first)
        for u in columns.T:
            yield float(values[group].mean()), u


def _directions(operator: EdgeOperator, space: Array, p: float) -> Array:
    """Independent vectors of an eigenspace at which the quotient at p is extreme within it, [N, size].

    To first order in p − 2 a branch can leave the space only where its quotient is stationary. If too few
    extremes are found, vectors orthogonal to them fill up; their branches will mostly be lost.
    """
    size = space.shape[1]
    found = np.zeros((0, size))
    random = np.random.default_rng(0).standard_normal((4 * size, size))
    for guess, sign in itertools.product(np.vstack([np.eye(size), random]), (1.0, -1.0)):
        longer = np.vstack([found, _extreme(operator, space, p, guess, sign)])
        if np.linalg.svd(longer, compute_uv=False).min() > 0.1:
            found = longer
        if len(found) == size:
            break
    rest = np.linalg.svd(found)[2][len(found) :]
    return np.asarray(space @ np.vstack([found, rest]).T, dtype=np.float64)


def _extreme(operator: EdgeOperator, space: Array, p: float, guess: Array, sign: float) -> Array:
    """Coordinates of a minimum (sign 1) or maximum (−1) of the quotient within ``space``."""

    def quotient(c: Array) -> tuple[float, Array]:
        u = space @ c
        value = float(operator.quotient(u, p))
        slope = operator.apply(u, p) - value * signed_power(u, p - 1)
        return sign * value, sign * p * space.T @ slope / (np.abs(u) ** p).sum()

    c = minimize(quotient, guess, jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return np.asarray(c / np.linalg.norm(c), dtype=np.float64)
