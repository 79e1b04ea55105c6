"""What several commands share: arguments, options, and files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from plap.atomic_file import write_atomic
from plap.errors import InputError

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
IdOption = Annotated[str | None, typer.Option("--id", help="Column of the nodes' ids.")]
LabelOption = Annotated[str | None, typer.Option(help="Column of the labels.")]
SourceOption = Annotated[str | None, typer.Option(help="Column of the edges' first ends.")]
TargetOption = Annotated[str | None, typer.Option(help="Column of the edges' second ends.")]
WeightOption = Annotated[str | None, typer.Option(help="Column of the edges' weights.")]
IgnoreOption = Annotated[
    list[str] | None, typer.Option(help="Column of the nodes that is not used; may be given several times.")
]
CategoricalOption = Annotated[
    list[str] | None,
    typer.Option(help="Column whose numbers are codes of categories; may be given several times."),
]
RawOption = Annotated[bool, typer.Option("--raw-features", help="Take numeric columns as they are.")]
UnknownOption = Annotated[
    str | None, typer.Option(help="Mark of an unknown label, besides an empty cell and -1.")
]
TaskOption = Annotated[
    str | None,
    typer.Option(help="Whether labels are classes or numbers (default: whichever they look like)."),
]
BadRowsOption = Annotated[
    str, typer.Option(help="error: refuse a row that cannot be used; drop: drop it and say how many.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def check_writable(path: Path, flag: str) -> None:
    """Refuse a file that could not be written; ``flag`` is what the user named it with."""
    folder = path.absolute().parent
    if path.is_dir():
        raise InputError(f"{flag}: {path} is a folder, not a file")
    if not folder.is_dir():
        raise InputError(f"{flag}: {path} cannot be written, there is no folder {folder}")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"{flag}: {path} cannot be written, it is not permitted")


def write_atomically(path: Path, content: bytes, flag: str) -> None:
    """Write a file whole or not at all; ``flag`` is what the user named it with."""
    check_writable(path, flag)
    try:
        write_atomic(path, content)
    except OSError as error:
        raise InputError(f"{flag}: {path} cannot be written ({error.strerror})") from None
