"""Frequencies, the eigenvalues of Δ_2: the spectrum, exact, and energies of signals by frequency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from plap.checks import check_choice, check_integer
from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.operator import Array, EdgeOperator

End = Literal["smallest", "largest"]

_DENSE_FOR_SOME = 400
"""Nodes of a component up to which all of its eigenvalues cost less than a few by Lanczos."""

_MOST_DENSE = 10_000
_MARGIN, _RESTARTS, _SHIFT = 10, 300, 0.01


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of Δ_2 in ascending order, and their eigenvectors."""

    values: Array
    """Shape [k], within [0, 2]."""
    vectors: Array
    """Shape [N, k], orthonormal columns."""


def spectrum(graph: Graph, k: int | None = None, which: End = "smallest") -> Spectrum:
    """Eigenvalues and eigenvectors of the normalised Laplacian Δ_2 = I − D^-1/2 W D^-1/2.

    Each connected component is solved separately, densely where that is cheap and otherwise by SciPy's
    Lanczos, so that an eigenvalue that many components share (0 above all) is found as often as it is there.

    Parameters
    ----------
    graph : Graph
        A node without edges has the eigenvalue 0.
    k : int, optional
        How many; all by default, for graphs of up to 10,000 nodes.
    which : {"smallest", "largest"}
        Which end of the spectrum the k are taken from.

    Returns
    -------
    Spectrum

    Examples
    --------
    A complete graph of n nodes has 0 once and n/(n − 1) otherwise.

    >>> import plap
    >>> triangle = plap.Graph.from_edges([(0, 1), (1, 2), (2, 0)])
    >>> plap.spectral.spectrum(triangle).values.round(12)
    array([0. , 1.5, 1.5])
    >>> plap.spectral.spectrum(triangle, k=1, which="largest").values.round(12)
    array([1.5])
    """
    operator = EdgeOperator(graph)
    n = operator.num_nodes
    check_choice("which", which, End)
    if k is not None and check_integer("k", k, 1) > n:
        raise InputError(f"k must be at most the {n} nodes of the graph, not {k}")
    if k is None and n > _MOST_DENSE:
        raise InputError(f"the whole spectrum of {n} nodes is too large: ask for k of its eigenvalues")
    count = n if k is None else int(k)
    order = np.argsort(operator.components, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(operator.components))[:-1]) if n else []
    solved = [_component(operator.laplacian, nodes, k, which) for nodes in parts]
    values = np.concatenate([part.values for part in solved]) if solved else np.zeros(0)
    chosen = np.argsort(values, kind="stable")
    chosen = chosen[:count] if which == "smallest" else chosen[values.size - count :]
    return Spectrum(values[chosen], _scatter(parts, solved, chosen, n))


def _component(laplacian: scipy.sparse.csr_array, nodes: np.ndarray, k: int | None, which: End) -> Spectrum:
    """All pairs of a component, or at least min(k, its size) of the chosen end."""
    size = nodes.size
    if size == 1:
        return Spectrum(np.zeros(1), np.ones((1, 1)))
    block = laplacian[nodes][:, nodes]
    if k is None or size <= _DENSE_FOR_SOME or (4 * k >= size and size <= _MOST_DENSE):
        values, vectors = np.linalg.eigh(block.toarray())
    else:
        values, vectors = _lanczos(block, k, which)
    return Spectrum(np.clip(values, 0, 2), vectors)


def _lanczos(block: scipy.sparse.csr_array, k: int, which: End) -> tuple[Array, Array]:
    """At least k pairs of one end, with products alone, or by inversion where gaps are too small for that.

    Lanczos meets the copies of a multiple eigenvalue one after the other, so that some more are asked for.
    """
    count = min(k + _MARGIN, block.shape[0] - 1)
    start = np.random.default_rng(0).standard_normal(block.shape[0])
    settings = {"k": count, "v0": start, "ncv": min(block.shape[0], max(2 * count + 1, 40))}
    try:
        pairs = eigsh(block, which="SA" if which == "smallest" else "LA", maxiter=_RESTARTS, **settings)
    except ArpackNoConvergence:
        pairs = eigsh(block.tocsc(), sigma=-_SHIFT if which == "smallest" else 2 + _SHIFT, **settings)
    values, vectors = pairs
    return values, vectors


def _scatter(parts: list[np.ndarray], solved: list[Spectrum], chosen: np.ndarray, n: int) -> Array:
    """The chosen eigenvectors of all components, as functions of all nodes."""
    owner = np.repeat(np.arange(len(parts)), [part.values.size for part in solved])
    local = np.concatenate([np.arange(part.values.size) for part in solved]) if solved else np.zeros(0, int)
    vectors: Array = np.zeros((n, chosen.size))
    for c, nodes in enumerate(parts):
        (columns,) = np.nonzero(owner[chosen] == c)
        if columns.size:
            vectors[np.ix_(nodes, columns)] = solved[c].vectors[:, local[chosen[columns]]]
    return vectors


Method = Literal["auto", "exact", "chebyshev"]

_MOST_EXACT = 3_000
_DEGREE = 400


@dataclass(frozen=True)
class Energies:
    """⟨x, P x⟩, ⟨x, P y⟩ and ⟨y, P y⟩ for the projection P on each bin of frequencies, shape [bins]."""

    xx: Array
    xy: Array
    yy: Array


class Bins(Protocol):
    """Bins of equal width over [0, 2], the range of all frequencies."""

    count: int

    def energies(self, x: Array, y: Array) -> Energies:
        """Energies of two signals of shape [N, C], summed over channels."""
        ...


def frequency_bins(graph: Graph, count: int, method: Method = "auto") -> Bins:
    """Bins of the frequencies of a graph, prepared once for any number of signals.

    Parameters
    ----------
    graph : Graph
    count : int, a multiple of 3
        So that low, middle and high frequencies are whole bins.
    method : {"auto", "exact", "chebyshev"}
        "exact" needs all eigenvectors of Δ_2; "chebyshev" only products with it, and blurs the edges of the
        bins by about 0.01. "auto" is exact up to 3,000 nodes.
    """
    if check_integer("bins", count, 3) % 3:
        raise InputError(f"bins must be a multiple of 3, not {count}")
    check_choice("method", method, Method)
    exact = method == "exact" or (method == "auto" and graph.num_nodes <= _MOST_EXACT)
    return _ExactBins(graph, count) if exact else _ChebyshevBins(graph, count)


class _ExactBins:
    def __init__(self, graph: Graph, count: int) -> None:
        pairs = spectrum(graph)
        self.count, self.vectors = count, pairs.vectors
        self.bin = np.minimum((pairs.values * (count / 2)).astype(np.int64), count - 1)

    def energies(self, x: Array, y: Array) -> Energies:
        x_hat, y_hat = self.vectors.T @ x, self.vectors.T @ y
        return Energies(*(self._binned(a, b) for a, b in ((x_hat, x_hat), (x_hat, y_hat), (y_hat, y_hat))))

    def _binned(self, a: Array, b: Array) -> Array:
        return np.asarray(np.bincount(self.bin, (a * b).sum(axis=1), self.count), dtype=np.float64)


class _ChebyshevBins:
    r"""Projections by Jackson's kernel: :math:`P \approx \sum_k g_k c_k T_k(\Delta_2 - I)`.

    c_k are the Chebyshev coefficients of a bin's indicator and g_k keep the sum positive. The moments
    ⟨x, T_k y⟩ up to twice the degree come from products of T_k x and T_k y (Weiße et al., 2006).
    """

    def __init__(self, graph: Graph, count: int) -> None:
        self.count, self.laplacian = count, EdgeOperator(graph).laplacian
        self.filters = _coefficients(np.linspace(0, 2, count + 1) - 1, 2 * _DEGREE - 1)

    def energies(self, x: Array, y: Array) -> Energies:
        before = np.stack([x, y])
        now = self._shifted(before)
        moments = [_products(before, before), _products(before, now)]
        for _ in range(1, _DEGREE):
            moments.append(2 * _products(now, now) - moments[0])
            before, now = now, 2 * self._shifted(now) - before
            moments.append(2 * _products(before, now) - moments[1])
        return Energies(*(self.filters @ np.array(moments)).T)

    def _shifted(self, signals: Array) -> Array:
        return np.stack([self.laplacian @ signal - signal for signal in signals])


def _products(a: Array, b: Array) -> Array:
    """⟨x, x⟩, ⟨x, y⟩ and ⟨y, y⟩ of two stacks (x, y)."""
    return np.array([(a[0] * b[0]).sum(), (a[0] * b[1]).sum(), (a[1] * b[1]).sum()])


def _coefficients(edges: Array, degree: int) -> Array:
    """g_k c_k of the indicators between neighbouring edges within [−1, 1], shape [bins, degree + 1]."""
    k = np.arange(degree + 1)
    angle = np.arccos(np.clip(edges, -1, 1))
    integral = np.where(k == 0, angle[:, None], 2 * np.sin(k * angle[:, None]) / k.clip(min=1))
    n = degree + 2
    jackson = (n - k) * np.cos(np.pi * k / n) + np.sin(np.pi * k / n) / np.tan(np.pi / n)
    result: Array = -np.diff(integral, axis=0) / np.pi * jackson / n
    return result
