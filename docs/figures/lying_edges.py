"""Draw the picture of the README: ``python docs/figures/lying_edges.py``.

The numbers are those of the table "Metattack on Cora" in docs/robustness.md, measured by ``plap reproduce
robustness --max-epochs 200 --patience 100``; they are also written as CSV beside the picture.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
DRAWN = {"pGNN MCP": "plap (pGNN, MCP)", "GCN": "GCN", "MLP": "MLP (no edges)"}
STYLE = {"pGNN MCP": ("#0072B2", "o"), "GCN": ("#D55E00", "s"), "MLP": ("#59626b", "^")}


class Point(NamedTuple):
    """Test accuracy in per cent, over the seeds of a cell."""

    model: str
    changed: int
    """Per cent of the edges that were changed."""
    mean: float
    deviation: float


def measured() -> list[Point]:
    """The drawn rows of the table in docs/robustness.md."""
    text = (HERE.parent / "robustness.md").read_text(encoding="utf-8")
    table = text.split("## Metattack on Cora")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    rates = [int(cell.removesuffix(" %")) for cell in rows[0][1:]]
    points = []
    for name, *cells in rows[2:]:
        model = name.strip("*")
        if model in DRAWN:
            for rate, cell in zip(rates, cells, strict=True):
                found = re.match(r"([\d.]+) ± ([\d.]+)", cell.replace("*", ""))
                if found is None:
                    raise ValueError(
                        f"docs/robustness.md: {model} at {rate} % is not a mean ± deviation: {cell}"
                    )
                points.append(Point(model, rate, float(found[1]), float(found[2])))
    return points


def as_csv(points: list[Point]) -> str:
    """The points as the file beside the picture has them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["model", "changed_edges_percent", "accuracy_mean", "accuracy_deviation"])
    writer.writerows(points)
    return out.getvalue()


def draw(points: list[Point], path: Path) -> None:
    """Accuracy against the share of changed edges, a line per model and a band of one standard deviation."""
    plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
    figure, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for model, label in DRAWN.items():
        line = [point for point in points if point.model == model]
        x, y = [point.changed for point in line], [point.mean for point in line]
        colour, marker = STYLE[model]
        axis.plot(x, y, color=colour, marker=marker, linewidth=2.5, markersize=7)
        low, high = ([point.mean + sign * point.deviation for point in line] for sign in (-1, 1))
        axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.annotate(
            f"{label}\n{y[-1]:.1f} %", (x[-1], y[-1]), (10, 0), textcoords="offset points", va="center",
            color=colour, fontweight="bold",
        )  # fmt: skip
    axis.grid(axis="y", color="#e4e7e9")
    axis.set_axisbelow(True)
    axis.set(xlabel="edges changed by an attacker before training", xlim=(-0.5, 25.4), ylim=(44, 90))
    axis.set_xticks(x, [f"{rate} %" for rate in x])
    axis.set_yticks(range(50, 91, 10), [f"{share} %" for share in range(50, 91, 10)])
    axis.set_title("Cora: accuracy on test nodes", loc="left", fontsize=13)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    found = measured()
    (HERE / "lying-edges.csv").write_text(as_csv(found), encoding="utf-8")
    draw(found, HERE / "lying-edges.png")
