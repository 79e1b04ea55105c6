"""The report of a fit on the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from plap.reporting.fit_content import FitReport, Score
from plap.reporting.number_text import number
from plap.reporting.terminal import make_console, print_line, text_table


def show_fit(report: FitReport, folder: Path, console: Console | None = None) -> None:
    """Print the scores side by side, the finding, and where the files are."""
    console = console or make_console()
    headings = ("method", "uses", f"{report.metric} %", "95 % interval", "seconds")
    console.print(text_table(headings, map(_row, report.scores), left=("method", "uses")))
    print_line(console, report.finding)
    for note in report.dataset.notes:
        print_line(console, f"· {note}")
    chosen = ", ".join(f"{name} = {number(value)}" for name, value in report.chosen.items())
    print_line(console, f"Selected hyperparameters: {chosen}")
    place = f"Predictions, model and page are in {folder}: open {folder / 'report.html'}"
    print_line(console, place, wrap=False)


def _row(score: Score) -> tuple[str, ...]:
    interval = (
        "" if score.low is None or score.high is None else f"{100 * score.low:.1f} to {100 * score.high:.1f}"
    )
    seconds = "" if score.seconds is None else f"{score.seconds:.1f}"
    return score.name, score.uses, f"{100 * score.value:.1f}", interval, seconds
