"""The terms of Theorem 4 against μ on a regular graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch

from plap.graph import Graph
from plap.insight.risk_bound import risk_bound
from plap.reporting.figures.figure import P_VALUES, FigureOptions
from plap.reporting.palette import BLACK, GREEN, ORANGE, SKY, VERMILION
from plap.reporting.picture import panels, tidy

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_NODES, _REACH, _CHANNELS = 200, 3, 4
_STEPS = 4
_TERMS = {"features": ORANGE, "diffusion": SKY, "noise": GREEN}


def compute(options: FigureOptions) -> pl.DataFrame:
    """One row per p, μ and form: p, mu, form, risk, features, diffusion, noise.

    A ring of 200 nodes, each joined to the three nearest on both sides; the true features change slowly
    around the ring and are observed with Gaussian noise; σ(x) = tanh(w · x), whose Lipschitz constant is ‖w‖.
    """
    edges = [(k, (k + step) % _NODES) for k in range(_NODES) for step in range(1, _REACH + 1)]
    ring = Graph.from_edges(edges)
    generator = torch.Generator().manual_seed(0)
    angle = 2 * torch.pi * torch.arange(_NODES, dtype=torch.float64) / _NODES
    truth = torch.stack([angle.sin(), angle.cos(), (2 * angle).sin(), (2 * angle).cos()], dim=1)
    noise = 0.3 * torch.randn(_NODES, _CHANNELS, generator=generator, dtype=torch.float64)
    direction = torch.randn(_CHANNELS, generator=generator, dtype=torch.float64)
    rows = []
    for p in P_VALUES:
        for mu in np.geomspace(0.01, 10, 4 if options.quick else 13).tolist():
            for form in ("lipschitz", "printed"):
                found = risk_bound(
                    truth - noise, noise, lambda rows: torch.tanh(rows @ direction), float(direction.norm()),
                    ring, p, mu, _STEPS, form=form,
                )  # fmt: skip
                terms = {name: getattr(found, name) for name in ("risk", *_TERMS)}
                rows.append({"p": p, "mu": mu, "form": form, **terms})
    return pl.DataFrame(rows)


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """One panel per p: the three terms stacked, the risk below them, the bound as printed dashed."""
    values = data["p"].unique(maintain_order=True).to_list()
    figure, grid = panels(1, len(values), width=3.2, height=3)
    for axes, p in zip(grid[0], values, strict=True):
        _draw_panel(axes, data.filter(pl.col("p") == p))
        axes.set_title(f"p = {p:g}", fontsize="medium")
        axes.set_xlabel("μ")
    grid[0][0].set_ylabel("mean over the nodes")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False, fontsize="small")
    return figure


def _draw_panel(axes: Axes, rows: pl.DataFrame) -> None:
    ours, printed = (rows.filter(pl.col("form") == form) for form in ("lipschitz", "printed"))
    terms = [ours[name].to_numpy() for name in _TERMS]
    axes.stackplot(ours["mu"], *terms, labels=list(_TERMS), colors=list(_TERMS.values()), alpha=0.75)
    axes.plot(ours["mu"], ours["risk"], color=BLACK, linewidth=1.6, label="risk")
    total = np.sum([printed[name].to_numpy() for name in _TERMS], axis=0)
    axes.plot(printed["mu"], total, color=VERMILION, linestyle="--", label="bound as printed")
    axes.set_xscale("log")
    top, low, high = 1.2 * np.sum(terms, axis=0).max(), total.min(), total.max()
    if low > top:
        text = f"as printed: {low:.3g} to {high:.3g}"
        axes.text(0.97, 0.96, text, transform=axes.transAxes, ha="right", va="top", color=VERMILION)
    axes.set_ylim(0, top)
    tidy(axes)
