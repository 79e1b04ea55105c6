"""What message passing does to each frequency of a signal, and how GCN and APPNP compare."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.nn.baselines import normalized_adjacency
from plap.propagation import propagate
from plap.spectral.frequencies import Bins, Method, frequency_bins
from plap.spectral.operator import Array

Kind = Literal["low-pass", "low-high-pass", "high-pass", "mid-pass"]

BINS = 27
"""A multiple of 3, and odd, so that the frequency 1, which many graphs have often, is within a bin."""


@dataclass(frozen=True)
class Bands:
    """Numbers for the frequencies in [0, 2/3), [2/3, 4/3) and [4/3, 2]."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Response:
    """How a signal x became y, by bins of frequencies; NaN where x or y has no energy to compare."""

    frequency: Array
    """The middle of each bin, shape [bins], from 0 to 2."""
    gain: Array
    """⟨x, P y⟩ / ⟨x, P x⟩ with P the projection on a bin: what a linear filter would multiply with."""
    coherence: Array
    """⟨x, P y⟩² / (⟨x, P x⟩ ⟨y, P y⟩), the share of y's energy in a bin that the gain explains: near 1 for
    filters of Δ_2 in narrow bins, less where the step mixes frequencies, as for p ≠ 2."""
    input_energy: Array
    """Share of x's energy in each bin; the shares sum to 1."""
    output_energy: Array
    """Share of y's energy in each bin."""
    amplification: float
    """‖y‖ / ‖x‖."""

    @property
    def input_bands(self) -> Bands:
        """Shares of x's energy."""
        return _bands(self.input_energy)

    @property
    def output_bands(self) -> Bands:
        """Shares of y's energy."""
        return _bands(self.output_energy)

    @property
    def band_gains(self) -> Bands:
        """‖P y‖ / ‖P x‖ of the three bands: amplitudes, whatever the sign and the coherence."""
        x, y = _thirds(self.input_energy), _thirds(self.output_energy)
        return Bands(*(self.amplification * np.sqrt(_ratio(y, x))).tolist())

    @property
    def kind(self) -> Kind:
        """The paper's word for it, by the amplitudes of the bands; one that x lacks counts as not passed."""
        gains = self.band_gains
        low, mid, high = np.nan_to_num([gains.low, gains.mid, gains.high]).tolist()
        if mid > max(low, high):
            return "mid-pass"
        if mid < min(low, high):
            return "low-high-pass"
        return "low-pass" if low >= high else "high-pass"


def filter_response(
    x: Tensor | ArrayLike,
    graph: Graph,
    p: float,
    mu: float,
    K: int = 4,
    *,
    omega: float = 1.0,
    bins: int = BINS,
    method: Method = "auto",
) -> Response:
    """The response of K steps of p-Laplacian message passing on this graph to this signal.

    For p = 2 the steps are a filter of Δ_2, whose gain :func:`linear_gain` has in closed form. For p ≠ 2 they
    are not: they depend on the signal, its scale included, and mix frequencies; the response is that of the
    linear filter nearest to what they did to x, and its coherence says how near. K and omega choose the
    filter: few undamped steps keep both ends of the spectrum, many steps or omega < 1 the low end only.

    Parameters
    ----------
    x : Tensor or array, shape [N] or [N, C]
        Gaussian noise of some channels has energy at all frequencies.
    graph : Graph
    p, mu, K, omega
        As in :func:`plap.propagate`.
    bins : int, a multiple of 3
    method : {"auto", "exact", "chebyshev"}
        "exact" needs all eigenvectors of Δ_2; "chebyshev" is for large graphs. "auto" is exact up to 3,000
        nodes.

    Returns
    -------
    Response

    Examples
    --------
    >>> import torch, plap
    >>> graph = plap.data.csbm(phi=0, n=300, f=10, seed=0).graph
    >>> noise = torch.randn(300, 16, generator=torch.Generator().manual_seed(0))
    >>> [plap.spectral.filter_response(noise, graph, 2, 0.1, K).kind for K in (2, 4, 60)]
    ['low-high-pass', 'low-high-pass', 'low-pass']
    >>> plap.spectral.filter_response(noise, graph, 2, 0.1, K=4, omega=0.5).kind
    'low-pass'
    """
    signal = as_signal("x", x, graph)
    steps = propagate(torch.from_numpy(signal), graph.to("cpu"), p, mu, K, omega=omega)
    return respond(frequency_bins(graph, bins, method), signal, steps.detach().numpy())


def transfer(
    x: Tensor | ArrayLike, y: Tensor | ArrayLike, graph: Graph, *, bins: int = BINS, method: Method = "auto"
) -> Response:
    """The response of whatever made y out of x, both of shape [N] or [N, C].

    Examples
    --------
    A trained layer, or any other program:

    >>> import torch, plap
    >>> graph = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)])
    >>> x = torch.eye(5)
    >>> plap.spectral.transfer(x, x - plap.p_laplacian(x, graph, 2), graph).kind
    'low-high-pass'
    """
    before, after = as_signal("x", x, graph), as_signal("y", y, graph)
    if before.shape != after.shape:
        raise InputError(f"y must have the shape of x, {list(before.shape)}, not {list(after.shape)}")
    return respond(frequency_bins(graph, bins, method), before, after)


def linear_gain(frequency: ArrayLike, mu: float, K: int, omega: float = 1.0) -> Array:
    r"""The gain of K steps at p = 2, where they are a polynomial in Δ_2 (Eq. 10, damped).

    .. math:: g_0 = 1, \qquad g_{k+1}(\lambda) = \Bigl(1 - \omega + \omega \frac{1 - \lambda}{1 + \mu}\Bigr)
        g_k(\lambda) + \omega \frac{\mu}{1 + \mu}

    It goes to μ/(μ + λ), a low-pass filter, as K grows.

    Examples
    --------
    >>> linear_gain([0.0, 1.0, 2.0], mu=0.1, K=4).round(3)
    array([1.   , 0.091, 0.698])
    >>> linear_gain([0.0, 1.0, 2.0], mu=0.1, K=1000).round(3)
    array([1.   , 0.091, 0.048])
    """
    at = np.asarray(frequency, dtype=np.float64)
    gain = np.ones_like(at)
    for _ in range(K):
        gain = (1 - omega + omega * (1 - at) / (1 + mu)) * gain + omega * mu / (1 + mu)
    return gain


def respond(bins: Bins, x: Array, y: Array) -> Response:
    """The response of what made y out of x, with bins that are at hand."""
    x_scale, y_scale = (float(np.abs(signal).max()) for signal in (x, y))
    if x_scale == 0 or y_scale == 0:
        name = "x" if x_scale == 0 else "y"
        raise InputError(f"{name} is 0 everywhere, so no frequency response can be measured")
    x, y, scale = x / x_scale, y / y_scale, y_scale / x_scale
    found = bins.energies(x, y)
    edges = np.linspace(0, 2, bins.count + 1)
    # by Chebyshev moments an empty bin has rounding of either sign
    xx, yy = (np.where(e > 1e-13 * e.sum(), e, 0) for e in (found.xx, found.yy))
    return Response(
        (edges[1:] + edges[:-1]) / 2,
        scale * _ratio(found.xy, xx),
        _ratio(_ratio(found.xy**2, xx), yy).clip(max=1),
        xx / xx.sum(),
        yy / yy.sum(),
        scale * float(np.linalg.norm(y) / np.linalg.norm(x)),
    )


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def _thirds(shares: Array) -> Array:
    result: Array = shares.reshape(3, -1).sum(axis=1)
    return result


def _bands(shares: Array) -> Bands:
    return Bands(*_thirds(shares).tolist())


def as_signal(name: str, x: Tensor | ArrayLike, graph: Graph) -> Array:
    """A finite float64 array of shape [N, C]; a signal of one channel may come without its axis."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        raise InputError(f"{name} must be dense, not {x.layout}")
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        values = x.numpy() if x.is_complex() else x.double().numpy()
    else:
        values = np.asarray(x)
    n = check_graph(graph).num_nodes
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers, not {values.dtype}")
    if values.ndim not in (1, 2) or values.shape[0] != n or values.size == 0:
        raise InputError(f"{name} must have shape [{n}] or [{n}, C], not {list(values.shape)}")
    signal: Array = np.ascontiguousarray(values.reshape(n, -1), dtype=np.float64)
    if not np.isfinite(signal).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(signal))[0])
        raise InputError(f"{name}{list(at[: values.ndim])} = {signal[at]} is not finite")
    return signal


_COLUMNS = ("frequency", "gain", "coherence", "input_energy", "output_energy")


def response_curves(
    x: Tensor | ArrayLike,
    graph: Graph,
    *,
    p: Sequence[float] = (1.0, 1.5, 2.0, 2.5),
    mu: float = 0.1,
    K: int = 4,
    omega: float = 1.0,
    bins: int = BINS,
    method: Method = "auto",
) -> Mapping[str, Response]:
    """Responses of p-Laplacian message passing for several p, and those of GCN and APPNP for comparison.

    GCN is two multiplications by D̂^-1/2 (W + I) D̂^-1/2, that is, its layers without weights and ReLU; APPNP
    is 10 steps with that matrix and teleport probability 0.1. Neither is a function of Δ_2 unless the graph
    is regular, so their coherence is below 1 as well.

    Parameters
    ----------
    x, graph, mu, K, omega, bins, method
        As in :func:`plap.spectral.filter_response`.
    p : sequence of float

    Returns
    -------
    mapping from "p = 1", …, "GCN" and "APPNP" to Response
    """
    if not isinstance(p, Sequence) or isinstance(p, str):
        raise InputError(f"p must be a sequence of numbers, not {p!r}")
    signal = as_signal("x", x, graph)
    prepared = frequency_bins(graph, bins, method)
    graph = graph.to("cpu")
    tensor = torch.from_numpy(signal)
    outputs = {
        f"p = {value:g}": propagate(tensor, graph, value, mu, K, omega=omega).detach().numpy() for value in p
    }
    outputs |= _low_pass(signal, graph)
    return MappingProxyType({name: respond(prepared, signal, y) for name, y in outputs.items()})


def _low_pass(x: Array, graph: Graph, alpha: float = 0.1, steps: int = 10) -> dict[str, Array]:
    A = normalized_adjacency(graph)
    appnp = x
    for _ in range(steps):
        appnp = (1 - alpha) * (A @ appnp) + alpha * x
    return {"GCN": A @ (A @ x), "APPNP": appnp}


def response_rows(curves: Mapping[str, Response]) -> list[dict[str, str | float]]:
    """The numbers of responses, one row per model and bin; NaN where there is none.

    Parameters
    ----------
    curves : mapping from a name to Response
        As returned by :func:`response_curves`.

    Returns
    -------
    list of dict
        With the keys ``model``, ``frequency``, ``gain``, ``coherence``, ``input_energy``, ``output_energy``.

    Examples
    --------
    >>> import plap
    >>> ring = plap.Graph.from_edges([(k, (k + 1) % 8) for k in range(8)])
    >>> rows = response_rows(response_curves(np.random.default_rng(0).normal(size=(8, 2)), ring, p=(2.0,)))
    >>> sorted({row["model"] for row in rows})
    ['APPNP', 'GCN', 'p = 2']
    """
    return [
        {"model": name, **dict(zip(_COLUMNS, map(float, row), strict=True))}
        for name, response in curves.items()
        for row in zip(*(getattr(response, column) for column in _COLUMNS), strict=True)
    ]


def response_table(curves: Mapping[str, Response]) -> str:
    """The same as CSV; empty where there is no number.

    Examples
    --------
    >>> import plap
    >>> ring = plap.Graph.from_edges([(k, (k + 1) % 8) for k in range(8)])
    >>> curves = response_curves(np.random.default_rng(0).normal(size=(8, 2)), ring, p=(2.0,))
    >>> response_table(curves).splitlines()[0]
    'model,frequency,gain,coherence,input_energy,output_energy'
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["model", *_COLUMNS])
    for row in response_rows(curves):
        name, *values = row.values()
        writer.writerow([name, *("" if np.isnan(value) else f"{value:.10g}" for value in values)])
    return stream.getvalue()
