"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A folder with edges and nodes (.csv, .tsv, .parquet), an .npz, an edge file or a benchmark.",
    ),
]
NodesOption = Annotated[Path | None, typer.Option(help="Table of nodes, if GRAPH is a table of edges.")]
RootOption = Annotated[
    Path | None, typer.Option(help="Data folder to look in before $PLAP_DATA and the user's cache.")
]
OutOption = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for the results; an earlier result is replaced.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
