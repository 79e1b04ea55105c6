"""A table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plap.experiments.outcome import Cell, Mark, TableResult
from plap.experiments.rendering.names import dataset_lines
from plap.experiments.rendering.sentences import (
    agreement_sentence,
    explanations,
    headline,
    problems,
    summary,
)
from plap.experiments.rendering.texts import cell_text, families_shown, has_published, is_compared

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_STYLES: dict[Mark, str] = {"best": "bold", "near": "bold underline", "": ""}
_SIGNS: dict[Mark, str] = {"best": "*", "near": "°", "": ""}
_AROUND_A_COLUMN = 3
"""A space on both sides and a line."""


def show(result: TableResult, console: Console) -> None:
    """Print every cell with the published one dim below it, in as many tables as the width takes.

    Where there are no styles, as in a file, the best has an asterisk and what is near it a ring.
    """
    from rich.text import Text  # noqa: PLC0415

    plain = not console.is_terminal
    columns = {dataset: _column(result, dataset, plain=plain) for dataset in result.datasets}
    names = Text("\n".join(map(result.label, result.models)))
    for group in _groups(columns, console.width - _width([names]) - 1):
        console.print(_table(result, columns, group))
    console.print(Text(summary(result)))
    for sentence in _legend(result, plain=plain):
        console.print(Text(sentence, style="dim"))
    for sentence in (*result.rules, *(f"Of the published table: {note}" for note in result.notes)):
        console.print(Text(f"· {sentence}", style="dim"))
    for sentence in problems(result):
        console.print(Text(f"! {sentence}"))


def _legend(result: TableResult, *, plain: bool) -> tuple[str, ...]:
    signs = (_SIGNS["best"], _SIGNS["near"]) if plain else ()
    return (*explanations(result, *signs), *([agreement_sentence()] if is_compared(result) else []))


def _column(result: TableResult, dataset: str, *, plain: bool) -> list[Text]:
    """The head, then a cell for each model."""
    from rich.text import Text  # noqa: PLC0415

    head = Text("\n".join(filter(None, dataset_lines(dataset, result.protocol))), justify="right")
    cells = (result.cell(model, dataset) for model in result.models)
    return [head, *(_content(result, cell, plain=plain) for cell in cells)]


def _content(result: TableResult, cell: Cell, *, plain: bool) -> Text:
    from rich.text import Text  # noqa: PLC0415

    text = cell_text(result, cell)
    content = Text(f"{text.symbol} " if text.symbol else "", justify="right")
    content.append(text.ours, _STYLES[text.mark]).append(_SIGNS[text.mark] if plain else "")
    content.append(f" {text.ratio}" if text.ratio else "")
    if has_published(result):
        content.append("\n" + " ".join(filter(None, [text.published, text.published_ratio])), "dim")
    return content


def _groups(columns: dict[str, list[Text]], room: int) -> list[list[str]]:
    """Datasets that fit beside each other; at least one each."""
    groups: list[list[str]] = []
    left = 0
    for dataset, texts in columns.items():
        width = _width(texts)
        if not groups or width > left:
            groups.append([])
            left = room
        groups[-1].append(dataset)
        left -= width
    return groups


def _width(texts: Sequence[Text]) -> int:
    """Of a column that holds all of them."""
    return (
        max(line.cell_len for text in texts for line in text.split("\n", allow_blank=True)) + _AROUND_A_COLUMN
    )


def _table(result: TableResult, columns: dict[str, list[Text]], group: Sequence[str]) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=Text(headline(result)), title_justify="left")
    table.add_column("")
    for dataset in group:
        table.add_column(columns[dataset][0], justify="right", no_wrap=True)
    last_of_family = {family[-1] for family in families_shown(result)}
    for row, model in enumerate(result.models, start=1):
        cells = (columns[dataset][row] for dataset in group)
        table.add_row(Text(result.label(model)), *cells, end_section=model in last_of_family)
    return table
