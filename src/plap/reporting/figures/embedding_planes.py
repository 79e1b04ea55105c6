"""Embeddings of the nodes by pGNN and GCN, in a plane (Appendix, "Visualization Results")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch

from plap.insight.members import members_of, node_embeddings, tsne
from plap.reporting.figures.figure import (
    P_VALUES,
    FigureOptions,
    best_runs,
    open_case,
    pgnn_configs,
    shown_name,
)
from plap.reporting.palette import CATEGORIES, CATEGORY_MARKERS
from plap.reporting.picture import panels
from plap.training import RunConfig, accuracy

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_DATASETS = ("cora", "computers", "chameleon", "wisconsin")
_MOST_NODES, _QUICK_NODES = 2000, 300


def compute(options: FigureOptions) -> pl.DataFrame:
    """Dataset, model, accuracy, node, label, x, y: for at most 2000 labelled nodes, drawn at random."""
    tables = []
    for name in options.datasets or _DATASETS:
        case = open_case(name, options)
        data = case.data
        epochs = options.trained_epochs
        gcn = RunConfig(model="gcn", max_epochs=epochs, patience=min(100, epochs))
        runs = best_runs(case, [*(pgnn_configs(p, options) for p in P_VALUES), [gcn]])
        modules = members_of(runs, data.x.shape[1], data.num_classes)
        shown = _some((data.y >= 0).nonzero().squeeze(1), _QUICK_NODES if options.quick else _MOST_NODES)
        names = [*(f"p = {p:g}" for p in P_VALUES), "GCN"]
        for model, run, module in zip(names, runs, modules, strict=True):
            plane = tsne(node_embeddings(module, data.x, data.graph)[shown])
            test = case.split.test
            tables.append(
                pl.DataFrame(
                    {
                        "dataset": name,
                        "model": model,
                        "accuracy": accuracy(data.y[test], run.logits[test].argmax(1)),
                        "node": shown.numpy(),
                        "label": data.y[shown].numpy(),
                        "x": plane[:, 0],
                        "y": plane[:, 1],
                    }
                )
            )
    return pl.concat(tables)


def _some(nodes: torch.Tensor, most: int) -> torch.Tensor:
    """At most ``most`` of the nodes in ascending order, the same ones at every call."""
    chosen = np.random.default_rng(0).permutation(nodes.shape[0])[:most]
    return nodes[torch.from_numpy(np.sort(chosen))]


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """One row per dataset, one column per model, one colour and marker per class."""
    datasets = data["dataset"].unique(maintain_order=True).to_list()
    models = data["model"].unique(maintain_order=True).to_list()
    figure, grid = panels(len(datasets), len(models), height=2.6)
    for row, dataset in zip(grid, datasets, strict=True):
        for axes, model in zip(row, models, strict=True):
            chosen = (pl.col("dataset") == dataset) & (pl.col("model") == model)
            _draw_panel(axes, data.filter(chosen))
            right = data.filter(chosen)["accuracy"][0]
            axes.set_title(f"{shown_name(dataset)}, {model}: {100 * right:.1f} %", fontsize="small")
    figure.supxlabel("t-SNE; colour and shape: class; in %: test accuracy", fontsize="small")
    return figure


def _draw_panel(axes: Axes, rows: pl.DataFrame) -> None:
    size = 14 if rows.height < 500 else 4
    for label in sorted(rows["label"].unique().to_list()):
        points = rows.filter(pl.col("label") == label)
        colour = CATEGORIES[label % len(CATEGORIES)]
        marker = CATEGORY_MARKERS[label // len(CATEGORIES) % len(CATEGORY_MARKERS)]
        axes.scatter(points["x"], points["y"], s=size, color=colour, marker=marker, linewidths=0, alpha=0.8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal", adjustable="datalim")
