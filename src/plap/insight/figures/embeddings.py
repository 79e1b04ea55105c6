"""Nodes in a plane, by what pGNN and GCN make of them (Appendix, "Visualization Results")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch

from plap.insight.embeddings import node_embeddings, tsne
from plap.insight.figures.figure import Figure, FigureOptions
from plap.insight.figures.setting import P_VALUES, best_runs, open_case, pgnn_configs
from plap.insight.figures.style import CLASSES, MARKERS, grid, plain
from plap.insight.members import members_of
from plap.training import RunConfig, accuracy

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_DATASETS = ("cora", "computers", "chameleon", "wisconsin")
_MOST_NODES, _QUICK_NODES = 2000, 300


def compute(options: FigureOptions) -> pl.DataFrame:
    """Dataset, model, accuracy, node, label, x, y: of at most 2000 labelled nodes, drawn at random."""
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
    """At most so many of the nodes, ascending, the same at every call."""
    chosen = np.random.default_rng(0).permutation(nodes.shape[0])[:most]
    return nodes[torch.from_numpy(np.sort(chosen))]


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """A row a dataset, a column a model, a colour and a marker a class."""
    datasets = data["dataset"].unique(maintain_order=True).to_list()
    models = data["model"].unique(maintain_order=True).to_list()
    figure, panels = grid(len(datasets), len(models), height=2.6)
    for row, dataset in zip(panels, datasets, strict=True):
        for axes, model in zip(row, models, strict=True):
            chosen = (pl.col("dataset") == dataset) & (pl.col("model") == model)
            _panel(axes, data.filter(chosen))
            right = data.filter(chosen)["accuracy"][0]
            axes.set_title(f"{plain(dataset)}, {model}: {100 * right:.1f} %", fontsize="small")
    figure.supxlabel("t-SNE; colour and shape are the class, per cent is test accuracy", fontsize="small")
    return figure


def _panel(axes: Axes, rows: pl.DataFrame) -> None:
    size = 14 if rows.height < 500 else 4
    for label in sorted(rows["label"].unique().to_list()):
        points = rows.filter(pl.col("label") == label)
        colour = CLASSES[label % len(CLASSES)]
        marker = MARKERS[label // len(CLASSES) % len(MARKERS)]
        axes.scatter(points["x"], points["y"], s=size, color=colour, marker=marker, linewidths=0, alpha=0.8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal", adjustable="datalim")


FIGURE = Figure("embeddings", "Node embeddings by t-SNE", compute, draw)
