"""Draw the pictures of Cora under attack: ``python docs/figures/lying_edges.py``.

The numbers are those of the table "Metattack on Cora" in docs/robustness.md, measured by ``plap reproduce
robustness --max-epochs 200 --patience 100``; they are also written as CSV beside the pictures. The README
shows three of the models, docs/robustness.md all of them. The attack that knows the model is drawn from the
file that holds every seed of ``plap reproduce adaptive-attack --runs 10``.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plap.reporting.figures import adaptive_attack
from plap.reporting.palette import model_styles

HERE = Path(__file__).parent
DRAWN = {"pGNN MCP": "plap (pGNN, MCP)", "GCN": "GCN", "MLP": "MLP (no edges)"}
STYLE = {"pGNN MCP": ("#0072B2", "o"), "GCN": ("#D55E00", "s"), "MLP": ("#59626b", "^")}


class Point(NamedTuple):
    """Test accuracy in per cent, over the ten seeds of a cell, and what was published."""

    model: str
    changed: int
    """Per cent of the edges that were changed."""
    mean: float | None
    deviation: float | None
    published: float | None


def measured() -> list[Point]:
    """The table in docs/robustness.md."""
    text = (HERE.parent / "robustness.md").read_text(encoding="utf-8")
    table = text.split("## Metattack on Cora")[1].split("\n## ")[0]
    lines = itertools.takewhile(lambda line: line.startswith("|"), table[table.index("|") :].splitlines())
    header, _, *rows = ([cell.strip() for cell in line.replace("*", "").split("|")[1:-1]] for line in lines)
    rates = [int(cell.removesuffix(" %")) for cell in header[1:]]
    return [
        _point(name, rate, cell)
        for name, *cells in rows
        for rate, cell in zip(rates, cells, strict=True)
        if cell
    ]


def _point(model: str, rate: int, cell: str) -> Point:
    found = re.fullmatch(r"(?:([\d.]+) ± ([\d.]+))?(?:<br>)?(?:<sub>([\d.]+)</sub>)?", cell)
    if found is None or not any(found.groups()):
        raise ValueError(f"docs/robustness.md: {model} at {rate} % is not a mean ± deviation: {cell}")
    return Point(model, rate, *(None if number is None else float(number) for number in found.groups()))


def as_csv(points: list[Point]) -> str:
    """The points as the file beside the pictures has them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["model", "changed_edges_percent", "accuracy_mean", "accuracy_deviation", "published_mean"]
    )
    writer.writerows(points)
    return out.getvalue()


def draw(points: list[Point], path: Path) -> None:
    """Accuracy against the share of changed edges, a line per model and a band of one standard deviation."""
    figure, axis = _axes((8, 4.2), 12)
    for model, label in DRAWN.items():
        line = [point for point in points if point.model == model]
        x, y = [point.changed for point in line], [point.mean or 0.0 for point in line]
        colour, marker = STYLE[model]
        axis.plot(x, y, color=colour, marker=marker, linewidth=2.5, markersize=7)
        low, high = (
            [mean + sign * (point.deviation or 0.0) for mean, point in zip(y, line, strict=True)]
            for sign in (-1, 1)
        )
        axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.annotate(
            f"{label}\n{y[-1]:.1f} %", (x[-1], y[-1]), (10, 0), textcoords="offset points", va="center",
            color=colour, fontweight="bold",
        )  # fmt: skip
    axis.set(xlim=(-0.5, 25.4), ylim=(44, 90))
    axis.set_yticks(range(50, 91, 10), [f"{share} %" for share in range(50, 91, 10)])
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def draw_all(points: list[Point], path: Path) -> None:
    """A line per model with bars of one standard deviation; dashed: published."""
    figure, axis = _axes((10, 5.8), 11)
    models = list(dict.fromkeys(point.model for point in points))
    for model, style in zip(models, model_styles("pGNN" in model for model in models), strict=True):
        line = [point for point in points if point.model == model]
        ours = [(point.changed, point.mean, point.deviation) for point in line if point.mean is not None]
        theirs = [(point.changed, point.published) for point in line if point.published is not None]
        if theirs:
            label = None if ours else f"{model} (published)"
            axis.plot(*zip(*theirs, strict=True), color=style.light, linestyle="--", linewidth=1, label=label)
        if ours:
            x, y, deviation = zip(*ours, strict=True)
            axis.errorbar(
                x, y, deviation, color=style.light, marker=style.marker.matplotlib, linewidth=1.6,
                markersize=5, capsize=2, label=model,
            )  # fmt: skip
    figure.legend(loc="outside right center", frameon=False, fontsize="small")
    axis.set_ylabel("test accuracy in %")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _axes(size: tuple[float, float], font: int) -> tuple[Figure, Axes]:
    plt.rcParams.update({"font.size": font, "axes.spines.top": False, "axes.spines.right": False})
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    axis.grid(axis="y", color="#e4e7e9")
    axis.set_axisbelow(True)
    axis.set_xlabel("edges changed by an attacker before training")
    axis.set_xticks(range(0, 26, 5), [f"{rate} %" for rate in range(0, 26, 5)])
    axis.set_title("Cora: accuracy on test nodes", loc="left", fontsize=13)
    return figure, axis


if __name__ == "__main__":
    found = measured()
    (HERE / "lying-edges.csv").write_text(as_csv(found), encoding="utf-8")
    draw(found, HERE / "lying-edges.png")
    draw_all(found, HERE.parent / "robustness-curve.png")
    attacked = pl.read_csv(HERE / "adaptive-attack.csv").filter(pl.col("attack") == "all test nodes")
    adaptive_attack.draw(attacked).savefig(HERE / "adaptive-attack.png", dpi=110, metadata={"Software": None})
