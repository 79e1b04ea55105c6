"""A table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from plap.reporting.table_cells import cell_text
from plap.reporting.table_content import DatasetColumn, Mark, ResultCell, TableReport
from plap.reporting.table_sentences import (
    agreement_sentence,
    causes,
    explanations,
    headline,
    problems,
    summary,
)
from plap.reporting.terminal import make_console, print_line

_STYLES: dict[Mark, str] = {"best": "bold", "near": "bold underline", "": ""}
_SIGNS: dict[Mark, str] = {"best": "*", "near": "°", "": ""}
_BORDER = 3
"""Width of a column beside its text: a space on both sides and a line."""


def show_table(report: TableReport, console: Console | None = None) -> None:
    """Print every cell with the published one dimmed below it, in as many tables as the width requires.

    Where there are no styles, as in a file, an asterisk marks the best and a ring what is near it.
    """
    console = console or make_console()
    plain = not console.is_terminal
    columns = {
        column.key: _column(report, k, column, plain=plain) for k, column in enumerate(report.datasets)
    }
    names = Text("\n".join(model.label for model in report.models))
    for group in _groups(columns, console.width - _width([names]) - 1):
        console.print(_table(report, columns, group))
    print_line(console, summary(report))
    for sentence in _legend(report, plain=plain):
        print_line(console, sentence, style="dim")
    for sentence in (*report.rules, *(f"Published table: {note}" for note in report.notes)):
        print_line(console, f"· {sentence}", style="dim")
    for sentence in causes(report):
        print_line(console, f"· {sentence}", style="dim")
    for sentence in problems(report):
        print_line(console, f"! {sentence}")


def _legend(report: TableReport, *, plain: bool) -> tuple[str, ...]:
    signs = (_SIGNS["best"], _SIGNS["near"]) if plain else ()
    return (*explanations(report, *signs), *([agreement_sentence()] if report.is_compared else []))


def _column(report: TableReport, position: int, column: DatasetColumn, *, plain: bool) -> list[Text]:
    """The heading, then one cell per model."""
    head = Text("\n".join(filter(None, [column.name, column.detail])), justify="right")
    cells = report.cells[position :: len(report.datasets)]
    return [head, *(_content(report, cell, plain=plain) for cell in cells)]


def _content(report: TableReport, cell: ResultCell, *, plain: bool) -> Text:
    text = cell_text(report, cell)
    content = Text(f"{text.symbol} " if text.symbol else "", justify="right")
    content.append(text.ours, _STYLES[text.mark]).append(_SIGNS[text.mark] if plain else "")
    content.append(f" {text.ratio}" if text.ratio else "")
    if report.has_published:
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
    return max(line.cell_len for text in texts for line in text.split("\n", allow_blank=True)) + _BORDER


def _table(report: TableReport, columns: dict[str, list[Text]], group: Sequence[str]) -> RichTable:
    table = RichTable(title=Text(headline(report)), title_justify="left")
    table.add_column("")
    for dataset in group:
        table.add_column(columns[dataset][0], justify="right", no_wrap=True)
    last_of_family = {family[-1] for family in report.families}
    for row, model in enumerate(report.models, start=1):
        cells = (columns[dataset][row] for dataset in group)
        table.add_row(Text(model.label), *cells, end_section=model.key in last_of_family)
    return table
