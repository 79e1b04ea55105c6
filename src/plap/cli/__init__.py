"""The ``plap`` command: one module a subcommand; what is slow to import is imported inside them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from plap import __version__
from plap.cli.bench import app as bench_app
from plap.cli.data import data_app
from plap.cli.demo import demo
from plap.cli.fit import fit
from plap.cli.inspect import inspect
from plap.cli.predict import predict
from plap.cli.report import report
from plap.cli.reproduce import reproduce
from plap.errors import InputError


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"plap {__version__}")
        raise typer.Exit


app = typer.Typer(
    help="p-Laplacian graph neural networks: for graphs whose edges may lie.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (demo, fit, predict, inspect, report, reproduce):
    app.command()(command)
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench")


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """p-Laplacian graph neural networks: for graphs whose edges may lie."""


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence on stderr and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"plap: {error}", file=sys.stderr)
        sys.exit(2)
