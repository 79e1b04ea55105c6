"""Energies of signals by frequency, the eigenvalue of Δ_2: exact, or by Chebyshev moments if N is large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from plap.checks import check_choice, check_integer
from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.exact import spectrum
from plap.spectral.operator import Array, EdgeOperator

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
