"""The page of a table: every cell beside the published one."""

from __future__ import annotations

from dataclasses import dataclass

from plap.reporting.html_page import render_template
from plap.reporting.number_text import counted
from plap.reporting.palette import model_styles
from plap.reporting.svg_figures import mean_figure
from plap.reporting.table_content import ResultCell, TableReport
from plap.reporting.table_texts import (
    SYMBOLS,
    CellText,
    agreement_meanings,
    cell_text,
    config_text,
    differing,
    diverged_text,
    explanations,
    headline,
    interval_text,
    problems,
    searched_text,
    summary,
    unit_title,
)


@dataclass(frozen=True)
class CellView:
    """A cell with all that the page says about it."""

    cell: ResultCell
    text: CellText
    model: str
    dataset: str
    interval: str
    config: str
    searched: str

    @property
    def details(self) -> str:
        """The tooltip of the cell, one fact per line."""
        cell = self.cell
        lines = [
            f"{self.model} on {self.dataset}",
            counted(cell.runs, "run") if cell.runs else "",
            f"95 % confidence interval {self.interval}" if self.interval else "",
            f"{self.text.difference} compared with the published mean" if self.text.symbol else "",
            f"selected: {self.config}" if self.config else "",
            f"{self.searched} configurations tried" if self.searched else "",
            self.run_time,
            diverged_text(cell) if cell.not_finite else "",
            cell.problem or "",
        ]
        return "\n".join(filter(None, lines))

    @property
    def run_time(self) -> str:
        """Time of a whole run, in a table of times."""
        published = self.cell.published.run_seconds if self.cell.published else None
        if self.cell.run_seconds is None:
            return ""
        text = f"{self.cell.run_seconds:.3g} s per run"
        return text if published is None else f"{text} (published: {published} s)"


@dataclass(frozen=True)
class RowView:
    """A model."""

    name: str
    opens_family: bool
    cells: tuple[CellView, ...]


def table_page(report: TableReport) -> str:
    """The report as one HTML file that needs no network and no other file."""
    rows = _rows(report)
    views = {(view.cell.model, view.cell.dataset): view for row in rows for view in row.cells}
    styles = model_styles(model.highlighted for model in report.models)
    curves = [mean_figure(panel, styles, large=len(report.panels) == 1) for panel in report.panels]
    return render_template(
        "table.html",
        report=report,
        title=headline(report),
        unit=unit_title(report),
        summary=summary(report),
        explanations=explanations(report),
        meanings=agreement_meanings() if report.is_compared else {},
        symbols=SYMBOLS,
        rows=rows,
        views=list(views.values()),
        differing=[views[cell.model, cell.dataset] for cell in differing(report)],
        problems=problems(report),
        curves=curves,
        legend=sorted({line.number: line for figure in curves for line in figure.lines}.items()),
    )


def _rows(report: TableReport) -> list[RowView]:
    first_of_family = {family[0] for family in report.families[1:]}
    return [
        RowView(
            model.label,
            model.key in first_of_family,
            tuple(_view(report, cell) for cell in report.row(model.key)),
        )
        for model in report.models
    ]


def _view(report: TableReport, cell: ResultCell) -> CellView:
    return CellView(
        cell,
        cell_text(report, cell),
        report.model_label(cell.model),
        report.dataset_label(cell.dataset),
        interval_text(report, cell),
        config_text(cell.config),
        searched_text(cell),
    )
