"""Theorem 7 and Proposition 1: bounds of p-eigenvalues, and at which nodes a step is low-pass."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from plap.checks import check_number
from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.operator import Array, EdgeOperator, check_p
from plap.spectral.response import as_signal


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


_BLOCK = 1 << 22
"""Numbers of an edges × channels array that exist at one time."""


@dataclass(frozen=True)
class NodeRegimes:
    """How one step of message passing acts on each node, by Proposition 1 put right."""

    regime: NDArray[np.str_]
    """Shape [N]: "low-pass" where the cut-off is at least ``top``, "low-high-pass" below, and "held" for a
    node on which no edge acts, which keeps its input."""
    cutoff: Array
    """Σ_j M_ij / D_i = 1/α̃_i, the frequency at which 1 − α̃_i λ changes its sign, shape [N]."""
    top: float
    """The end of the spectrum that the cut-offs are compared with."""
    gradient_norm: Array
    """‖∇f(i)‖ = (Σ_j ‖∇f([i, j])‖²)^½, shape [N]."""
    threshold: float
    """top^(1/(p−2)). A gradient norm of at most this settles the regime: low-pass for p < 2, low-high-pass
    for p > 2. One above it settles nothing. NaN for p = 2, where every node is low-high-pass."""
    settled: NDArray[np.bool_]
    """Where the gradient norm alone does so. For p < 2 not where neighbours are equal: their edges do not
    act."""
    paper_threshold: float
    """The threshold as printed, for the largest N_k (for p = 1 with N_min): the paper takes norms above it as
    settled too, the other way."""


def node_regimes(x: Tensor | ArrayLike, graph: Graph, p: float, *, top: float | None = None) -> NodeRegimes:
    r"""Whether the step that starts from x is low-pass or low-high-pass on each node (Proposition 1).

    The proposition reads a step as multiplying with 1 − α̃_i λ up to a constant, where

    .. math:: 1/\tilde\alpha_i = \sum_j \frac{M_{ij}}{D_i}
        = \sum_j \frac{W_{ij}}{D_i} \|\nabla f([i,j])\|^{p-2},

    which stays positive on the whole spectrum if 1/α̃_i is at least its end (low-pass), and otherwise grows
    again beyond the cut-off 1/α̃_i (low-high-pass). That is a picture, not a theorem: no p-eigenvalue belongs
    to a node. What is exact here is the cut-off, so it decides; the paper's test of ‖∇f(i)‖ is a bound on it
    and settles one of the two sides only. The end of the spectrum is the bound
    2^(p−1) max_k Σ_j (W_kj/D_k)^(p/2) instead of Theorem 7's, which is larger, and for p = 1 false.

    Parameters
    ----------
    x : Tensor or array, shape [N] or [N, C]
        Its scale matters for p ≠ 2.
    graph : Graph
    p : float, at least 1
    top : float, optional
        Another end of the spectrum, such as the value of :func:`plap.spectral.largest_eigenpair`.

    Returns
    -------
    NodeRegimes

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)], num_nodes=5)
    >>> x = [0.0, 0.1, 5.0, 9.0, 1.0]
    >>> plap.spectral.node_regimes(x, path, p=1.5).regime.tolist()
    ['low-pass', 'low-pass', 'low-high-pass', 'low-high-pass', 'held']
    """
    p, signal = check_p(p), as_signal("x", x, graph)
    if top is None:
        top = eigenvalue_bounds(graph, p).local
    top = check_number("top", top, above=0)
    cutoff, norm, acting = _cutoffs(signal, graph, p)
    regime = np.where(cutoff >= top, "low-pass", np.where(cutoff > 0, "low-high-pass", "held"))
    threshold = _threshold(top, p)
    settled = acting & (cutoff > 0) & (norm <= threshold)
    return NodeRegimes(
        regime, cutoff, top, norm, threshold, settled, _threshold(eigenvalue_bounds(graph, p).paper, p)
    )


def _threshold(top: float, p: float) -> float:
    """top^(1/(p−2)), infinite or 0 where p is too near to 2 for a number."""
    if p == 2:
        return math.nan
    return math.exp(log) if (log := math.log(top) / (p - 2)) < 700 else math.inf


@np.errstate(over="ignore")
def _cutoffs(x: Array, graph: Graph, p: float) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Cut-off and gradient norm of every node, and whether it has edges and all of them act."""
    operator = EdgeOperator(graph)
    squared = operator.B.power(2)  # W_ij/D_i and W_ij/D_j in the row of each edge
    norm = np.empty(squared.shape[0])
    size = max(1, _BLOCK // x.shape[1])
    for start in range(0, norm.size, size):
        norm[start : start + size] = np.linalg.norm(operator.B[start : start + size] @ x, axis=1)
    ends = np.sqrt(squared @ np.square(x).sum(axis=1))
    # as in plap.propagate: rows that are equal up to rounding do not interact for p < 2
    acts = (norm > 4 * np.finfo(np.float64).eps * ends) | (p >= 2)
    power = np.where(acts, np.where(acts, norm, 1) ** (p - 2), 0)
    cutoff: Array = squared.T @ power
    i, j = operator.ends
    square = np.bincount(i, norm**2, x.shape[0]) + np.bincount(j, norm**2, x.shape[0])
    idle = operator.degree == 0
    idle[i[~acts]] = idle[j[~acts]] = True
    loops = graph.to("cpu").to_scipy(dtype=np.float64, copy=False).diagonal()
    if p == 2:  # a self-loop has no difference, and 0^0 = 1
        cutoff += loops / np.where(idle, 1, operator.degree)
    return cutoff, np.sqrt(square), ~idle & ((loops == 0) | (p >= 2))
