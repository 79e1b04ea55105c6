"""A table as LaTeX, in the manner of the paper's: booktabs, deviations as subscripts, bold and underlined."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plap.experiments.outcome import Mark, TableResult
from plap.experiments.rendering.names import dataset_lines
from plap.experiments.rendering.sentences import explanations, headline
from plap.experiments.rendering.texts import NOTHING, cell_text, families_shown, has_published

_MOST_COLUMNS = 7
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
    # Behind the end of a row these would be taken for its arguments.
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


def latex(result: TableResult) -> str:
    r"""One ``table`` for ``\input``; a wide one has its columns in several blocks below each other."""
    caption = " ".join([f"{headline(result)}.", *explanations(result)])
    lines = [
        r"% Needs \usepackage{booktabs}.",
        r"\begin{table}[htp]",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{tab:{re.sub(r'[^A-Za-z0-9]+', '-', result.name)}}}",
        r"\footnotesize",
        r"\setlength\tabcolsep{3pt}",
    ]
    for number, block in enumerate(_blocks(result.datasets)):
        if number:
            lines.append(r"\par\medskip")
        lines += _tabular(result, block)
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Examples
    --------
    >>> print(escape("a_b & 5 % of φ"))
    a\_b \& 5 \% of $\phi$
    """
    return "".join(_ESCAPES.get(character, character) for character in " ".join(text.split()))


def _blocks(datasets: Sequence[str]) -> list[Sequence[str]]:
    """Equal parts as far as possible, none too wide for a page."""
    count = -(-len(datasets) // _MOST_COLUMNS)
    size = -(-len(datasets) // max(count, 1))
    return [datasets[first : first + size] for first in range(0, len(datasets), size or 1)]


def _tabular(result: TableResult, datasets: Sequence[str]) -> list[str]:
    names = [dataset_lines(dataset, result.protocol) for dataset in datasets]
    lines = [
        rf"\begin{{tabular}}{{l{'c' * len(datasets)}}}",
        r"\toprule",
        _line("Method", [first for first, _ in names]),
    ]
    if any(second for _, second in names):
        lines.append(_line("", [second for _, second in names]))
    first_of_family = {family[0] for family in families_shown(result)}
    for position, model in enumerate(result.models):
        if position == 0 or model in first_of_family:
            lines.append(r"\midrule")
        lines += _rows(result, model, datasets)
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _rows(result: TableResult, model: str, datasets: Sequence[str]) -> list[str]:
    texts = [cell_text(result, result.cell(model, dataset)) for dataset in datasets]
    ours = [_number(text.mean, text.deviation, text.mark, text.ratio) for text in texts]
    rows = [" & ".join([escape(result.label(model)), *ours]) + r" \\"]
    if has_published(result):
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
