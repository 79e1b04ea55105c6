"""A tiny example of graph gradient and graph divergence (Appendix, "Illustration")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import torch

from plap.calculus import divergence, gradient
from plap.graph import Graph
from plap.reporting.figures.figure import FigureOptions
from plap.reporting.palette import BLACK, BLUE, GREY, PALE_BLUE, PALE_ORANGE
from plap.reporting.picture import panels

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_EDGES = ((0, 1), (0, 2), (0, 3), (0, 4), (4, 5), (4, 6), (4, 7))
_VALUES = (4.0, 1.0, 5.0, 2.0, 8.0, 6.0, 3.0, 4.0)
_PLACES = (
    *((0.0, 0.0), (-1.0, 0.8), (-1.3, 0.0), (-1.0, -0.8)),
    *((1.6, 0.0), (2.6, 0.8), (2.9, 0.0), (2.6, -0.8)),
)


def compute(options: FigureOptions) -> pl.DataFrame:
    """Rows of kind "node" (value f and divergence of ∇f) and "edge" (gradient from source to target).

    Two stars whose hubs have degree 4, so that √D and all other numbers are integers.
    """
    graph = Graph.from_edges(list(_EDGES))
    f = torch.tensor(_VALUES, dtype=torch.float64)
    along = gradient(f, graph)
    into = divergence(along, graph)
    x, y = zip(*_PLACES, strict=True)
    nodes = pl.DataFrame(
        {
            "kind": "node",
            "source": range(len(_VALUES)),
            "value": f.numpy(),
            "divergence": into.numpy(),
            "x": x,
            "y": y,
        }
    )
    # entry "receiver i ← source j" holds (∇f)([i, j]), which points from i to j
    once = graph.edges_once()
    j, i = graph.edge_index[:, once].numpy()
    edges = pl.DataFrame({"kind": "edge", "source": i, "target": j, "gradient": along[once].numpy()})
    return pl.concat([nodes, edges], how="diagonal")


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """Left, the values and the gradient on every edge; right, the divergence at every node."""
    nodes, edges = (data.filter(pl.col("kind") == kind) for kind in ("node", "edge"))
    figure, grid = panels(1, 2, width=5.2, height=2.3)
    left, right = grid[0]
    _gradient(left, nodes, edges)
    _divergence(right, nodes, edges)
    return figure


def _gradient(axes: Axes, nodes: pl.DataFrame, edges: pl.DataFrame) -> None:
    """An arrow points to where the function, scaled by D^-1/2, is larger."""
    axes.set_title(r"$f$ at the nodes, $\nabla f$ on the edges", fontsize="medium")
    place = {row["source"]: (row["x"], row["y"]) for row in nodes.iter_rows(named=True)}
    for edge in edges.iter_rows(named=True):
        ends = [place[edge["source"]], place[edge["target"]]]
        start, end = ends if edge["gradient"] >= 0 else ends[::-1]
        style = {
            "arrowstyle": "-|>" if edge["gradient"] else "-",
            "color": BLUE,
            "shrinkA": 15,
            "shrinkB": 15,
        }
        axes.annotate("", end, start, arrowprops=style)
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.text(x, y, f"{abs(edge['gradient']):g}", color=BLUE, ha="center", va="center", bbox=box)
    _nodes(axes, nodes, [f"{value:g}" for value in nodes["value"]], ["white"] * nodes.height)


def _divergence(axes: Axes, nodes: pl.DataFrame, edges: pl.DataFrame) -> None:
    axes.set_title(r"$\mathrm{div}\, \nabla f = -2 \Delta_2 f$ at the nodes", fontsize="medium")
    place = {row["source"]: (row["x"], row["y"]) for row in nodes.iter_rows(named=True)}
    for edge in edges.iter_rows(named=True):
        axes.plot(*zip(place[edge["source"]], place[edge["target"]], strict=True), color=GREY, zorder=1)
    colours = {1: PALE_BLUE, 0: "white", -1: PALE_ORANGE}
    signs = [(value > 0) - (value < 0) for value in nodes["divergence"]]
    texts = [f"{value:+g}".replace("-", "−") if value else "0" for value in nodes["divergence"]]
    _nodes(axes, nodes, texts, [colours[sign] for sign in signs])
    text = "+: more flows out than in;  −: more flows in"
    axes.text(0.5, 0, text, transform=axes.transAxes, ha="center", va="top", color=GREY, fontsize="small")


def _nodes(axes: Axes, nodes: pl.DataFrame, texts: list[str], colours: list[str]) -> None:
    axes.scatter(nodes["x"], nodes["y"], s=560, c=colours, edgecolors=BLACK, zorder=2)
    for x, y, text in zip(nodes["x"], nodes["y"], texts, strict=True):
        axes.text(x, y, text, ha="center", va="center", zorder=3)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.margins(0.12, 0.2)
