"""``plap reproduce``: a table of the paper, or another one, on this machine, beside the published numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from plap.cli.progress import duration
from plap.errors import InputError
from plap.experiments import reproduction
from plap.experiments.all_tables import reproduce_all, tables_by_cost
from plap.experiments.estimation import Estimate, estimate
from plap.experiments.plan import Selection
from plap.experiments.runner import ReportProgress, TableProgress
from plap.experiments.tables import load_table, table_names
from plap.reporting.figures import FIGURES, write_figure
from plap.reporting.terminal import make_console, print_line, show_table, text_table

_STOPPED = 130
_ALL = "all"
"""In place of a table's name: every table whose files are there."""


def reproduce(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE",
            help="A table or figure (see --list), all for every table, or a TOML file with a table.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder for the results: the store of all runs and the reports."),
    ] = Path("reproduction"),
    only: Annotated[
        list[str] | None,
        typer.Option(help="dataset=NAME,model=NAME: only these columns and rows; may be repeated."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs per cell (default: as the table says).", min=1)
    ] = None,
    grid: Annotated[str | None, typer.Option(help="full (the paper's grid) or small (a part of it).")] = None,
    max_epochs: Annotated[
        int | None, typer.Option(help="Maximum number of epochs per run (default: 1000).", min=1)
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(help="Epochs without improvement after which a run ends (default: 200).", min=1),
    ] = None,
    search_epochs: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of epochs per run of the search (default: 1000; small: 200).", min=1
        ),
    ] = None,
    finalists: Annotated[
        int | None,
        typer.Option(help="Train the N best candidates with several seeds before choosing one.", min=1),
    ] = None,
    finalist_seeds: Annotated[
        int | None, typer.Option(help="Seeds per finalist of a search (default: 3).", min=1)
    ] = None,
    stopping: Annotated[
        str | None,
        typer.Option(
            help="When the runs after the search end: best (--patience epochs after the best one), progress "
            "(a falling validation loss counts too) or published (as in the paper's code, after "
            "--max-epochs). Default: published in the paper's tables unless --patience or --quick is given.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: three runs, a small grid, fewer epochs.")
    ] = False,
    protocol: Annotated[
        str | None,
        typer.Option(help="Rules for splits and data: paper, sound or masks (default: the table's own)."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes (default: one per core).", min=1)
    ] = None,
    executor: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster (default: start one on this machine).")
    ] = None,
    device: Annotated[
        str, typer.Option(help="Where every process trains: auto, cpu, cuda, cuda:N or mps.")
    ] = "cpu",
    root: Annotated[
        Path | None, typer.Option(help="Folder to search for benchmarks before $PLAP_DATA and the cache.")
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train nothing; report the stored runs.")
    ] = False,
    publish: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write the runs of finished cells to FOLDER/TABLE.parquet."),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Train nothing; show what was published in FOLDER."),
    ] = None,
    only_estimate: Annotated[
        bool,
        typer.Option(
            "--estimate", help="Train nothing; time a few epochs of every cell and show how long it takes."
        ),
    ] = False,
    list_tables: Annotated[
        bool, typer.Option("--list", help="Show the tables and figures, and exit.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Run a table of the paper, or one of your own, and show it beside published numbers.

    It may be stopped at any time; the same command continues. The name of a figure draws it instead, as PNG
    and SVG, and writes its numbers as CSV. Exit codes: 0 complete, 1 cells are missing, 2 bad input, 130
    stopped.
    """
    if list_tables:
        _show_tables(as_json=as_json)
        return
    if table is None:
        raise InputError("which table? `plap reproduce --list` shows them")
    if table in FIGURES:
        options = {"seeds": runs, "epochs": max_epochs, "root": root}
        given = {name: value for name, value in options.items() if value is not None}
        _show_files(
            table, write_figure(table, out, datasets=_datasets(only or []), quick=quick, **given), as_json
        )
        return
    effort: dict[str, Any] = {
        "runs": runs, "grid": grid, "max_epochs": max_epochs, "patience": patience,
        "search_epochs": search_epochs, "finalists": finalists, "finalist_seeds": finalist_seeds,
        "stopping": stopping, "quick": quick, "protocol": protocol,
    }  # fmt: skip
    if only_estimate:
        names = list(tables_by_cost(out=out, root=root, **effort)) if table == _ALL else [table]
        _show_estimates(
            [
                estimate(name, out=out, only=only or (), workers=workers, root=root, progress=told, **effort)
                for name in names
                for told in [None if quiet or as_json else _say]
            ],
            as_json=as_json,
        )
        return
    still = quiet or as_json or report_only or evidence is not None
    with _progress("all tables" if table == _ALL else table, quiet=still) as progress:
        wanted: dict[str, Any] = effort | {
            "out": out, "only": only or (), "workers": workers, "executor": executor, "address": address,
            "device": device, "root": root, "report_only": report_only, "evidence": evidence,
            "progress": progress,
        }  # fmt: skip
        outcomes = reproduce_all(**wanted) if table == _ALL else (reproduction.reproduce(table, **wanted),)
    _show_outcomes(outcomes, out, publish, as_json=as_json)


def _show_outcomes(
    outcomes: Sequence[reproduction.Outcome], out: Path, publish: Path | None, *, as_json: bool
) -> None:
    """Write the reports, then print them; the exit code says whether anything is missing."""
    for outcome in outcomes:
        outcome.write()
        if outcome.tracebacks:
            typer.echo(f"Tracebacks are in {out / outcome.error_log}.", err=True)
    if any(outcome.interrupted for outcome in outcomes):
        typer.echo("Stopped. Finished runs are kept; the same command continues from here.", err=True)
        raise typer.Exit(_STOPPED)
    if all(outcome.all_failed for outcome in outcomes):
        raise InputError(next(iter(outcomes[0].problems.values())))
    for outcome in outcomes if publish is not None else ():
        if not outcome.all_failed:
            typer.echo(f"Published: {outcome.publish(publish or out)}", err=True)
    if as_json:
        found = [outcome.to_dict() for outcome in outcomes]
        print(json.dumps(found[0] if len(found) == 1 else found, indent=1))
    else:
        console = make_console()
        for outcome in outcomes:
            show_table(outcome.report, console)
            print_line(console, f"Page: {out / (outcome.result.name + '.html')}", wrap=False)
    if any(outcome.problems for outcome in outcomes):
        raise typer.Exit(1)


def _say(cell: str) -> None:
    typer.echo(f"timing {cell}", err=True)


def _estimated(seconds: float, whole: Estimate, runs: int) -> str:
    """What runs take with all processes; a dash where none of them could be timed."""
    return "–" if runs and not seconds else duration(seconds / whole.workers)


def _show_estimates(found: Sequence[Estimate], *, as_json: bool) -> None:
    if as_json:
        plain = [each.to_dict() for each in found]
        print(json.dumps(plain[0] if len(plain) == 1 else plain, indent=1))
        return
    console = make_console()
    for each in found:
        rows = [
            (entry.dataset, str(entry.runs), *(_estimated(seconds, each, entry.runs) for seconds in ends))
            for entry in each.datasets
            for ends in [(entry.at_least, entry.at_most)]
        ]
        low, high = each.hours
        total = (
            (("all", str(each.runs), duration(3600 * low), duration(3600 * high)),) if len(rows) > 1 else ()
        )
        headings = ("dataset", "runs left", "at least", "at most")
        console.print(text_table(headings, [*rows, *total], title=each.table, left=("dataset",)))
        for reason in dict.fromkeys(each.problems.values()):
            print_line(console, f"! Not counted: {reason}.")
        processes = "1 process" if each.workers == 1 else f"{each.workers} processes"
        print_line(
            console,
            f"With {processes}, by timing a few epochs of every cell just now: at least if every run that "
            "may stop early stops as soon as its patience allows, at most if none does. Reading data is not "
            "counted.",
            style="dim",
        )
    if len(found) > 1:
        low, high = (sum(each.hours[end] for each in found) for end in (0, 1))
        print_line(console, f"All {len(found)} tables: {duration(3600 * low)} to {duration(3600 * high)}.")


@contextmanager
def _progress(name: str, *, quiet: bool) -> Iterator[ReportProgress | None]:
    """A bar on stderr, as soon as training starts: runs, the time left, and the cell that is trained."""
    if quiet:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[runs]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[cell]}"),
    )
    bars = Progress(*columns, console=Console(stderr=True))
    bar = bars.add_task(name, total=1.0, runs="", cell="")

    def show(status: TableProgress) -> None:
        runs = f"{status.finished}/{status.runs} runs"
        bars.update(bar, completed=status.done, runs=runs, cell=status.message)
        bars.start()

    try:
        yield show
    finally:
        if bars.live.is_started:
            bars.stop()


def _show_tables(*, as_json: bool) -> None:
    tables = [load_table(name) for name in table_names()]
    if as_json:
        listed = [
            {"name": t.name, "title": t.title, "models": t.models, "datasets": t.datasets, "runs": t.runs}
            for t in tables
        ]
        figures = [{"name": figure.name, "title": figure.title} for figure in FIGURES.values()]
        print(json.dumps({"tables": listed, "figures": figures}, indent=1))
        return
    console = make_console()
    headings = ("name", "title", "models", "datasets", "runs")
    rows = ((t.name, t.title, str(len(t.models)), str(len(t.datasets)), str(t.runs)) for t in tables)
    console.print(text_table(headings, rows, title="Tables", left=("name", "title")))
    drawn = ((figure.name, figure.title) for figure in FIGURES.values())
    console.print(text_table(("name", "title"), drawn, title="Figures", left=("name", "title")))


def _show_files(figure: str, written: Sequence[Path], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"figure": figure, "files": [str(path) for path in written]}, indent=1))
    else:
        print("\n".join(str(path) for path in written))


def _datasets(only: Sequence[str]) -> tuple[str, ...]:
    wanted = Selection.parse(only).wanted
    if "model" in wanted:
        raise InputError("only: a figure has its own models, so it takes dataset=NAME alone")
    return wanted.get("dataset", ())
