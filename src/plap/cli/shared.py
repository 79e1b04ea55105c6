"""What several commands share: arguments, options, and files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from plap.atomic_file import write_atomic
from plap.errors import InputError

INPUT = "Input"
"""The group of options, in the help of a command, that say where a graph is and how its tables are read."""

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A folder with tables of edges and nodes (.csv, .tsv or .parquet), an .npz file, a table of "
        "edges, or the name of a benchmark.",
    ),
]
NodesOption = Annotated[
    Path | None, typer.Option(help="Table of nodes, if GRAPH is a table of edges.", rich_help_panel=INPUT)
]
RootOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder to search for benchmarks before $PLAP_DATA and the cache.", rich_help_panel=INPUT
    ),
]
OutOption = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for the result; an earlier result in it is replaced.")
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id", help="Column with the ids of the nodes (default: id, node or node_id).", rich_help_panel=INPUT
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        help="Column with the labels (default: label or class, or else target).", rich_help_panel=INPUT
    ),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        help="Column with the source of each edge (default: source, src or from).", rich_help_panel=INPUT
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        help="Column with the target of each edge (default: target, dst or to).", rich_help_panel=INPUT
    ),
]
WeightOption = Annotated[
    str | None,
    typer.Option(help="Column with the weight of each edge (default: weight or w).", rich_help_panel=INPUT),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of the node table to leave out; may be given several times.", rich_help_panel=INPUT
    ),
]
CategoricalOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Column whose numbers are codes of categories; may be given several times.",
        rich_help_panel=INPUT,
    ),
]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw-features", help="Use numeric columns as they are, and no others.", rich_help_panel=INPUT
    ),
]
UnknownOption = Annotated[
    str | None,
    typer.Option(
        help="Value that marks an unknown label, in place of -1, N/A, ? and so on; an empty cell is always "
        "unknown.",
        rich_help_panel=INPUT,
    ),
]
TaskOption = Annotated[
    str | None,
    typer.Option(help="Read labels as classes or as numbers (default: inferred).", rich_help_panel=INPUT),
]
BadRowsOption = Annotated[
    str | None,
    typer.Option(
        help="What to do about rows that cannot be used: error (refuse the table) or drop (leave them out "
        "and report how many). Default: error; for a fitted model, as in its fit.",
        rich_help_panel=INPUT,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")]


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
