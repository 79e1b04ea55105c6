"""A table as LaTeX, in the style of the paper: booktabs, deviations as subscripts, bold and underlined."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plap.reporting.table_cells import NOTHING, cell_text
from plap.reporting.table_content import DatasetColumn, Mark, ModelRow, ResultCell, TableReport
from plap.reporting.table_sentences import explanations, headline

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
        rf"\caption{{{escape(caption)}}}",
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


def escape(text: str) -> str:
    r"""Text that LaTeX prints literally.

    Examples
    --------
    >>> print(escape("a_b & 5 % of φ"))
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
        _line("Method", [column.name for column in datasets]),
    ]
    if any(column.detail for column in datasets):
        lines.append(_line("", [column.detail for column in datasets]))
    first_of_family = {family[0] for family in report.families}
    for position, model in enumerate(report.models):
        if position == 0 or model.key in first_of_family:
            lines.append(r"\midrule")
        lines += _rows(report, model, report.row(model.key)[block])
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _rows(report: TableReport, model: ModelRow, cells: Sequence[ResultCell]) -> list[str]:
    texts = [cell_text(report, cell) for cell in cells]
    ours = [_number(text.mean, text.deviation, text.mark, text.ratio) for text in texts]
    rows = [" & ".join([escape(model.label), *ours]) + r" \\"]
    if report.has_published:
        theirs = [
            _number(
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


def _line(first: str, rest: Sequence[str]) -> str:
    return " & ".join(map(escape, [first, *rest])) + r" \\"


def _number(mean: str, deviation: str, mark: Mark, ratio: str) -> str:
    if not re.fullmatch(r"−?[\d.]+", mean):
        return escape(mean)
    digits = mean.replace("−", "-")
    strong = {
        "best": rf"\mathbf{{{digits}}}",
        "near": rf"\underline{{\mathbf{{{digits}}}}}",
        "": digits,
    }[mark]
    subscript = rf"_{{\pm {deviation}}}" if deviation else ""
    return f"${strong}{subscript}$" + (f" ({escape(ratio)})" if ratio else "")
