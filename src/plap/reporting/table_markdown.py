"""A table as Markdown, as code hosts show it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

from plap.reporting.table_cells import cell_text, join_deviation
from plap.reporting.table_content import DatasetColumn, Mark, ResultCell, TableReport
from plap.reporting.table_sentences import (
    agreement_sentence,
    causes,
    differing,
    explanations,
    headline,
    problems,
    summary,
)


def markdown(report: TableReport, picture: str | None = None) -> str:
    """The whole report.

    Parameters
    ----------
    report : TableReport
    picture : str, optional
        Name of the file with the curves, in the same folder.
    """
    legend = (*explanations(report), *([agreement_sentence()] if report.is_compared else []))
    parts = [
        f"# {escape(headline(report))}",
        escape(summary(report)),
        _table(
            ["", *map(_head, report.datasets)],
            (
                [escape(model.label), *(_cell(report, cell) for cell in report.row(model.key))]
                for model in report.models
            ),
        ),
        escape(" ".join(legend)),
    ]
    if picture:
        parts.append(f"![{escape(headline(report))}]({quote(picture)})")
    if differing(report):
        parts += ["## Differences from the published values", _differences(report)]
    for title, sentences in (
        ("Causes of the differences", causes(report)),
        ("Experimental setup", report.rules),
        ("About the published table", report.notes),
        ("Missing results", problems(report)),
    ):
        if sentences:
            parts += [f"## {title}", "\n".join(f"- {escape(sentence)}" for sentence in sentences)]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Text that Markdown shows literally, on one line.

    Examples
    --------
    >>> print(escape("a_b|c <d>"))
    a\_b\|c &lt;d&gt;
    """
    one_line = " ".join(text.split())
    escaped = re.sub(r"([\\`*_{}\[\]|~#])", r"\\\1", one_line)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _head(column: DatasetColumn) -> str:
    return "<br>".join(escape(line) for line in (column.name, column.detail) if line)


def _cell(report: TableReport, cell: ResultCell) -> str:
    text = cell_text(report, cell)
    ours = " ".join(filter(None, [_marked(text.mean, text.deviation, text.mark), text.ratio, text.symbol]))
    if not text.published_mean:
        return ours
    theirs = _marked(text.published_mean, text.published_deviation, text.published_mark)
    return f"{ours}<br><sub>{' '.join(filter(None, [theirs, text.published_ratio]))}</sub>"


def _marked(mean: str, deviation: str, mark: Mark) -> str:
    strong = {"best": f"**{mean}**", "near": f"<ins>**{mean}**</ins>", "": mean}[mark]
    return join_deviation(strong, deviation)


def _differences(report: TableReport) -> str:
    texts = [(cell, cell_text(report, cell)) for cell in differing(report)]
    return _table(
        ["", "Model", "Dataset", "Ours", "Published", "Difference", "Cause"],
        (
            [
                text.symbol,
                escape(report.model_label(cell.model)),
                escape(report.dataset_label(cell.dataset)),
                text.ours,
                text.published,
                text.difference,
                escape(cell.cause),
            ]
            for cell, text in texts
        ),
        numbers_from=3,
    )


def _table(head: list[str], rows: Iterable[list[str]], numbers_from: int = 1) -> str:
    alignment = ["---" if k < numbers_from else "---:" for k in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, alignment, *rows])
