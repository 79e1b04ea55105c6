"""The picture of ``plap inspect --png``: drawn from the numbers of an ``Inspection`` alone."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from plap.data.inspection import Distribution, Inspection

# Okabe and Ito's colours, told apart with any kind of colour vision.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#666666"
_MOST_CLASSES = 12


def draw(found: Inspection) -> bytes:
    """Return a PNG with degrees, gradient norms, class sizes and homophily."""
    figure = Figure(figsize=(11, 7.5), dpi=120, layout="constrained")
    degrees, norms, classes, measures = figure.subplots(2, 2).ravel()
    figure.suptitle(f"{_plain(found.name)}: {found.nodes:,} nodes, {found.edges:,} edges", fontweight="bold")
    _degrees(degrees, found.degrees)
    _norms(norms, found.gradient_norms)
    _classes(classes, found.class_sizes)
    _measures(measures, found)
    for axes in (degrees, norms, classes, measures):
        axes.spines[["top", "right"]].set_visible(False)
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def _degrees(axes: Axes, values: Distribution | None) -> None:
    axes.set(title="Neighbours of a node", xlabel="neighbours", ylabel="nodes")
    if values is None:
        return
    _steps(axes, values, BLUE)
    if values.maximum > 20:
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("symlog", linthresh=1)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)


def _norms(axes: Axes, values: Distribution | None) -> None:
    axes.set(title="Variation of the features around a node", xlabel="‖∇f(i)‖", ylabel="nodes with edges")
    if values is not None:
        _steps(axes, values, GREEN)
        axes.set_ylim(bottom=0)


def _steps(axes: Axes, values: Distribution, colour: str) -> None:
    """Draw a histogram and where its median is."""
    axes.stairs(values.counts, values.bin_edges, fill=True, color=colour, alpha=0.85)
    axes.axvline(values.median, color="black", linestyle="--", linewidth=1.2)
    axes.annotate(
        f"median {values.median:.3g}",
        (values.median, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(5, 0),
        textcoords="offset points",
        va="top",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )


def _classes(axes: Axes, sizes: dict[str, int]) -> None:
    axes.set(title="Labelled nodes of each class", xlabel="nodes")
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    shown = [(_plain(name), size) for name, size in largest[:_MOST_CLASSES]]
    if len(largest) > _MOST_CLASSES:
        rest = largest[_MOST_CLASSES:]
        shown.append((f"{len(rest)} others", sum(size for _, size in rest)))
    if not shown:
        _say(axes, "no labels")
        return
    positions = range(len(shown))
    bars = axes.barh(positions, [size for _, size in shown], color=ORANGE)
    axes.bar_label(bars, [f"{size:,}" for _, size in shown], padding=3)
    axes.set_yticks(positions, [name for name, _ in shown])
    axes.margins(x=0.15)
    axes.invert_yaxis()


def _measures(axes: Axes, found: Inspection) -> None:
    axes.set(title="Homophily (– where undefined)")
    names = list(found.homophily)
    values = [found.homophily[name].value for name in names]
    bars = axes.barh(range(len(names)), [value or 0.0 for value in values], color=GREY)
    axes.bar_label(bars, ["–" if value is None else f"{value:.2f}" for value in values], padding=3)
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlim(min(-0.05, *(1.45 * (value or 0.0) for value in values)), 1.1)
    axes.invert_yaxis()


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])


def _plain(text: str) -> str:
    """Text of a user's own, short and without Matplotlib's formulas."""
    short = text if len(text) <= 24 else text[:23] + "…"
    return short.replace("$", r"\$")
