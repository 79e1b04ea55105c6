"""The pages: one HTML file each, with everything in it."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from plap.reporting.fit_content import FitReport
from plap.reporting.next_steps import next_steps
from plap.reporting.node_sections import NodeSections, map_figure, star_figure
from plap.reporting.number_text import count, number, percent, shown
from plap.reporting.palette import PAGE_COLOURS, TRAINING, VALIDATION
from plap.reporting.svg_figures import matrix_figure, score_figure, search_figure
from plap.reporting.svg_lines import loss_figure, validation_figure
from plap.reporting.task_sections import TaskSections, task_figures


def render_template(name: str, **content: object) -> str:
    """Fill in a template of ``reporting/templates``; a name that the template misses is an error."""
    return _environment().get_template(name).render(**content)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("plap.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": number, "count": count, "shown": shown}
    environment.filters["commands"] = with_commands
    environment.globals["page_colours"] = PAGE_COLOURS
    return environment


def with_commands(sentence: str) -> Markup:
    """The sentence with what is quoted in it and can be typed, commands and flags, as code.

    Examples
    --------
    >>> with_commands("“plap report OUT” shows it again; it is called “p < 2”.")
    Markup('<code>plap report OUT</code> shows it again; it is called “p &lt; 2”.')
    """
    return Markup(re.sub("“((?:plap |--)[^”]*)”", r"<code>\1</code>", str(escape(sentence))))


def fit_page(
    report: FitReport, sections: TaskSections | None = None, nodes: NodeSections | None = None
) -> str:
    """The report as one HTML file that needs no network and no other file.

    ``sections`` are the parts that depend on the task, such as ROC curves or residuals; ``nodes`` are those
    about single nodes.
    """
    sections, nodes = sections or TaskSections(), nodes or NodeSections()
    sign = -1 if report.higher_is_better else 1
    columns = list(dict.fromkeys(name for trial in report.trials for name in trial.config))
    return render_template(
        "fit.html",
        report=report,
        task=sections,
        figures=task_figures(sections),
        next_steps=next_steps(report, sections) if report.scores else (),
        nodes=nodes,
        stories=[(story, star_figure(story, nodes)) for story in nodes.stories],
        map=map_figure(nodes) if nodes.map else None,
        trials=sorted(report.trials, key=lambda trial: (not trial.chosen, sign * trial.score)),
        trial_columns=columns,
        scores=score_figure(report.scores, share=report.share) if report.scores else None,
        confusion=matrix_figure(report.confusion) if report.confusion else None,
        loss=loss_figure(report.runs) if report.runs else None,
        validation=validation_figure(report.runs, share=report.share) if report.runs else None,
        line_styles={"training": TRAINING, "validation": VALIDATION},
        search=search_figure(report.trials, share=report.share),
    )
