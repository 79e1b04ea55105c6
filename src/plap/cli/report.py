"""``plap report``: what a fit found, from its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def report(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that plap fit wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Show the scores of a finished fit and where its page is."""
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from plap.artifacts import load_metrics  # noqa: PLC0415
    from plap.errors import InputError  # noqa: PLC0415

    metrics = load_metrics(out)
    if as_json:
        print(json.dumps(metrics, indent=1))
        return
    try:
        rows = [
            (m["name"], m["uses"], f"{100 * m.get('accuracy', m.get('micro_f1')):.1f}")
            for m in metrics["methods"]
        ]
        title = f"{metrics['graph']}: {metrics['split']['sizes'][2]} held-out nodes"
    except (KeyError, TypeError, IndexError, AttributeError):
        raise InputError(f"{out / 'metrics.json'} was not written by this version of plap") from None
    table = Table(title=escape(title), title_justify="left")
    for heading in ("method", "uses", "score %"):
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False)
    console.print(table)
    console.print(escape(f"Page: {out / 'report.html'}"), soft_wrap=True)
