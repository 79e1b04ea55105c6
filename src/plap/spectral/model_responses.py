"""Frequency responses of p-Laplacian message passing, beside those of GCN and APPNP."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.nn.baselines import normalized_adjacency
from plap.propagation import propagate
from plap.spectral.bins import Method, frequency_bins
from plap.spectral.operator import Array
from plap.spectral.response import BINS, Response, as_signal, respond

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
