"""``plap reproduce``: a table of the paper on this machine, beside the published numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plap.cli.reproduce_figure import draw_figure
from plap.cli.shared import write_atomically
from plap.errors import InputError
from plap.reporting.figures import FIGURES

if TYPE_CHECKING:
    from plap.experiments.executors import Executor
    from plap.experiments.outcome import TableResult
    from plap.experiments.runner import Announce, Status

_STOPPED = 130


def reproduce(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="A table or a picture of the paper, or a TOML file.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder for the results: the store of all runs, and a report a table."
        ),
    ] = Path("reproduction"),
    only: Annotated[
        list[str] | None,
        typer.Option(help="dataset=NAME,model=NAME: these columns, these rows; repeat it for more."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs a cell, instead of the table's own number.", min=1)
    ] = None,
    grid: Annotated[str | None, typer.Option(help="full (the paper's) or small (a part of it).")] = None,
    max_epochs: Annotated[
        int | None, typer.Option(help="At most so many epochs a run (1000).", min=1)
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Epochs without improvement that end a run (200).", min=1)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: three runs, a small grid, fewer epochs.")
    ] = False,
    protocol: Annotated[
        str | None, typer.Option(help="paper or sound; a table of the paper has its own, other tables sound.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one a core by default.", min=1)] = None,
    executor: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster; without one Ray runs here.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of the benchmark data sets.")] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train nothing, show what the store has.")
    ] = False,
    list_tables: Annotated[
        bool, typer.Option("--list", help="Show the tables and pictures, and exit.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Run a table of the paper and show it beside the published numbers; stop and go on at any moment.

    The name of a picture draws it instead: PNG, SVG, and its numbers as CSV.
    """
    if list_tables:
        _show_tables(as_json=as_json)
        return
    if table is None:
        raise InputError("which table? `plap reproduce --list` shows them")
    if table in FIGURES:
        draw_figure(
            table, out, only or [],
            seeds=runs, epochs=max_epochs, quick=quick, root=root, as_json=as_json,
        )  # fmt: skip
        return
    from plap.experiments.assembly import assemble  # noqa: PLC0415
    from plap.experiments.plan import Effort, Selection, make_cells  # noqa: PLC0415
    from plap.experiments.protocol import find_protocol  # noqa: PLC0415
    from plap.experiments.runner import check_all_failed, run_cells  # noqa: PLC0415
    from plap.experiments.store import Store  # noqa: PLC0415
    from plap.experiments.tables import load_table  # noqa: PLC0415

    wanted = load_table(table)
    rules = find_protocol(protocol or wanted.protocol).name
    effort = Effort.of(
        wanted, runs=runs, grid=grid, max_epochs=max_epochs, patience=patience, quick=quick,  # type: ignore[arg-type]
    )  # fmt: skip
    cells = make_cells(wanted, rules, effort, Selection.parse(only or []))
    if not cells:
        raise InputError("--only leaves no cell of the table")
    alone = wanted.measure == "time"
    trainer = None if report_only else _executor(executor, address, workers, root, alone=alone)
    place = out / "runs.sqlite"
    if report_only and not place.is_file():
        raise InputError(f"--report-only: there is no store {place}")
    errors: list[str] = []
    with Store(place) as store:
        problems: dict[tuple[str, str], str] = {}
        if trainer is not None:
            with _progress(wanted.name, quiet=quiet or as_json) as announce:
                try:
                    problems = run_cells(cells, store, trainer, announce, errors.append)
                except KeyboardInterrupt:
                    _write(assemble(wanted, rules, effort, cells, store), out)
                    typer.echo(
                        "Stopped. What has ended is kept; the same command goes on from here.", err=True
                    )
                    raise typer.Exit(_STOPPED) from None
        result = assemble(wanted, rules, effort, cells, store, problems)
    _write(result, out)
    if errors:
        log = out / f"{result.name}-errors.log"
        write_atomically(log, "\n\n".join([*errors, ""]).encode(), "--out")
        typer.echo(f"Tracebacks are in {log}.", err=True)
    check_all_failed(problems, cells)
    if as_json:
        print(json.dumps(_plain(result), indent=1))
    else:
        _show(result, out)
    if problems:
        raise typer.Exit(1)


def _executor(
    name: str, address: str | None, workers: int | None, root: Path | None, *, alone: bool
) -> Executor:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if name == "local":
        from plap.experiments.local_processes import LocalProcesses  # noqa: PLC0415

        if address is not None:
            raise InputError("--address goes with --executor ray")
        return LocalProcesses(1, cores, root) if alone else LocalProcesses(workers or cores, 1, root)
    if name == "ray":
        from plap.experiments.ray_cluster import RayCluster  # noqa: PLC0415

        if alone:
            raise InputError("running times are measured by one process on this machine, not by Ray")
        return RayCluster(address, workers or cores, root)
    raise InputError(f"--executor must be local or ray, not {name!r}")


@contextmanager
def _progress(name: str, *, quiet: bool) -> Iterator[Announce | None]:
    """A bar on stderr: runs, the time left, and the cell that is being worked on."""
    if quiet:
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[runs]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[cell]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        bar = bars.add_task(name, total=1.0, runs="", cell="starting")

        def announce(status: Status) -> None:
            bars.update(
                bar, completed=status.done, runs=f"{status.finished}/{status.runs} runs", cell=status.message
            )

        yield announce


def _write(result: TableResult, out: Path) -> None:
    from plap.experiments.table_report import table_report  # noqa: PLC0415
    from plap.reporting.table_files import table_files  # noqa: PLC0415

    for name, content in table_files(table_report(result)).items():
        write_atomically(out / name, content, "--out")


def _show(result: TableResult, out: Path) -> None:
    from plap.experiments.table_report import table_report  # noqa: PLC0415
    from plap.reporting.table_terminal import show_table  # noqa: PLC0415
    from plap.reporting.terminal import make_console, print_line  # noqa: PLC0415

    console = make_console()
    show_table(table_report(result), console)
    print_line(console, f"Page: {out / (result.name + '.html')}", wrap=False)


def _show_tables(*, as_json: bool) -> None:
    from plap.experiments.tables import load_table, table_names  # noqa: PLC0415

    tables = [load_table(name) for name in table_names()]
    if as_json:
        listed = [
            {"name": t.name, "title": t.title, "models": t.models, "datasets": t.datasets, "runs": t.runs}
            for t in tables
        ]
        figures = [{"name": figure.name, "title": figure.title} for figure in FIGURES.values()]
        print(json.dumps({"tables": listed, "figures": figures}, indent=1))
        return
    from plap.reporting.terminal import make_console, text_table  # noqa: PLC0415

    console = make_console()
    headings = ("name", "title", "models", "datasets", "runs")
    rows = ((t.name, t.title, str(len(t.models)), str(len(t.datasets)), str(t.runs)) for t in tables)
    console.print(text_table(headings, rows, title="Tables of the paper", left=("name", "title")))
    pictures = ((figure.name, figure.title) for figure in FIGURES.values())
    console.print(text_table(("name", "title"), pictures, title="Pictures", left=("name", "title")))


def _plain(result: TableResult) -> dict[str, Any]:
    """For JSON."""
    return {
        "table": result.name,
        "protocol": result.protocol,
        "unit": result.unit,
        "rules": result.rules,
        "cells": [
            {
                "model": cell.model, "dataset": cell.dataset, "runs": len(cell.values), "mean": cell.mean,
                "std": cell.deviation, "interval": cell.interval, "mark": result.mark(cell),
                "published": _published(cell.published), "difference": cell.difference,
                "agreement": result.agreement(cell),
                "config": cell.config, "tried": cell.tried, "grid": cell.grid,
                "not_finite": cell.not_finite, "problem": cell.problem,
            }
            for cell in result.cells
        ],
    }  # fmt: skip


def _published(cell: Any) -> dict[str, Any] | None:
    if cell is None:
        return None
    return {
        "mean": None if cell.mean is None else float(cell.mean),
        "plus_minus": None if cell.plus_minus is None else float(cell.plus_minus),
        "out_of_memory": cell.out_of_memory,
    }
