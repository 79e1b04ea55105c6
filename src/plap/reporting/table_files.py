"""A table in every file format."""

from __future__ import annotations

from plap.reporting.picture import encode
from plap.reporting.table_content import TableReport
from plap.reporting.table_csv import csv_text
from plap.reporting.table_latex import latex
from plap.reporting.table_markdown import markdown
from plap.reporting.table_page import table_page
from plap.reporting.table_picture import draw_curves


def table_files(report: TableReport) -> dict[str, bytes]:
    """The files of a report by name; the same report gives the same bytes.

    Returns
    -------
    dict of str to bytes
        ``NAME.md``, ``NAME.csv``, ``NAME.tex``, ``NAME.html`` and, for a table with curves,
        ``NAME-curve.svg`` and ``NAME-curve.png``.
    """
    pictures = {}
    if report.panels:
        figure = draw_curves(report)
        pictures = {
            f"{report.name}-curve.svg": encode(figure, "svg"),
            f"{report.name}-curve.png": encode(figure, "png"),
        }
    texts = {
        f"{report.name}.md": markdown(report, picture=next(iter(pictures), None)),
        f"{report.name}.csv": csv_text(report),
        f"{report.name}.tex": latex(report),
        f"{report.name}.html": table_page(report),
    }
    return {name: text.encode() for name, text in texts.items()} | pictures
