"""A table as Markdown, as it is shown on code hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

from plap.experiments.outcome import Cell, Mark, TableResult
from plap.experiments.rendering.names import dataset_lines, dataset_name
from plap.experiments.rendering.sentences import (
    agreement_sentence,
    differing,
    explanations,
    headline,
    problems,
    summary,
)
from plap.experiments.rendering.texts import cell_text, is_compared, join_deviation


def markdown(result: TableResult, picture: str | None = None) -> str:
    """The whole report.

    Parameters
    ----------
    result : TableResult
    picture : str, optional
        File of the curves, as it is named beside the text.
    """
    legend = (*explanations(result), *([agreement_sentence()] if is_compared(result) else []))
    parts = [
        f"# {escape(headline(result))}",
        escape(summary(result)),
        _table(
            ["", *(_head(dataset, result) for dataset in result.datasets)],
            (
                [escape(result.label(model)), *(_cell(result, cell) for cell in _row(result, model))]
                for model in result.models
            ),
        ),
        escape(" ".join(legend)),
    ]
    if picture:
        parts.append(f"![{escape(headline(result))}]({quote(picture)})")
    if differing(result):
        parts += ["## Where we differ", _differences(result)]
    for title, sentences in (
        ("What was run", result.rules),
        ("About the published table", result.notes),
        ("What is missing", problems(result)),
    ):
        if sentences:
            parts += [f"## {title}", "\n".join(f"- {escape(sentence)}" for sentence in sentences)]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(escape("a_b|c <d>"))
    a\_b\|c &lt;d&gt;
    """
    one_line = " ".join(text.split())
    escaped = re.sub(r"([\\`*_{}\[\]|~#])", r"\\\1", one_line)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _row(result: TableResult, model: str) -> list[Cell]:
    return [result.cell(model, dataset) for dataset in result.datasets]


def _head(dataset: str, result: TableResult) -> str:
    return "<br>".join(escape(line) for line in dataset_lines(dataset, result.protocol) if line)


def _cell(result: TableResult, cell: Cell) -> str:
    text = cell_text(result, cell)
    ours = " ".join(filter(None, [_marked(text.mean, text.deviation, text.mark), text.ratio, text.symbol]))
    if not text.published_mean:
        return ours
    theirs = _marked(text.published_mean, text.published_deviation, text.published_mark)
    return f"{ours}<br><sub>{' '.join(filter(None, [theirs, text.published_ratio]))}</sub>"


def _marked(mean: str, deviation: str, mark: Mark) -> str:
    strong = {"best": f"**{mean}**", "near": f"<ins>**{mean}**</ins>", "": mean}[mark]
    return join_deviation(strong, deviation)


def _differences(result: TableResult) -> str:
    texts = [(cell, cell_text(result, cell)) for cell in differing(result)]
    return _table(
        ["", "Model", "Dataset", "Ours", "Published", "Difference"],
        (
            [
                text.symbol,
                escape(result.label(cell.model)),
                escape(dataset_name(cell.dataset, result.protocol)),
                text.ours,
                text.published,
                text.difference,
            ]
            for cell, text in texts
        ),
        numbers_from=3,
    )


def _table(head: list[str], rows: Iterable[list[str]], numbers_from: int = 1) -> str:
    alignment = ["---" if k < numbers_from else "---:" for k in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, alignment, *rows])
