"""The page: every cell beside the published one, in one HTML file that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING

from plap.experiments.outcome import Cell, TableResult
from plap.experiments.rendering.curve_figure import CurveFigure, curve_figure
from plap.experiments.rendering.curves import panels
from plap.experiments.rendering.line_styles import line_styles
from plap.experiments.rendering.names import dataset_lines, dataset_name, parameter_name
from plap.experiments.rendering.sentences import (
    agreement_meanings,
    differing,
    explanations,
    headline,
    problems,
    summary,
    unit_title,
)
from plap.experiments.rendering.texts import (
    SYMBOLS,
    CellText,
    cell_text,
    config_text,
    families_shown,
    has_published,
    interval_text,
    is_compared,
    searched_text,
)
from plap.report.page import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_PARAMETERS = {
    "phi": "φ, from heterophilic (−1) to homophilic (1)",
    "r": "r, the share of edges that were made random",
}


@dataclass(frozen=True)
class CellView:
    """A cell with all that the page says of it."""

    cell: Cell
    text: CellText
    model: str
    dataset: str
    interval: str
    config: str
    searched: str

    @property
    def details(self) -> str:
        """What is shown when the pointer rests on the cell, a line each."""
        runs = len(self.cell.values)
        lines = [
            f"{self.model} on {self.dataset}",
            f"{runs} run{'' if runs == 1 else 's'}" if runs else "",
            f"95 % interval {self.interval}" if self.interval else "",
            f"{self.text.difference} against the published mean" if self.text.symbol else "",
            f"chosen: {self.config}" if self.config else "",
            f"{self.searched} configurations tried" if self.searched else "",
            self.run_time,
            f"{self.cell.not_finite} ended in NaN or infinity, those of the search counted"
            if self.cell.not_finite
            else "",
            self.cell.problem or "",
        ]
        return "\n".join(filter(None, lines))

    @property
    def run_time(self) -> str:
        """Of a whole run, in a table of times."""
        published = self.cell.published.total if self.cell.published else None
        if not self.cell.totals:
            return ""
        text = f"a run {fmean(self.cell.totals):.3g} s"
        return text if published is None else f"{text}, published {published} s"


@dataclass(frozen=True)
class RowView:
    """A model."""

    name: str
    opens_family: bool
    cells: tuple[CellView, ...]


def page(result: TableResult) -> str:
    """No network, no other file, light and dark, phone and desk."""
    rows = _rows(result)
    views = {(view.cell.model, view.cell.dataset): view for row in rows for view in row.cells}
    curves = _curves(result)
    return (
        _environment()
        .get_template("table/page.html")
        .render(
            result=result,
            title=headline(result),
            unit=unit_title(result),
            summary=summary(result),
            explanations=explanations(result),
            meanings=agreement_meanings() if is_compared(result) else {},
            symbols=SYMBOLS,
            with_published=has_published(result),
            heads=[dataset_lines(dataset, result.protocol) for dataset in result.datasets],
            rows=rows,
            views=[view for row in rows for view in row.cells],
            differing=[views[cell.model, cell.dataset] for cell in differing(result)],
            problems=problems(result),
            curves=curves,
            legend=sorted({line.number: line for figure in curves for line in figure.lines}.items()),
            parameter=_PARAMETERS.get(result.curve or "", parameter_name(result.curve or "")),
        )
    )


def _rows(result: TableResult) -> list[RowView]:
    first_of_family = {family[0] for family in families_shown(result)[1:]}
    return [
        RowView(
            result.label(model),
            model in first_of_family,
            tuple(_view(result, result.cell(model, dataset)) for dataset in result.datasets),
        )
        for model in result.models
    ]


def _view(result: TableResult, cell: Cell) -> CellView:
    return CellView(
        cell,
        cell_text(result, cell),
        result.label(cell.model),
        dataset_name(cell.dataset, result.protocol),
        interval_text(result, cell),
        config_text(cell.config),
        searched_text(cell),
    )


def _curves(result: TableResult) -> list[CurveFigure]:
    shown, styles = panels(result), line_styles(result.models)
    return [curve_figure(panel, styles, large=len(shown) == 1) for panel in shown]


@cache
def _environment() -> Environment:
    from jinja2 import PackageLoader, PrefixLoader  # noqa: PLC0415

    return environment(
        PrefixLoader(
            {"report": PackageLoader("plap.report"), "table": PackageLoader("plap.experiments.rendering")}
        )
    )
