"""Response against frequency of p-Laplacian message passing, GCN and APPNP: the numbers, then the picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from plap.atomic_file import write_atomic
from plap.errors import InputError
from plap.graph import Graph
from plap.nn.baselines import normalized_adjacency
from plap.propagation import propagate
from plap.spectral.bins import Method, frequency_bins
from plap.spectral.operator import Array
from plap.spectral.response import BINS, Response, respond
from plap.spectral.signals import as_signal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any kind of colour vision.
_COLOURS = ("#0072B2", "#56B4E9", "#000000", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
_MARKERS = "os^vDXP"
_COLUMNS = ("model", "frequency", "gain", "coherence", "input_energy", "output_energy")


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
    """Responses of p-Laplacian message passing for several p, and of GCN and APPNP to compare with.

    GCN is two multiplications with D̂^-1/2 (W + I) D̂^-1/2, its layers without weights and ReLU; APPNP is 10
    steps with that matrix and the teleport probability 0.1. Neither is a function of Δ_2 unless the graph is
    regular, so that they too have a coherence below 1.

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


class PictureFiles(NamedTuple):
    """What was written."""

    png: Path
    svg: Path
    csv: Path


def draw_responses(curves: Mapping[str, Response], path: Path | str, *, title: str = "") -> PictureFiles:
    """Draw responses against frequency as PNG and SVG, with their numbers beside them as CSV.

    Parameters
    ----------
    curves : mapping from a name to Response
        As :func:`response_curves` gives it; up to seven can be told apart.
    path : path
        Of the picture, with or without an ending; the three files differ in that only.
    title : str

    Returns
    -------
    PictureFiles
    """
    from matplotlib import rc_context  # noqa: PLC0415

    if not isinstance(curves, Mapping):
        raise InputError(f"curves must map names to responses, not be a {type(curves).__name__}")
    if not 1 <= len(curves) <= len(_COLOURS):
        raise InputError(f"curves must hold from 1 to {len(_COLOURS)} responses, not {len(curves)}")
    base = Path(path)
    base = base.with_suffix("") if base.suffix in (".png", ".svg", ".csv") else base
    files = PictureFiles(*(base.with_name(f"{base.name}.{kind}") for kind in PictureFiles._fields))
    figure = _figure(curves, title)
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        svg, png = io.BytesIO(), io.BytesIO()
        with rc_context({"svg.hashsalt": "plap"}):  # else no two files of one picture are equal
            figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=200)
        write_atomic(files.svg, svg.getvalue())
        write_atomic(files.png, png.getvalue())
        write_atomic(files.csv, response_table(curves).encode())
    except OSError as error:
        raise InputError(f"{base} cannot be written ({error.strerror})") from None
    return files


def response_table(curves: Mapping[str, Response]) -> str:
    """The numbers of the picture as CSV, a row for each model and bin; empty where there is none."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for name, response in curves.items():
        columns = [getattr(response, column) for column in _COLUMNS[1:]]
        for row in zip(*columns, strict=True):
            writer.writerow([name, *("" if np.isnan(value) else f"{value:.10g}" for value in row)])
    return stream.getvalue()


def _figure(curves: Mapping[str, Response], title: str) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7.5, 5.6), layout="constrained")
    gains, shares = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.2])
    for k, (name, response) in enumerate(curves.items()):
        style = {"color": _COLOURS[k], "marker": _MARKERS[k], "markersize": 3.5, "linewidth": 1.5}
        dashes = "-" if name.startswith("p") else (0, (4, 1.5))
        there = ~np.isnan(response.gain)
        gains.plot(response.frequency[there], response.gain[there], label=name, linestyle=dashes, **style)
        shares.plot(response.frequency[there], response.coherence[there], linestyle=dashes, **style)
    gains.axhline(0, color="#999999", linewidth=0.8, zorder=0)
    gains.set_ylabel("gain")
    shares.set(xlabel="frequency: eigenvalue of Δ₂", ylabel="coherence", xlim=(0, 2), ylim=(0, 1.05))
    for axes in (gains, shares):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    if title:
        gains.set_title(title, loc="left")
    figure.legend(loc="outside right upper", frameon=False)
    return figure
