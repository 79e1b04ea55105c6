"""A table in every file format: page, Markdown, LaTeX in the style of the paper, CSV and picture."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from plap.reporting.picture import draw_curves, encode
from plap.reporting.table_content import DatasetColumn, Mark, ModelRow, ResultCell, TableReport
from plap.reporting.table_page import table_page
from plap.reporting.table_texts import (
    NOTHING,
    agreement_sentence,
    causes,
    cell_text,
    differing,
    explanations,
    headline,
    join_deviation,
    problems,
    summary,
)


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
    rows = [_csv_row(report, cell, fields) for cell in report.cells]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _csv_row(report: TableReport, cell: ResultCell, fields: list[str]) -> dict[str, Any]:
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
        f"# {escape_markdown(headline(report))}",
        escape_markdown(summary(report)),
        _markdown_table(
            ["", *map(_markdown_head, report.datasets)],
            (
                [
                    escape_markdown(model.label),
                    *(_markdown_cell(report, cell) for cell in report.row(model.key)),
                ]
                for model in report.models
            ),
        ),
        escape_markdown(" ".join(legend)),
    ]
    if picture:
        parts.append(f"![{escape_markdown(headline(report))}]({quote(picture)})")
    if differing(report):
        parts += ["## Differences from the published values", _differences(report)]
    for title, sentences in (
        ("Causes of the differences", causes(report)),
        ("Experimental setup", report.rules),
        ("About the published table", report.notes),
        ("Missing results", problems(report)),
    ):
        if sentences:
            parts += [f"## {title}", "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)]
    return "\n\n".join(parts) + "\n"


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows literally, on one line.

    Examples
    --------
    >>> print(escape_markdown("a_b|c <d>"))
    a\_b\|c &lt;d&gt;
    """
    one_line = " ".join(text.split())
    escaped = re.sub(r"([\\`*_{}\[\]|~#])", r"\\\1", one_line)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _markdown_head(column: DatasetColumn) -> str:
    return "<br>".join(escape_markdown(line) for line in (column.name, column.detail) if line)


def _markdown_cell(report: TableReport, cell: ResultCell) -> str:
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
    return _markdown_table(
        ["", "Model", "Dataset", "Ours", "Published", "Difference", "Cause"],
        (
            [
                text.symbol,
                escape_markdown(report.model_label(cell.model)),
                escape_markdown(report.dataset_label(cell.dataset)),
                text.ours,
                text.published,
                text.difference,
                escape_markdown(cell.cause),
            ]
            for cell, text in texts
        ),
        numbers_from=3,
    )


def _markdown_table(head: list[str], rows: Iterable[list[str]], numbers_from: int = 1) -> str:
    alignment = ["---" if k < numbers_from else "---:" for k in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, alignment, *rows])


_MOST_COLUMNS = 7
_MOST_TIMES = 6
"""The same for times, which have a ratio beside them."""
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After the end of a row these would be read as its arguments.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "φ": r"$\phi$",
    "ε": r"$\epsilon$",
    "μ": r"$\mu$",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≈": r"$\approx$",
    "–": "--",
    "’": "'",
}


def latex(report: TableReport) -> str:
    r"""One ``table`` for ``\input``; the columns of a wide one are split into blocks below each other."""
    caption = " ".join([f"{headline(report)}.", *explanations(report)])
    lines = [
        r"% Needs \usepackage{booktabs}.",
        r"\begin{table}[htp]",
        r"\centering",
        r"\setlength\belowcaptionskip{4pt}",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\label{{tab:{re.sub(r'[^A-Za-z0-9]+', '-', report.name)}}}",
        r"\footnotesize",
        rf"\setlength\tabcolsep{{{2 if report.timed else 3}pt}}",
    ]
    for number, (start, stop) in enumerate(
        _blocks(len(report.datasets), _MOST_TIMES if report.timed else _MOST_COLUMNS)
    ):
        if number:
            lines.append(r"\par\medskip")
        lines += _tabular(report, slice(start, stop))
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints literally.

    Examples
    --------
    >>> print(escape_latex("a_b & 5 % of φ"))
    a\_b \& 5 \% of $\phi$
    """
    return "".join(_ESCAPES.get(character, character) for character in " ".join(text.split()))


def _blocks(columns: int, most: int) -> list[tuple[int, int]]:
    """Ranges of columns, as equal as possible, none too wide for a page."""
    count = -(-columns // most)
    size = -(-columns // max(count, 1))
    return [(first, first + size) for first in range(0, columns, size or 1)]


def _tabular(report: TableReport, block: slice) -> list[str]:
    datasets: Sequence[DatasetColumn] = report.datasets[block]
    lines = [
        rf"\begin{{tabular}}{{l{'c' * len(datasets)}}}",
        r"\toprule",
        _latex_line("Method", [column.name for column in datasets]),
    ]
    if any(column.detail for column in datasets):
        lines.append(_latex_line("", [column.detail for column in datasets]))
    first_of_family = {family[0] for family in report.families}
    for position, model in enumerate(report.models):
        if position == 0 or model.key in first_of_family:
            lines.append(r"\midrule")
        lines += _latex_rows(report, model, report.row(model.key)[block])
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _latex_rows(report: TableReport, model: ModelRow, cells: Sequence[ResultCell]) -> list[str]:
    texts = [cell_text(report, cell) for cell in cells]
    ours = [_latex_number(text.mean, text.deviation, text.mark, text.ratio) for text in texts]
    rows = [" & ".join([escape_latex(model.label), *ours]) + r" \\"]
    if report.has_published:
        theirs = [
            _latex_number(
                text.published_mean or NOTHING,
                text.published_deviation,
                text.published_mark,
                text.published_ratio,
            )
            for text in texts
        ]
        rows.append(
            " & ".join([r"\quad published", *(rf"\scriptsize {number}" for number in theirs)]) + r" \\"
        )
    return rows


def _latex_line(first: str, rest: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, [first, *rest])) + r" \\"


def _latex_number(mean: str, deviation: str, mark: Mark, ratio: str) -> str:
    if not re.fullmatch(r"−?[\d.]+", mean):
        return escape_latex(mean)
    digits = mean.replace("−", "-")
    strong = {
        "best": rf"\mathbf{{{digits}}}",
        "near": rf"\underline{{\mathbf{{{digits}}}}}",
        "": digits,
    }[mark]
    subscript = rf"_{{\pm {deviation}}}" if deviation else ""
    return f"${strong}{subscript}$" + (f" ({escape_latex(ratio)})" if ratio else "")
