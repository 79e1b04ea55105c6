"""The curves as files of their own: an SVG and a PNG."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from plap.experiments.outcome import TableResult
from plap.experiments.rendering.curves import Panel, Series, panels
from plap.experiments.rendering.line_styles import LineStyle, line_styles
from plap.experiments.rendering.names import parameter_name, with_minus
from plap.experiments.rendering.sentences import headline
from plap.experiments.rendering.texts import has_published

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_GREY = "#59626b"
_METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def curve_picture(result: TableResult, kind: Literal["svg", "png"]) -> bytes | None:
    """A panel a dataset, a line a model; None where the table has nothing to draw.

    The same result gives the same bytes.
    """
    shown = panels(result)
    if not shown:
        return None
    import matplotlib  # noqa: PLC0415

    stream = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": result.name}):
        _draw(result, shown).savefig(stream, format=kind, metadata=_METADATA[kind])
    return stream.getvalue()


def _draw(result: TableResult, shown: Sequence[Panel]) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415

    columns = min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    size = (9.5, 5.5) if len(shown) == 1 else (11.5, 0.6 + 3.6 * rows)
    figure = Figure(figsize=size, dpi=120, layout="constrained", facecolor="white")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    styles = line_styles(result.models)
    for axes, panel in zip(grid, shown, strict=False):
        _panel(axes, panel, styles)
        axes.set_xlabel(parameter_name(result.curve or ""))
        axes.set_ylabel(_plain(result.unit))
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    title = textwrap.fill(_plain(headline(result)), width=100)
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium", fontweight="bold")
    figure.legend(handles=_legend(result, shown[0], styles), loc="outside right center", frameon=False)
    return figure


def _panel(axes: Axes, panel: Panel, styles: Sequence[LineStyle]) -> None:
    axes.set_title(_plain(panel.name))
    for series, style in zip(panel.series, styles, strict=True):
        _line(axes, series, style)
    axes.set_xticks(panel.places, [with_minus(f"{place:g}") for place in panel.places])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7e9", linewidth=0.8)
    axes.set_axisbelow(True)


def _line(axes: Axes, series: Series, style: LineStyle) -> None:
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


def _legend(result: TableResult, panel: Panel, styles: Sequence[LineStyle]) -> list[Line2D]:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    lines = [
        Line2D(
            [],
            [],
            color=style.light,
            marker=style.marker.matplotlib,
            markersize=4.5,
            linewidth=1.6,
            label=_plain(series.name),
        )
        for series, style in zip(panel.series, styles, strict=True)
    ]
    lines.append(Line2D([], [], color=_GREY, linewidth=1.2, label="ours, 95 % interval"))
    if has_published(result):
        lines.append(Line2D([], [], color=_GREY, linewidth=1.2, linestyle="--", label="published"))
    return lines


def _plain(text: str) -> str:
    """Text of a user's own, without Matplotlib's formulas."""
    return text.replace("$", r"\$")
