"""``plap bench``: how fast, how lean, against what."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

import plap
from plap.cli.shared import check_writable, write_atomically
from plap.errors import InputError
from plap.reporting.terminal import make_console, text_table

bench_app = typer.Typer(help="Measure plap on this machine.", no_args_is_help=True)


@bench_app.command()
def propagation(
    root: Annotated[str | None, typer.Option(help="Folder of the benchmark datasets.")] = None,
    large: Annotated[bool, typer.Option("--large", help="Also a graph of 50 million entries.")] = False,
    json_out: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Compare the operator with the textbook formulation, sparse products and PyG's GCN."""
    _measure("propagation", json_out, as_json, with_large=large, root=root)


@bench_app.command()
def solve(
    json_out: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Count the passes over the edges that each method of plap.solve needs to converge, and its failures."""
    _measure("solve", json_out, as_json)


@bench_app.command()
def scale(
    share: Annotated[
        float,
        typer.Option(min=0.001, max=1.0, help="Size of the large graph: this share of 100 million entries."),
    ] = 1.0,
    json_out: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Time and memory of the operator on a graph of 100 million entries, and the cost of a memory budget."""
    _measure("scale", json_out, as_json, share=share)


@bench_app.command()
def parts(
    root: Annotated[str | None, typer.Option(help="Folder of the benchmark datasets.")] = None,
    json_out: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Compare training in pieces (METIS parts) with the whole graph: accuracy and memory per step."""
    _measure("parts", json_out, as_json, root=root)


@bench_app.command()
def fit(
    root: Annotated[str | None, typer.Option(help="Folder of the benchmark datasets.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw accuracy against seconds into this PNG.")] = None,
    json_out: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Accuracy and time of plap fit on a fixed set of graphs."""
    if picture is not None:
        check_writable(picture, "--picture")
    _measure("fit", json_out, as_json, root=root, picture=picture)


@bench_app.command()
def tables(
    share: Annotated[
        float,
        typer.Option(min=0.001, max=1.0, help="Size of the tables: this share of a million nodes."),
    ] = 1.0,
    named_share: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Also read this share of 100 million edges with text ids."),
    ] = 0.0,
    json_out: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """A fit on Parquet tables of a million nodes, phase by phase: seconds and memory around training."""
    _measure("tables", json_out, as_json, share=share, named_share=named_share)


@bench_app.command()
def ddp_scaling(
    json_out: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Compare an epoch of training in pieces on two processes with one on a single process."""
    _measure("ddp_scaling", json_out, as_json)


@bench_app.command()
def gpu(
    device: Annotated[str, typer.Option(help="The GPU: cuda or cuda:N.")] = "cuda",
    large: Annotated[bool, typer.Option("--large", help="Also a graph of 50 million entries.")] = False,
    json_out: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Check the Triton backend on a GPU against the dense formula, measure it, and print one table to share.

    Exits with code 1 if a result differs from the dense formula by more than the tolerance.
    """
    result = _measure("gpu", json_out, as_json, device=device, large=large)
    if not result["verified"]:
        raise typer.Exit(1)


def _measure(name: str, json_out: Path | None, as_json: bool, **options: object) -> dict[str, Any]:
    """Run a benchmark, and write or print its numbers; its own ``markdown`` prints them where it has one."""
    if json_out is not None:
        check_writable(json_out, "--json-out")
    benchmark = _benchmark(name)
    result: dict[str, Any] = benchmark.run(**options)
    if json_out is not None:
        write_atomically(json_out, json.dumps(result, indent=1).encode() + b"\n", "--json-out")
    if as_json:
        print(json.dumps(result, indent=1))
    elif hasattr(benchmark, "markdown"):
        print(benchmark.markdown(result))
    else:
        _show(result)
    return result


def _benchmark(name: str) -> ModuleType:
    """A module of ``benchmarks/``, which lies beside ``src/`` in a checkout and is not installed."""
    folder = Path(plap.__file__).parents[2] / "benchmarks"
    if not (folder / f"{name}.py").is_file():
        raise InputError("plap bench needs a checkout of the project: its benchmarks/ folder is not here")
    # the problem graphs that `plap bench gpu` checks are those of the tests
    sys.path[:0] = [str(folder), str(folder.parent / "tests")]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(f"plap bench {name} needs the package {error.name}: see the extra 'dev'") from None


def _show(result: dict[str, Any]) -> None:
    console = make_console()
    for title, value in result.items():
        rows = value if isinstance(value, list) else [value] if isinstance(value, dict) else None
        if rows is None:
            continue
        columns = list(dict.fromkeys(key for row in rows for key in row))
        headings = [column.replace("_", " ") for column in columns]
        cells = ([_cell(row.get(column, "")) for column in columns] for row in rows)
        console.print(text_table(headings, cells, title=title))


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
