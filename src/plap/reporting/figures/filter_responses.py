"""What a few steps of message passing do to each frequency, for several p, GCN and APPNP (§4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from plap.data.resolve import open_graph
from plap.errors import InputError
from plap.reporting.figures.figure import FigureOptions, shown_name
from plap.reporting.palette import CATEGORIES, CATEGORY_MARKERS, GREY
from plap.reporting.picture import check_folder, encode, panels, tidy, write_files
from plap.spectral import Response, response_curves, response_rows, response_table

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_DATASETS = ("cora", "chameleon")


def compute(options: FigureOptions) -> pl.DataFrame:
    """Dataset, model, frequency, gain, coherence, input_energy, output_energy: the features of each graph."""
    rows = []
    for name in options.datasets or _DATASETS:
        data = open_graph(name, root=options.root)
        curves = response_curves(data.x.to_dense(), data.graph)
        rows.append(_table(data.name, curves))
    return pl.concat(rows)


def _table(dataset: str, curves: Mapping[str, Response]) -> pl.DataFrame:
    rows = [{"dataset": dataset, **row} for row in response_rows(curves)]
    return pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))


def draw(data: pl.DataFrame) -> matplotlib.figure.Figure:
    """One column per dataset: the gain above, the coherence below."""
    datasets = data["dataset"].unique(maintain_order=True).to_list()
    models = data["model"].unique(maintain_order=True).to_list()
    figure, grid = panels(
        2, len(datasets), (2.0 + 5.5 * len(datasets), 5.6), dpi=160, sharex=True, height_ratios=[3, 1.2]
    )
    for (gains, coherences), dataset in zip(grid.T, datasets, strict=True):
        _draw_dataset(gains, coherences, data.filter(pl.col("dataset") == dataset), models)
        gains.set_title(shown_name(dataset), loc="left", fontsize="medium")
        coherences.set_xlabel("frequency: eigenvalue of Δ₂")
    grid[0, 0].set_ylabel("gain")
    grid[1, 0].set_ylabel("coherence")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    return figure


def draw_responses(curves: Mapping[str, Response], path: Path | str, *, title: str = "") -> list[Path]:
    """Draw custom responses as PNG and SVG, with their numbers as CSV.

    Parameters
    ----------
    curves : mapping from a name to Response
        As returned by :func:`plap.spectral.response_curves`; up to seven can be told apart.
    path : path
        Path of the figure, with or without a suffix; the three files differ in their suffix only.
    title : str

    Returns
    -------
    list of Path
        The PNG, the SVG and the CSV file.
    """
    if not isinstance(curves, Mapping):
        raise InputError(f"curves must map names to responses, not be a {type(curves).__name__}")
    most = len(CATEGORY_MARKERS)
    if not 1 <= len(curves) <= most:
        raise InputError(f"curves must hold from 1 to {most} responses, not {len(curves)}")
    base = Path(path)
    name = base.stem if base.suffix in (".png", ".svg", ".csv") else base.name
    check_folder(base.parent)
    figure = draw(_table(title, curves))
    files = {
        f"{name}.png": encode(figure, "png"),
        f"{name}.svg": encode(figure, "svg"),
        f"{name}.csv": response_table(curves).encode(),
    }
    return write_files(base.parent, files)


def _draw_dataset(gains: Axes, coherences: Axes, rows: pl.DataFrame, models: Sequence[str]) -> None:
    for k, model in enumerate(models):
        curve = rows.filter((pl.col("model") == model) & pl.col("gain").is_not_null())
        style: dict[str, Any] = {
            "color": CATEGORIES[k % len(CATEGORIES)],
            "marker": CATEGORY_MARKERS[k % len(CATEGORY_MARKERS)],
            "linestyle": "-" if model.startswith("p = ") else (0, (4, 1.5)),
        }
        gains.plot(curve["frequency"], curve["gain"], label=model, markersize=3.5, linewidth=1.5, **style)
        coherences.plot(curve["frequency"], curve["coherence"], markersize=3.5, linewidth=1.5, **style)
    gains.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    coherences.set(xlim=(0, 2), ylim=(0, 1.05))
    for axes in (gains, coherences):
        tidy(axes, lines="x")
