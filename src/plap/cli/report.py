"""``plap report``: what a fit found, from its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from plap.data.metrics import METRICS
from plap.errors import InputError
from plap.fitting.artifacts import load_metrics
from plap.reporting.number_text import counted, shown
from plap.reporting.terminal import make_console, print_line, text_table


def report(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that plap fit wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Show the scores of a finished fit and the path of its report."""
    metrics = load_metrics(out)
    if as_json:
        print(json.dumps(metrics, indent=1))
        return
    try:
        name = metrics["metric"]
        metric = METRICS[name]
        rows = [
            (m["name"], m["uses"], shown(m["scores"][name], metric.share).removesuffix(" %"))
            for m in metrics["methods"]
        ]
        title = f"{metrics['graph']}: {counted(metrics['split']['sizes'][2], 'held-out node')}"
    except (KeyError, TypeError, IndexError, AttributeError):
        raise InputError(f"{out / 'metrics.json'} was not written by this version of plap") from None
    console = make_console()
    console.print(
        text_table(
            ("method", "uses", metric.label + (" %" if metric.share else "")),
            rows,
            title=title,
            left=("method", "uses"),
        )
    )
    print_line(console, f"Page: {out / 'report.html'}", wrap=False)
