"""``plap data``: which benchmarks there are, and whether their files are available and sound."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from plap.data.benchmarks.files import holding_folder, missing_sentence, search_folders, verify_benchmark
from plap.data.benchmarks.registry import BENCHMARKS, find
from plap.errors import InputError
from plap.reporting.number_text import counted
from plap.reporting.terminal import make_console, text_table

data_app = typer.Typer(
    help="The benchmark datasets and their files.",
    no_args_is_help=True,
)

Root = Annotated[
    Path | None, typer.Option(help="Data folder to look in before $PLAP_DATA and the user's cache.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@data_app.command("list")
def list_benchmarks(root: Root = None, as_json: Json = False) -> None:
    """Show every benchmark, its size and whether its files are available."""
    rows: list[dict[str, Any]] = []
    for benchmark in BENCHMARKS.values():
        folder = holding_folder(benchmark, root)
        statistics = vars(benchmark.statistics) if benchmark.statistics else {}
        rows.append({"name": benchmark.name, **statistics, "folder": None if folder is None else str(folder)})
    folders = [str(folder) for folder in search_folders(root)]
    if as_json:
        print(json.dumps({"folders": folders, "benchmarks": rows}, indent=2))
        return
    counts = ("nodes", "edges", "features", "classes")
    _table(
        f"Benchmarks, looked for in {', '.join(folders)}",
        ("name", *counts, "available"),
        (
            (
                row["name"],
                *(f"{row[key]:,}" if key in row else "" for key in counts),
                "yes" if row["folder"] else "no",
            )
            for row in rows
        ),
    )
    print("Edges are undirected, without self-loops; csbm:phi=... needs no files.")


@data_app.command("verify")
def verify_files(
    name: Annotated[
        str | None, typer.Argument(help="One benchmark (default: all that are available).")
    ] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Check files against the SHA-256 of the published ones; exit code 2 if one differs."""
    benchmarks = list(BENCHMARKS.values()) if name is None else [find(name)]
    results = [verify_benchmark(benchmark, root) for benchmark in benchmarks]
    if as_json:
        print(json.dumps([{**vars(result), "status": result.status} for result in results], indent=2))
    elif any(result.folder for result in results):
        _table(
            "Files against their published SHA-256",
            ("name", "status", "files", "folder"),
            (
                (result.name, result.status, str(len(result.sums)), result.folder or "")
                for result in results
                if result.status != "missing"
            ),
        )
    wrong = [sentence for result in results for sentence in result.wrong]
    if wrong:
        differ = "differs" if len(wrong) == 2 else "differ"
        more = f" ({counted(len(wrong) - 1, 'more file')} {differ})" if len(wrong) > 1 else ""
        raise InputError(wrong[0] + more)
    if name is not None and results[0].status == "missing":
        raise InputError(missing_sentence(benchmarks[0], root))
    if all(result.status == "missing" for result in results):
        folders = ", ".join(str(folder) for folder in search_folders(root))
        raise InputError(f"there is nothing to verify: no benchmark has all its files in {folders}")


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:

    make_console().print(text_table(columns, rows, title=title, left=("name", "status", "folder")))
