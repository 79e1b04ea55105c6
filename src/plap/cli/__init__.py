"""The ``plap`` command: one module a subcommand, each imported only when it is asked for by name."""

from __future__ import annotations

import sys

import typer

from plap.cli.bench import app as bench_app
from plap.cli.data import data_app
from plap.cli.demo import demo
from plap.cli.fit import fit
from plap.cli.inspect import inspect
from plap.cli.predict import predict
from plap.cli.report import report
from plap.errors import InputError

app = typer.Typer(
    help="p-Laplacian graph neural networks: for graphs whose edges may lie.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (demo, fit, predict, inspect, report):
    app.command()(command)
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench")


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence on stderr and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"plap: {error}", file=sys.stderr)
        sys.exit(2)
