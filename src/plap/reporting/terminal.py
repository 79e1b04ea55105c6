"""Tables on the terminal: text as it is given, never taken for markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text


def make_console() -> Console:
    """Standard output, without colouring whatever looks like a number."""
    return Console(highlight=False)


def text_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    left: Collection[str] = (),
) -> RichTable:
    """A table whose columns are aligned to the right, except those whose heading is in ``left``."""
    table = RichTable(title=Text(title) if title else None, title_justify="left")
    for position, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if heading in left else "right", no_wrap=position == 0)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def print_line(console: Console, text: str, *, style: str = "", wrap: bool = True) -> None:
    """A line of text; one that holds a path is not wrapped, so that it can be copied."""
    console.print(Text(text, style=style), soft_wrap=not wrap)
