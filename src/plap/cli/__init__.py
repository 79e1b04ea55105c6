"""The ``plap`` command: flags → one call of the library → printing.

Every subcommand is a module of its own. Only the one that is asked for is imported, so that ``plap --help``
and ``plap report`` do not wait for what ``plap fit`` needs.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from plap import __version__
from plap.errors import InputError
from plap_command import NO_RESULT, NOTHING_WRITTEN, as_interrupt


class _Entry(NamedTuple):
    """A subcommand: where it is defined, and what the list of commands says about it."""

    attribute: str
    """The function of a command, or the Typer application of a group of commands."""
    summary: str


COMMANDS = {
    "demo": _Entry("demo", "Fit a noisy heterophilic graph and compare pGNN with baselines."),
    "fit": _Entry("fit", "Search for, train and evaluate a model on a partially labelled graph."),
    "predict": _Entry("predict", "Label the nodes of a graph with a model that plap fit found."),
    "inspect": _Entry("inspect", "Describe a graph, or what a fitted model learned about it."),
    "attack": _Entry(
        "attack", "Measure how a fitted model's accuracy falls when an adversary changes edges."
    ),
    "export": _Entry("export", "Write a fitted model as a program that runs without plap."),
    "report": _Entry("report", "Show the scores of a finished fit and the path of its report."),
    "reproduce": _Entry(
        "reproduce", "Run a table of the paper, or one of your own, and show it beside published numbers."
    ),
    "data": _Entry("data_app", "The benchmark datasets and their files."),
    "bench": _Entry("bench_app", "Measure plap on this machine."),
}
"""By name, in the order of ``plap --help``; the module in this package has the same name."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does; an end without a result is one sentence and exit code 4."""
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, as_interrupt)
    try:
        yield
    except KeyboardInterrupt:
        print(NOTHING_WRITTEN, file=sys.stderr)
        sys.exit(NO_RESULT)
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _as_switches(parameters: list[Any]) -> list[Any]:
    """Parameters whose switches show no ``<bool>`` in a help text, because they take no value."""
    for parameter in parameters:
        if getattr(parameter, "is_bool_flag", False):
            parameter.metavar = ""
    return parameters


class _Subgroup(TyperGroup):
    """A group of commands."""

    def get_params(self, *arguments: Any) -> list[Any]:
        """Its options."""
        return _as_switches(super().get_params(*arguments))


class _Group(_Subgroup):
    """The whole command line; Typer itself ends an interrupt with exit code 130 and without a word."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse what comes before the subcommand."""
        with interruptible():
            return super().make_context(*arguments, **options)


class _Command(TyperCommand):
    """A subcommand, in the same way."""

    def get_params(self, *arguments: Any) -> list[Any]:
        """Its arguments and options."""
        return _as_switches(super().get_params(*arguments))

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse its arguments."""
        with interruptible():
            return super().make_context(*arguments, **options)


def application(wanted: str | None = None) -> typer.Typer:
    """The whole command line, of which only the subcommand ``wanted`` is imported.

    The others are there by name and summary, for the list of commands and for "did you mean".
    """
    app = typer.Typer(
        cls=_Group,
        help="p-Laplacian graph neural networks for graphs with unreliable edges.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(_options)
    for name, entry in COMMANDS.items():
        if name != wanted:
            app.command(name, help=entry.summary)(_not_loaded)
            continue
        loaded = getattr(import_module(f"plap.cli.{name}"), entry.attribute)
        if isinstance(loaded, typer.Typer):
            for subcommand in loaded.registered_commands:
                subcommand.cls = _Command
            app.add_typer(loaded, name=name, cls=_Subgroup)
        else:
            app.command(name, cls=_Command, help=_paragraphs(loaded))(loaded)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's mistake ends in one sentence on stderr and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    wanted = next((word for word in given if not word.startswith("-")), None)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter shows a question mark
    try:
        try:
            with interruptible():
                command = get_command(application(wanted))
            command(given)
        finally:
            sys.stdout.flush()
    except InputError as error:
        print(f"plap: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG):
            raise
        print(f"plap: the output cannot be written ({error.strerror})", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not flushed there
        sys.exit(2)


def _paragraphs(command: Callable[..., None]) -> str:
    """The docstring with one line per paragraph, for a terminal of any width."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", getdoc(command) or "")


def _not_loaded() -> None:
    raise AssertionError("a subcommand that was not asked for cannot be run")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"plap {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """p-Laplacian graph neural networks for graphs with unreliable edges."""
