"""How far Theorems 5 and 6 are from true on a graph: numbers to look at before building on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plap.checks import check_integer
from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.branches import Branches
from plap.spectral.operator import Array, EdgeOperator, signed_power

_DIFFERENT = 1e-6


@dataclass(frozen=True)
class OrthogonalityDefect:
    """Theorem 5 says that φ_p(u) · φ_p(v) = 0 for different non-zero eigenvalues; here is what it is."""

    cosines: Array
    """Absolute cosine between φ_p(u) and φ_p(v), shape [found, found], in the order of ``Branches.found``."""
    largest: float
    """The largest of them over pairs of different non-zero eigenvalues, 0 if there is no such pair."""
    with_constant: float
    """The largest absolute cosine between D^1/2 1 and φ_p(u) for a non-zero eigenvalue: 0 but for rounding,
    because the components of Δ_p u, weighted by D^1/2, sum to 0."""


def orthogonality_defect(graph: Graph, branches: Branches) -> OrthogonalityDefect:
    """Measure Theorem 5 on the pairs that :func:`plap.spectral.eigenpair_branches` found.

    The theorem holds to first order only: the defect grows as ``|p − 2|``, and faster between eigenvalues
    that are close to each other.

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> for p in (2, 2.1, 3):
    ...     found = plap.spectral.eigenpair_branches(path, p)
    ...     print(p, round(plap.spectral.orthogonality_defect(path, found).largest, 2))
    2 0.0
    2.1 0.05
    3 0.39
    """
    operator = EdgeOperator(graph)
    _check_same(operator, branches)
    p, found = branches.p, branches.found
    values = np.array([pair.value for pair in found])
    powers = np.stack([signed_power(pair.vector, p - 1) for pair in found], axis=1)
    powers /= np.linalg.norm(powers, axis=0)
    cosines = np.abs(powers.T @ powers)
    different = np.abs(values[:, None] - values[None, :]) > _DIFFERENT
    different[0, :] = different[:, 0] = False
    root = np.sqrt(operator.degree)
    with_constant = np.abs(root @ powers[:, 1:]) / np.linalg.norm(root)
    return OrthogonalityDefect(
        cosines, float(cosines[different].max(initial=0)), float(with_constant.max(initial=0))
    )


@dataclass(frozen=True)
class DecompositionDefect:
    """Theorem 6 says that Δ_p = Φ Λ Φᵀ with Φ = φ_p(U); relative errors on random functions, their means."""

    decomposition: float
    """‖c Φ Λ Φᵀ f − Δ_p f‖ / ‖Δ_p f‖ with the best factor c, for the two sides grow differently with f."""
    laplacian: float
    """‖c Δ_2 f − Δ_p f‖ / ‖Δ_p f‖: what the plain Laplacian in place of Δ_p would cost."""
    identity: float
    """‖Φ Φᵀ f − f‖ / ‖f‖: what the paper's Fourier transform and its inverse lose."""


def decomposition_defect(
    graph: Graph, branches: Branches, *, samples: int = 100, seed: int = 0
) -> DecompositionDefect:
    """Measure Theorem 6, which cannot hold for p ≠ 2, on functions f with standard normal values.

    Δ_p(cf) = c^(p−1) Δ_p f, while Φ Λ Φᵀ is linear.

    Parameters
    ----------
    graph : Graph
    branches : Branches
        With all N pairs found.
    samples : int
    seed : int

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> found = plap.spectral.eigenpair_branches(path, p=3)
    >>> round(plap.spectral.decomposition_defect(path, found).decomposition, 1)
    0.2
    """
    operator = EdgeOperator(graph)
    _check_same(operator, branches)
    p, found = branches.p, branches.found
    if len(found) < branches.expected:
        raise InputError(
            f"Theorem 6 needs all {branches.expected} pairs at p = {p:g}, and {len(found)} were found"
        )
    f = np.random.default_rng(seed).standard_normal(
        (operator.num_nodes, check_integer("samples", samples, 1))
    )
    Phi = np.stack([signed_power(pair.vector, p - 1) for pair in found], axis=1)
    values = np.array([pair.value for pair in found])
    truth = operator.apply(f, p)
    return DecompositionDefect(
        _error(_scaled(Phi @ (values[:, None] * (Phi.T @ f)), truth), truth),
        _error(_scaled(operator.laplacian @ f, truth), truth),
        _error(Phi @ (Phi.T @ f), f),
    )


def _scaled(approximation: Array, truth: Array) -> Array:
    """Each column times the factor that brings it nearest to the truth."""
    result: Array = approximation * (approximation * truth).sum(axis=0) / np.square(approximation).sum(axis=0)
    return result


def _error(approximation: Array, truth: Array) -> float:
    difference = np.linalg.norm(approximation - truth, axis=0)
    return float((difference / np.linalg.norm(truth, axis=0)).mean())


def _check_same(operator: EdgeOperator, branches: Branches) -> None:
    if branches.expected != operator.num_nodes:
        raise InputError(
            f"branches belong to a graph of {branches.expected} nodes, not of {operator.num_nodes}"
        )
