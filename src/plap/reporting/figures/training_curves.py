"""Training loss and test accuracy of pGNN with p = 1, epoch by epoch (Appendix, "Training Curves")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from torch import Tensor

from plap.reporting.figures.figure import (
    ALL,
    Case,
    FigureOptions,
    best_runs,
    open_case,
    pgnn_configs,
    shown_name,
)
from plap.reporting.palette import BLUE, VERMILION
from plap.reporting.picture import panels
from plap.training import train_runs

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_COLUMNS = 4


@dataclass(frozen=True, eq=False)
class _TestCurve:
    """A split whose test nodes take the place of the validation nodes; nothing is selected by them."""

    train: Tensor
    val: Tensor


def compute(options: FigureOptions) -> pl.DataFrame:
    """Dataset, seed, mu, epoch, train_loss, test_accuracy: all epochs of every run, none stopped early.

    First μ is selected by the validation score; then the run that is shown is trained again from the start.
    """
    return pl.concat(
        _run(open_case(name, options, seed), options, seed)
        for name in options.datasets or ALL
        for seed in range(options.seeds)
    )


def _run(case: Case, options: FigureOptions, seed: int) -> pl.DataFrame:
    data, epochs = case.data, options.trained_epochs
    candidates = pgnn_configs(1.0, options, seed)
    chosen = best_runs(case, [candidates])[0].config if len(candidates) > 1 else candidates[0]
    config = chosen.with_values(max_epochs=epochs, patience=epochs)
    watched = _TestCurve(case.split.train, case.split.test)
    (run,) = train_runs(data.graph, data.x, data.y, [config], watched, num_classes=data.num_classes)
    return pl.DataFrame(
        {
            "dataset": case.name,
            "seed": seed,
            "mu": config.parameters.mu,
            "epoch": range(1, run.epochs + 1),
            "train_loss": run.history.train_loss.numpy(),
            "test_accuracy": run.history.val_score.numpy(),
        }
    )


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """One panel per dataset: the loss on the left axis, the accuracy on the right one."""
    datasets = data["dataset"].unique(maintain_order=True).to_list()
    columns = min(_COLUMNS, len(datasets))
    figure, grid = panels(math.ceil(len(datasets) / columns), columns, width=3.2, height=2.3)
    for axes in grid.ravel()[len(datasets) :]:
        axes.set_visible(False)
    for axes, name in zip(grid.ravel(), datasets, strict=False):
        rows = data.filter(pl.col("dataset") == name)
        _draw_panel(axes, rows)
        mu = ", ".join(f"{value:g}" for value in sorted(rows["mu"].unique()))
        axes.set_title(f"{shown_name(name)}, μ = {mu}", fontsize="medium")
    return figure


def _draw_panel(loss: Axes, rows: pl.DataFrame) -> None:
    accuracy = loss.twinx()
    for _, run in rows.group_by("seed", maintain_order=True):
        loss.plot(run["epoch"], run["train_loss"], color=VERMILION, linewidth=1.1, linestyle="--")
        accuracy.plot(run["epoch"], 100 * run["test_accuracy"], color=BLUE, linewidth=1.1)
    loss.set_ylim(bottom=0)
    accuracy.set_ylim(0, 100)
    loss.set_xlabel("epoch", fontsize="small")
    loss.set_ylabel("training loss (dashed)", color=VERMILION, fontsize="small")
    accuracy.set_ylabel("test accuracy (%)", color=BLUE, fontsize="small")
    for axes in (loss, accuracy):
        axes.tick_params(labelsize="x-small")
        axes.spines["top"].set_visible(False)
