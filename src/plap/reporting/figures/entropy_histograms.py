"""Entropy of the weights that nodes give their neighbours, by model and graph (§5 and its appendix)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from torch import Tensor

from plap.insight.members import learned_weights, members_of, uniform_entropy, weight_entropy
from plap.reporting.figures.figure import (
    ALL,
    P_VALUES,
    Case,
    FigureOptions,
    best_runs,
    gat_config,
    open_case,
    pgnn_configs,
    shown_name,
)
from plap.reporting.palette import BLACK, BLUE, GREY, VERMILION
from plap.reporting.picture import panels, tidy

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_BINS = 24
UNIFORM, NORMALISED, WRITTEN = "uniform", "normalised", "as written"


def compute(options: FigureOptions) -> pl.DataFrame:
    """One histogram per dataset, model and measure: low, high, nodes; μ, mean and ``nothing`` are repeated.

    ``measure`` is "normalised" (entropy of the weights divided by their sum) or "as written" (of the weights
    themselves, which do not sum to 1). ``nothing`` counts the nodes with edges whose weights are all 0.
    """
    tables = []
    for name in options.datasets or ALL:
        values: dict[tuple[str, str], list[Tensor]] = {}
        mu: dict[str, float] = {}
        for seed in range(options.seeds):
            for (model, measure), (entropy, chosen) in _entropies(
                open_case(name, options, seed), options, seed
            ).items():
                values.setdefault((model, measure), []).append(entropy)
                mu[model] = chosen
        top = max(float(values[UNIFORM, NORMALISED][0].nan_to_num().max()), 1e-9)
        tables += [_histogram(name, *key, torch.cat(each), mu[key[0]], top) for key, each in values.items()]
    return pl.concat(tables)


def _entropies(case: Case, options: FigureOptions, seed: int) -> dict[tuple[str, str], tuple[Tensor, float]]:
    """Entropy of every node, and the μ of the model, by (model, measure)."""
    graph, x = case.data.graph, case.data.x
    groups = [[gat_config(options, seed)], *(pgnn_configs(p, options, seed) for p in P_VALUES)]
    runs = best_runs(case, groups)
    attentive, *modules = members_of(runs, x.shape[1], case.data.num_classes)
    found = {(UNIFORM, NORMALISED): (uniform_entropy(graph), np.nan)}
    attention = learned_weights(attentive, x, graph)
    found["GAT", NORMALISED] = (weight_entropy(attention, graph).mean(1), np.nan)
    for p, run, module in zip(P_VALUES, runs[1:], modules, strict=True):
        weight = learned_weights(module, x, graph)
        for measure in (NORMALISED, WRITTEN):
            entropy = weight_entropy(weight, graph, normalize=measure == NORMALISED)
            connected = torch.where(graph.degree > 0, entropy, torch.inf)
            found[f"p = {p:g}", measure] = (connected[~connected.isinf()], run.config.parameters.mu)
    return found


def _histogram(dataset: str, model: str, measure: str, values: Tensor, mu: float, top: float) -> pl.DataFrame:
    array = values.numpy()
    finite = array[np.isfinite(array)]
    edges = np.linspace(0, top, _BINS + 1)
    counts, _ = np.histogram(finite.clip(0, top), edges)
    constants: dict[str, Any] = {
        "dataset": dataset, "model": model, "measure": measure, "mu": mu,
        "mean": float(finite.mean()) if finite.size else np.nan,
        "nothing": 0 if model in (UNIFORM, "GAT") else int(array.size - finite.size),
    }  # fmt: skip
    return pl.DataFrame({"low": edges[:-1], "high": edges[1:], "nodes": counts}).with_columns(
        **{name: pl.lit(value) for name, value in constants.items()}
    )


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """One row per dataset, one column per model; the outline in every panel is the uniform case."""
    datasets = data["dataset"].unique(maintain_order=True).to_list()
    models = [name for name in data["model"].unique(maintain_order=True) if name != UNIFORM]
    figure, grid = panels(len(datasets), len(models), height=1.9)
    for row, dataset in zip(grid, datasets, strict=True):
        of_set = data.filter(pl.col("dataset") == dataset)
        uniform = of_set.filter(pl.col("model") == UNIFORM)
        for axes, model in zip(row, models, strict=True):
            _draw_panel(axes, of_set.filter(pl.col("model") == model), uniform)
            axes.set_title(f"{shown_name(dataset)}, {model}", fontsize="small")
        row[0].set_ylabel("nodes")
    for axes in grid[-1]:
        axes.set_xlabel("entropy (nats)")
    _legend(figure)
    return figure


def _draw_panel(axes: Axes, model: pl.DataFrame, uniform: pl.DataFrame) -> None:
    shares = model.filter(pl.col("measure") == NORMALISED)
    written = model.filter(pl.col("measure") == WRITTEN)
    _stairs(axes, shares, fill=True, color=BLUE, alpha=0.75)
    _stairs(axes, uniform, color=BLACK, linewidth=0.9)
    if written.height:
        _stairs(axes, written, color=VERMILION, linewidth=1.1, linestyle=(0, (3, 1.5)))
    text = f"mean {shares['mean'][0]:.2f}, uniform {uniform['mean'][0]:.2f}"
    if np.isfinite(shares["mu"][0]):
        text += f"\nμ = {shares['mu'][0]:g}"
    if shares["nothing"][0]:
        text += f"\n{shares['nothing'][0]:,} have no weight"
    axes.text(
        0.97, 0.96, text, transform=axes.transAxes, ha="right", va="top", fontsize="x-small", color=GREY
    )
    axes.margins(y=0.25)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize="x-small")
    tidy(axes)


def _stairs(axes: Axes, rows: pl.DataFrame, **style: Any) -> None:
    axes.stairs(rows["nodes"].to_numpy(), np.append(rows["low"].to_numpy(), rows["high"][-1]), **style)


def _legend(figure: matplotlib.figure.Figure) -> None:
    handles = [
        Patch(color=BLUE, alpha=0.75, label="learned weights, normalised"),
        Line2D([], [], color=BLACK, linewidth=0.9, label="equal weights"),
        Line2D(
            [],
            [],
            color=VERMILION,
            linewidth=1.1,
            linestyle=(0, (3, 1.5)),
            label="learned weights, not normalised (as in the paper)",
        ),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize="small")
