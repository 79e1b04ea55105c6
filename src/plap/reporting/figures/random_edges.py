"""How well edge trust and simpler scores find random edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plap.insight.trust_comparison import SCORES, compare_trust
from plap.reporting.figures.figure import HOMOPHILIC, FigureOptions, gat_config, open_case, shown_name
from plap.reporting.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY
from plap.reporting.picture import panels, tidy
from plap.training import RunConfig

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_DATASETS = ("cora", "photo", "computers")
_RATES = (0.25, 0.5)
_COLOURS = dict(zip(SCORES, (BLUE, SKY, ORANGE, GREEN, PURPLE), strict=True))


def compute(options: FigureOptions) -> pl.DataFrame:
    """Dataset, rate, seed, score, auc: with 25 % and 50 % of the edges replaced by random ones."""
    rows = []
    epochs = options.trained_epochs
    config = RunConfig(p=1.5, max_epochs=epochs, patience=min(100, epochs))
    for name in options.datasets or _DATASETS:
        preset = "sparse" if name in HOMOPHILIC else "dense"
        data = open_case(name, options).data
        for rate in _RATES:
            for seed in range(options.seeds):
                found = compare_trust(
                    data, rate, preset=preset, config=config, gat=gat_config(options), seed=seed
                )
                rows += [
                    {"dataset": name, "rate": rate, "seed": seed, "score": score, "auc": auc}
                    for score, auc in found.auc.items()
                ]
    return pl.DataFrame(rows)


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """One panel per share of random edges, one group per dataset, one bar per score; dots are seeds."""
    rates = data["rate"].unique(maintain_order=True).to_list()
    figure, grid = panels(1, len(rates), width=5, height=3)
    for axes, rate in zip(grid[0], rates, strict=True):
        _draw_panel(axes, data.filter(pl.col("rate") == rate))
        axes.set_title(f"{100 * rate:g} % of the edges are random", fontsize="medium")
    grid[0][0].set_ylabel("ROC-AUC, original against random")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(SCORES), frameon=False, fontsize="small"
    )
    return figure


def _draw_panel(axes: Axes, rows: pl.DataFrame) -> None:
    datasets = rows["dataset"].unique(maintain_order=True).to_list()
    width = 0.8 / len(SCORES)
    for k, (score, label) in enumerate(SCORES.items()):
        places = [group + (k - (len(SCORES) - 1) / 2) * width for group in range(len(datasets))]
        values = [
            rows.filter((pl.col("dataset") == name) & (pl.col("score") == score))["auc"].to_list()
            for name in datasets
        ]
        means = [sum(each) / len(each) for each in values]
        axes.bar(places, means, 0.9 * width, color=_COLOURS[score], label=label)
        for place, each, mean in zip(places, values, means, strict=True):
            if len(each) > 1:
                axes.plot([place] * len(each), each, ".", color=BLACK, markersize=3)
            axes.text(place, max(each) + 0.01, f"{100 * mean:.0f}", ha="center", fontsize="x-small")
    axes.axhline(0.5, color=GREY, linewidth=1, linestyle="--")
    axes.set_xticks(range(len(datasets)), [shown_name(name) for name in datasets])
    axes.set_ylim(0, 1.05)
    tidy(axes)
