"""The page itself."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from plap.report import figures
from plap.report.content import FitReport

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment


def render(report: FitReport) -> str:
    """One HTML file with everything in it: no network, no other file, light and dark, phone and desk."""
    columns = list(dict.fromkeys(name for trial in report.trials for name in trial.config))
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            trials=sorted(report.trials, key=lambda trial: (not trial.chosen, -trial.score)),
            trial_columns=columns,
            scores=figures.score_figure(report.scores) if report.scores else None,
            confusion=figures.confusion_figure(report.confusion) if report.confusion else None,
            loss=figures.loss_figure(report.curves) if report.curves else None,
            validation=figures.validation_figure(report.curves) if report.curves else None,
            search=figures.search_figure(report.trials),
        )
    )


@cache
def _environment() -> Environment:
    from jinja2 import PackageLoader  # noqa: PLC0415

    return environment(PackageLoader("plap.report"))


def environment(loader: BaseLoader) -> Environment:
    """How every page of plap is rendered: escaped, nothing undefined, numbers as people write them."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415

    made = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {"percent": percent, "number": number, "count": count}
    return made


def percent(value: float | None) -> str:
    """A share as people write it.

    Examples
    --------
    >>> percent(0.8627)
    '86.3 %'
    """
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def number(value: object) -> str:
    """A setting or a weight, short."""
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "–"
    return str(value)


def count(value: int) -> str:
    r"""A count with thin spaces.

    Examples
    --------
    >>> count(1234567).split("\N{NARROW NO-BREAK SPACE}")
    ['1', '234', '567']
    """
    return f"{value:,}".replace(",", "\u202f")
