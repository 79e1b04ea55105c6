"""The curves of a table as picture files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from plap.reporting.number_text import with_minus
from plap.reporting.palette import GREY, LineStyle, model_styles
from plap.reporting.picture import panels, plain, tidy
from plap.reporting.table_content import Panel, Series, TableReport
from plap.reporting.table_sentences import headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
