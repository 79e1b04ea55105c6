"""Picture files by Matplotlib: what all pictures share, and files with the same bytes for the same data."""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from plap.atomic_file import write_atomic
from plap.errors import InputError
from plap.reporting.number_text import shortened, with_minus
from plap.reporting.palette import GREY, GRID_LINE, LineStyle, model_styles
from plap.reporting.table_content import Panel, Series, TableReport
from plap.reporting.table_texts import headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


def draw_curves(report: TableReport) -> Figure:
    """One panel per dataset, one line per model."""
    shown = report.panels
    columns = min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure, grid = panels(rows, columns, (9.5, 5.5) if len(shown) == 1 else (11.5, 0.6 + 3.6 * rows))
    styles = model_styles(model.highlighted for model in report.models)
    for axes, panel in zip(grid.ravel(), shown, strict=False):
        _draw_panel(axes, panel, styles)
        axes.set_xlabel(plain(report.parameter))
        axes.set_ylabel(plain(report.unit))
    for axes in grid.ravel()[len(shown) :]:
        axes.set_visible(False)
    title = textwrap.fill(plain(headline(report)), width=100)
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium", fontweight="bold")
    figure.legend(handles=_legend(report, styles), loc="outside right center", frameon=False)
    return figure


def _draw_panel(axes: Axes, panel: Panel, styles: Sequence[LineStyle]) -> None:
    axes.set_title(plain(panel.name))
    for series, style in zip(panel.series, styles, strict=True):
        _draw_line(axes, series, style)
    axes.set_xticks(panel.places, [with_minus(f"{place:g}") for place in panel.places])
    tidy(axes)


def _draw_line(axes: Axes, series: Series, style: LineStyle) -> None:
    if series.published:
        axes.plot(
            [point.at for point in series.published],
            [point.mean for point in series.published],
            color=style.light,
            linestyle=(0, (4, 3)),
            linewidth=0.9,
            alpha=0.7,
        )
    if series.ours:
        axes.errorbar(
            [point.at for point in series.ours],
            [point.mean for point in series.ours],
            yerr=[
                [point.mean - point.low for point in series.ours],
                [point.high - point.mean for point in series.ours],
            ],
            color=style.light,
            marker=style.marker.matplotlib,
            markersize=4.5,
            linewidth=1.6,
            elinewidth=1,
            capsize=2,
        )


def _legend(report: TableReport, styles: Sequence[LineStyle]) -> list[Line2D]:
    lines = [
        Line2D(
            [],
            [],
            color=style.light,
            marker=style.marker.matplotlib,
            markersize=4.5,
            linewidth=1.6,
            label=plain(model.label),
        )
        for model, style in zip(report.models, styles, strict=True)
    ]
    lines.append(Line2D([], [], color=GREY, linewidth=1.2, label="ours, 95 % interval"))
    if report.has_published:
        lines.append(Line2D([], [], color=GREY, linewidth=1.2, linestyle="--", label="published"))
    return lines


PictureKind = Literal["png", "svg"]

_METADATA: dict[PictureKind, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


def panels(
    rows: int,
    columns: int,
    size: tuple[float, float] | None = None,
    *,
    width: float = 2.6,
    height: float = 2.1,
    dpi: int = 120,
    **options: Any,
) -> tuple[Figure, NDArray[Any]]:
    """A white figure and its axes, [rows, columns].

    Parameters
    ----------
    rows, columns : int
    size : (float, float), optional
        Of the whole figure in inches; by default each panel is ``width`` × ``height`` inches.
    width, height : float
    dpi : int
    **options :
        For :meth:`matplotlib.figure.Figure.subplots`.
    """
    size = size or (0.8 + width * columns, 0.7 + height * rows)
    figure = Figure(figsize=size, dpi=dpi, layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def tidy(axes: Axes, *, lines: Literal["x", "y"] | None = "y") -> None:
    """Remove the frame where there is no axis, and draw a light grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    if lines:
        axes.grid(axis=lines, color=GRID_LINE, linewidth=0.7)
    axes.set_axisbelow(True)


def plain(text: str, length: int | None = None) -> str:
    """Text of a user's own, not read as Matplotlib's formulas, and shortened to ``length`` characters."""
    return (text if length is None else shortened(text, length)).replace("$", r"\$")


def encode(figure: Figure, kind: PictureKind) -> bytes:
    """The picture as a file; the same figure gives the same bytes.

    A PNG has a palette of 256 colours, which makes it a third of the size.
    """
    stream = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "plap"}):
        figure.savefig(stream, format=kind, metadata=_METADATA[kind])
    if kind == "svg":
        return stream.getvalue()
    small = io.BytesIO()
    drawn = Image.open(stream)
    drawn.convert("RGB").quantize(256).save(small, format="PNG", optimize=True, dpi=drawn.info["dpi"])
    return small.getvalue()


def check_folder(folder: Path) -> None:
    """Create the folder, and refuse one that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be created ({error.strerror})") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder} cannot be written: permission denied")


def write_files(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write each file completely or not at all; returns their paths."""
    written = []
    for name, content in files.items():
        path = folder / name
        try:
            write_atomic(path, content)
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror})") from None
        written.append(path)
    return written
