"""The page of a fit."""

from __future__ import annotations

from plap.reporting.fit_content import FitReport
from plap.reporting.html_page import render_template
from plap.reporting.palette import TRAINING, VALIDATION
from plap.reporting.svg_figures import matrix_figure, score_figure, search_figure
from plap.reporting.svg_lines import loss_figure, validation_figure


def fit_page(report: FitReport) -> str:
    """The report as one HTML file that needs no network and no other file."""
    columns = list(dict.fromkeys(name for trial in report.trials for name in trial.config))
    return render_template(
        "fit.html",
        report=report,
        trials=sorted(report.trials, key=lambda trial: (not trial.chosen, -trial.score)),
        trial_columns=columns,
        scores=score_figure(report.scores) if report.scores else None,
        confusion=matrix_figure(report.confusion) if report.confusion else None,
        loss=loss_figure(report.runs) if report.runs else None,
        validation=validation_figure(report.runs) if report.runs else None,
        line_styles={"training": TRAINING, "validation": VALIDATION},
        search=search_figure(report.trials),
    )
