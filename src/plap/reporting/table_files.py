"""A table in every file format."""

from __future__ import annotations

import csv
import io
from typing import Any

from plap.reporting.picture import draw_curves, encode
from plap.reporting.table_content import ResultCell, TableReport
from plap.reporting.table_latex import latex
from plap.reporting.table_markdown import markdown
from plap.reporting.table_page import table_page


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


def csv_text(report: TableReport) -> str:
    """RFC 4180, with a header line.

    Each selected hyperparameter has a column of its own, named ``config_lr`` and so on. What a cell does not
    have is empty.
    """
    fields = list(dict.fromkeys(name for cell in report.cells for name in cell.config or {}))
    rows = [_row(report, cell, fields) for cell in report.cells]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _row(report: TableReport, cell: ResultCell, fields: list[str]) -> dict[str, Any]:
    low, high = cell.interval or (None, None)
    published = cell.published
    row: dict[str, Any] = {
        "model": cell.model,
        "dataset": cell.dataset,
        "runs": cell.runs,
        "mean": cell.mean,
        "std": cell.deviation,
        "low": low,
        "high": high,
        "mark": cell.mark,
        "published_mean": published and published.mean,
        "published_plus_minus": published and published.plus_minus,
        "published_out_of_memory": "yes" if published and published.out_of_memory else "",
        "difference": None if report.timed else cell.difference,
        "agreement": "" if cell.agreement == "unknown" else cell.agreement,
        "cause": cell.cause,
    }
    if report.timed:
        row |= {
            "ratio_to_mlp": cell.ratio,
            "published_ratio_to_mlp": cell.published_ratio,
            "run_seconds": cell.run_seconds,
            "published_run_seconds": published and published.run_seconds,
        }
    row |= {f"config_{name}": (cell.config or {}).get(name) for name in fields}
    return row | {
        "tried": cell.tried,
        "grid": cell.grid,
        "seconds": cell.seconds,
        "not_finite": cell.not_finite,
        "problem": cell.problem,
    }
