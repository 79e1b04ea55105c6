"""Pictures of a graph, of what a model learned about one, and of how it stands an attack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from plap.reporting.number_text import counted
from plap.reporting.palette import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION
from plap.reporting.picture import encode, panels, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from plap.data.measures import Distribution, Inspection
    from plap.insight.attack import AttackCurve
    from plap.insight.learned import Learned

_MOST_CLASSES = 12
_LONGEST_NAME = 24
_BINS = 40


def graph_picture(found: Inspection) -> bytes:
    """A PNG with the degrees, gradient norms, class sizes and homophily of a graph."""
    figure, grid = panels(2, 2, (11, 7.5))
    degrees, norms, classes, measures = grid.ravel()
    name = plain(found.name, _LONGEST_NAME)
    nodes, edges = counted(found.nodes, "node"), counted(found.edges, "edge")
    figure.suptitle(f"{name}: {nodes}, {edges}", fontweight="bold")
    _degrees(degrees, found.degrees)
    _norms(norms, found.gradient_norms)
    _classes(classes, found.class_sizes)
    _measures(measures, found)
    for axes in grid.ravel():
        tidy(axes, lines=None)
    return encode(figure, "png")


def attack_picture(curve: AttackCurve) -> bytes:
    """A PNG with the accuracy by the share of changed edges: under attack, and with random edges."""
    figure, grid = panels(1, 1, (6.5, 4.2))
    axes = grid[0, 0]
    shares = [0.0, *(100 * point.budget for point in curve.points)]
    whose = "each node's edges" if curve.local else "the edges"
    lines = (
        ("random edges", [point.random for point in curve.points], GREY, "s"),
        ("adaptive attack", [point.accuracy for point in curve.points], VERMILION, "o"),
    )
    for label, values, colour, marker in lines:
        heights = [100 * value for value in (curve.clean, *values)]
        axes.plot(shares, heights, color=colour, marker=marker, label=label)
    when = "before" if curve.poisoning else "after"
    axes.set(
        title=f"{counted(curve.nodes, 'test node')}, edges changed {when} training",
        xlabel=f"changed share of {whose} (%)",
        ylabel="accuracy (%)",
    )
    axes.legend(frameon=False)
    tidy(axes)
    return encode(figure, "png")


def _degrees(axes: Axes, values: Distribution | None) -> None:
    axes.set(title="Neighbours per node", xlabel="neighbours", ylabel="nodes")
    if values is None:
        return
    _histogram(axes, values, BLUE)
    if values.maximum > 20:
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("symlog", linthresh=1)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)


def _norms(axes: Axes, values: Distribution | None) -> None:
    axes.set(title="Variation of the features around a node", xlabel="‖∇f(i)‖", ylabel="nodes with edges")
    if values is not None:
        _histogram(axes, values, GREEN)
        axes.set_ylim(bottom=0)


def _histogram(axes: Axes, values: Distribution, colour: str) -> None:
    """Bars, and a line at the median."""
    axes.stairs(values.counts, values.bin_edges, fill=True, color=colour, alpha=0.85)
    axes.axvline(values.median, color=BLACK, linestyle="--", linewidth=1.2)
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
    axes.set(title="Labelled nodes per class", xlabel="nodes")
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    shown = [(plain(name, _LONGEST_NAME), size) for name, size in largest[:_MOST_CLASSES]]
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
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_xlim(min(-0.05, *(1.45 * (value or 0.0) for value in values)), 1.1)
    axes.invert_yaxis()


def learned_picture(learned: Learned) -> bytes:
    """A PNG with the entropy, trust and gain that a model assigns to the nodes and edges of a graph."""
    figure, grid = panels(1, 3, (12, 3.8))
    entropy, trust, gain = grid[0]
    _entropy(entropy, learned)
    _trust(trust, learned)
    _gain(gain, learned)
    for axes in grid[0]:
        tidy(axes, lines=None)
    return encode(figure, "png")


def _entropy(axes: Axes, learned: Learned) -> None:
    axes.set(title="How nodes weigh their neighbours", xlabel="entropy (nats)", ylabel="nodes with edges")
    entropy, uniform = (values[~values.isnan()].numpy() for values in (learned.entropy, learned.uniform))
    bins = np.linspace(0, max(uniform.max(initial=0.0), 1e-9), _BINS + 1).tolist()
    axes.hist(entropy.clip(max=bins[-1]), bins, color=BLUE, alpha=0.85, label="learned weights")
    axes.hist(uniform, bins, histtype="step", color=BLACK, label="equal weights")
    axes.legend(frameon=False)


def _trust(axes: Axes, learned: Learned) -> None:
    axes.set(title="Edge trust", xlabel="odds against chance", ylabel="edges")
    if learned.trust is None:
        _say(axes, "nothing to compare")
        return
    values = learned.edges()["trust"].to_numpy()
    bins = np.geomspace(min(values.min(), 0.5), max(values.max(), 2), _BINS + 1).tolist()
    axes.hist(values, bins, color=GREEN, alpha=0.85)
    axes.set_xscale("log")
    digits = (1, 2, 5) if bins[-1] < 100 * bins[0] else (1,)
    axes.xaxis.set_major_locator(LogLocator(subs=digits))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1, color=BLACK, linestyle="--", linewidth=1.2)


def _gain(axes: Axes, learned: Learned) -> None:
    known = bool(learned.judged.any())
    which, label = ("true", "nodes with a known label") if known else ("predicted", "nodes")
    axes.set(
        title="Effect of the neighbours",
        xlabel=f"probability of the {which} class:\nwith edges − without",
        ylabel=label,
    )
    values = learned.neighbours.gain[learned.judged] if known else learned.neighbours.gain
    axes.hist(values.numpy(), np.linspace(-1, 1, _BINS + 1).tolist(), color=ORANGE, alpha=0.85)
    axes.axvline(0, color=BLACK, linestyle="--", linewidth=1.2)


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])
