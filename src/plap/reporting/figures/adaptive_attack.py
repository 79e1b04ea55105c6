"""How models fall under an attack that knows them: on all test nodes at once, and on single nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import torch

from plap.data import GraphData, Split, split
from plap.data.resolve import open_graph
from plap.insight.attack import AttackCurve, attack_curve
from plap.insight.members import members_of
from plap.reporting.figures.figure import FigureOptions
from plap.reporting.palette import model_styles
from plap.reporting.picture import panels, tidy
from plap.training import RunConfig, train_runs

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_DATASETS = ("cora-metattack:rate=0",)
_GLOBAL, _LOCAL = (0.05, 0.1, 0.2), (0.5, 1.0)
"""Budgets: shares of all edges, and of the edges of the attacked node."""
_STEPS = 40
_TARGETS = 20
"""Test nodes that are attacked one by one, drawn by the seed."""

MODELS: dict[str, dict[str, Any]] = {
    "GCN": {"model": "gcn"},
    "Elastic GNN": {"model": "elastic-gnn"},
    "RUNG, γ = 3": {"model": "rung", "gamma": 3.0},
    "pGNN p = 1": {"p": 1.0, "mu": 0.1},
    "pGNN p = 1.5": {"p": 1.5, "mu": 0.1},
    "pGNN p = 2": {"p": 2.0, "mu": 0.1},
    "pGNN Huber, γ = 0.3": {"penalty": "huber", "gamma": 0.3, "mu": 0.1, "K": 5, "detach_weights": True},
    "pGNN MCP, γ = 10": {"penalty": "mcp", "gamma": 10.0, "mu": 0.05, "K": 5, "detach_weights": True},
    "pGNN MCP, γ = 3": {"penalty": "mcp", "gamma": 3.0, "mu": 0.15, "K": 5, "detach_weights": True},
}
"""Fixed settings, the same on every graph; nothing is searched here."""
_QUICK = ("GCN", "pGNN p = 1.5", "pGNN MCP, γ = 3")


def compute(options: FigureOptions) -> pl.DataFrame:
    """Dataset, model, seed, attack, budget, accuracy, random: the accuracy after each attack on each model.

    ``random`` is the accuracy after as many random edges. Budget 0 is the graph as it was.
    """
    rows = []
    for name in options.datasets or _DATASETS:
        data = open_graph(name, root=options.root)
        preferred = data.splits is not None and data.splits.preferred
        for seed in range(options.seeds):
            parts = split(data, "public" if preferred else "stratified", seed=seed)
            for label in _QUICK if options.quick else MODELS:
                for kind, curve in _curves(data, parts, MODELS[label], options, seed).items():
                    points = [(0.0, curve.clean, curve.clean)]
                    points += [(point.budget, point.accuracy, point.random) for point in curve.points]
                    rows += [
                        {"dataset": name, "model": label, "seed": seed, "attack": kind, "budget": budget,
                         "accuracy": accuracy, "random": random}
                        for budget, accuracy, random in points
                    ]  # fmt: skip
    return pl.DataFrame(rows)


def _curves(
    data: GraphData, parts: Split, fields: dict[str, Any], options: FigureOptions, seed: int
) -> dict[str, AttackCurve]:
    """Both attacks on one trained model."""
    epochs, quick = options.trained_epochs, options.quick
    config = RunConfig(**fields, seed=seed, max_epochs=epochs, patience=min(100, epochs))
    runs = train_runs(data.graph, data.x, data.y, [config], parts, num_classes=data.num_classes)
    members = members_of(runs, data.x.shape[1], data.num_classes)
    judged = parts.test & data.known
    order = judged.nonzero().squeeze(1)
    drawn = order[torch.randperm(order.numel(), generator=torch.Generator().manual_seed(seed))]
    single = torch.zeros_like(judged)
    single[drawn[: 2 if quick else _TARGETS]] = True
    steps = 4 if quick else _STEPS
    return {
        "all test nodes": attack_curve(
            members, data.x, data.graph, data.y, judged, _GLOBAL[:1] if quick else _GLOBAL,
            steps=steps, seed=seed,
        ),
        "single nodes": attack_curve(
            members, data.x, data.graph, data.y, single, _LOCAL[-1:] if quick else _LOCAL,
            local=True, steps=steps, seed=seed,
        ),
    }  # fmt: skip


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """One panel per attack, one line per model: the mean accuracy over seeds; dotted: after random edges."""
    attacks = data["attack"].unique(maintain_order=True).to_list()
    datasets = data["dataset"].unique(maintain_order=True).to_list()
    figure, grid = panels(len(datasets), len(attacks), width=4.2, height=3.4)
    for row, dataset in zip(grid, datasets, strict=True):
        for axes, attack in zip(row, attacks, strict=True):
            _draw_panel(axes, data.filter((pl.col("dataset") == dataset) & (pl.col("attack") == attack)))
            whose = "the edges" if attack == attacks[0] else "the node's edges"
            axes.set_title(f"{dataset}, {attack}", fontsize="medium")
            axes.set_xlabel(f"changed share of {whose} (%)", fontsize="small")
            axes.set_ylabel("test accuracy (%)", fontsize="small")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize="small")
    return figure


def _draw_panel(axes: Axes, rows: pl.DataFrame) -> None:
    models = rows["model"].unique(maintain_order=True).to_list()
    for model, style in zip(models, model_styles("pGNN" in model for model in models), strict=True):
        means = rows.filter(pl.col("model") == model).group_by("budget").agg(pl.mean("accuracy", "random"))
        means = means.sort("budget")
        shares = (100 * means["budget"]).to_list()
        axes.plot(
            shares, (100 * means["accuracy"]).to_list(), color=style.light, marker=style.marker.matplotlib,
            markersize=4, linewidth=1.4, label=model,
        )  # fmt: skip
        axes.plot(shares, (100 * means["random"]).to_list(), color=style.light, linewidth=0.8, linestyle=":")
    tidy(axes)
