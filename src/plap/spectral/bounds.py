"""Upper bounds of p-eigenvalues: Theorem 7 as printed, and what its proof actually gives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.operator import Array, EdgeOperator, check_p


@dataclass(frozen=True)
class Bounds:
    """Upper bounds of one p-eigenvalue, or of all; the lower bound is 0, for λ = S_p(u)/‖u‖_p^p."""

    paper: float
    """Theorem 7 as printed: 2^(p−1) for p ≥ 2, 2^(p−1) √N_k for 1 < p < 2, √N_min for p = 1, which is
    false."""
    power_mean: float
    """2^(p−1) N_k^(1−p/2) for p ≤ 2, continuous at 2 and never above the paper's; 2^(p−1) for p ≥ 2."""
    local: float
    """2^(p−1) Σ_j (W_kj/D_k)^(p/2), the sharpest of them and valid for every p."""
    node: int
    """The node k that ``power_mean`` and ``local`` belong to."""


def eigenvalue_bounds(graph: Graph, p: float, vector: ArrayLike | None = None) -> Bounds:
    r"""Upper bounds of the p-eigenvalue of a p-eigenvector, or without one of all p-eigenvalues.

    At the node k of the largest \|u_k\|/√D_k every neighbour counts for at most as much as k itself, so

    .. math:: \lambda \le 2^{p-1} \sum_j (W_{kj}/D_k)^{p/2} \le 2^{p-1} N_k^{1-p/2} \quad (1 < p \le 2),

    and without the eigenvector the largest over all k is a bound. Equality holds on regular bipartite
    graphs. For p = 1 the proof of Theorem 7 divides by u_i, so it bounds λ by Σ_j √(W_ij/D_i) only at nodes
    where u_i ≠ 0: the smallest of those counts. The printed √N_min takes the smallest over all nodes; on a
    star it says 1, while the function that is 1 at the centre has the eigenvalue √N.

    Parameters
    ----------
    graph : Graph
        With at least one edge between two nodes.
    p : float, at least 1
    vector : array, shape [N], optional
        A p-eigenvector.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> import plap
    >>> star = plap.Graph.from_edges([(0, k) for k in range(1, 5)])
    >>> bounds = plap.spectral.eigenvalue_bounds(star, p=1)
    >>> bounds.paper, bounds.local
    (1.0, 2.0)
    >>> plap.spectral.largest_eigenpair(star, p=1).value
    2.0
    """
    operator, p = EdgeOperator(graph), check_p(p)
    neighbours = np.bincount(np.concatenate(operator.ends), minlength=operator.num_nodes)
    if not neighbours.any():
        raise InputError("graph has no edge between two nodes, so its only p-eigenvalue is 0")
    local = 2 ** (p - 1) * operator.row_sums(p)
    power_mean = 2 ** (p - 1) * neighbours.clip(min=1) ** max(1 - p / 2, 0.0)
    node = _node(operator, p, local, None if vector is None else _checked(vector, operator.num_nodes))
    if p >= 2:
        paper = 2 ** (p - 1)
    elif p > 1:
        paper = 2 ** (p - 1) * math.sqrt(neighbours.max() if vector is None else neighbours[node])
    else:
        paper = math.sqrt(neighbours[neighbours > 0].min())
    if vector is None:
        return Bounds(float(paper), float(power_mean.max()), float(local.max()), node)
    return Bounds(float(paper), float(power_mean[node]), float(local[node]), node)


def _node(operator: EdgeOperator, p: float, local: Array, u: Array | None) -> int:
    """The node k whose bound holds."""
    if u is None:
        return int(np.argmax(local))
    if p == 1:
        return int(np.argmin(np.where(u != 0, local, np.inf)))
    height = np.abs(u) / np.sqrt(np.where(operator.degree > 0, operator.degree, 1))
    return int(np.argmax(height))


def _checked(vector: ArrayLike, n: int) -> Array:
    u: Array = np.asarray(vector, dtype=np.float64)
    if u.shape != (n,) or not np.isfinite(u).all() or not u.any():
        raise InputError(f"vector must hold {n} finite numbers, one per node and not all 0")
    return u
