"""The pages, one HTML file each: that of a fit with what to do next, and what ``plap attack`` adds to it."""

from __future__ import annotations

import re
from functools import cache
from operator import itemgetter

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from plap.insight.attack import AttackCurve, AttackPoint
from plap.reporting.fit_content import FitReport, Score
from plap.reporting.node_sections import NodeSections, map_figure, star_figure
from plap.reporting.number_text import count, counted, joined, number, percent, shown
from plap.reporting.palette import PAGE_COLOURS, TRAINING, VALIDATION
from plap.reporting.svg_figures import (
    loss_figure,
    matrix_figure,
    mean_figure,
    score_figure,
    search_figure,
    validation_figure,
)
from plap.reporting.table_content import Panel, Point, Series
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


_WIDE = 0.1
"""Width of a confidence interval from which on a score says little."""
_FEW = 10
"""Training labels of a class below which it is hard to learn."""
_DOUBTED = 0.1
"""Trust below which an edge is worth a look."""
_OFF = 0.05
"""Mean distance of probability and observed share from which on probabilities are a ranking only."""
_BETTER_WITHOUT = 0.005
_OF_INTERVAL = 0.25
"""Share of the confidence interval's width that a score must rise by for a column to be doubted."""
_UNCERTAIN = 0.6


def next_steps(report: FitReport, task: TaskSections) -> tuple[str, ...]:
    """Sentences, the most important first; each rests on a number of the page.

    Examples
    --------
    >>> from plap.reporting.fit_content import DatasetFacts
    >>> facts = DatasetFacts("tiny", 60, 90, 4, 2, 20, 20, 20)
    >>> scores = [Score("pGNN", 0.7, 0.5, 0.85), Score("MLP", 0.9, uses="features alone", differs=True)]
    >>> for step in next_steps(FitReport(facts, "", scores), TaskSections())[:2]:
    ...     print(step)
    Take MLP (features alone) for this data: it is significantly better.
    Label more nodes before comparing models: 20 held-out nodes leave an interval of 50.0 to 85.0 %.
    """
    found = [
        _choice(report),
        _size_of_test(report),
        _rare_classes(report),
        _edges(report),
        _neighbours(report),
        _probabilities(task),
        _columns(report),
        _labels(report),
    ]
    return (*(sentence for sentence in found if sentence), *_commands(report))


def _choice(report: FitReport) -> str:
    if not report.scores:
        return ""
    model, *others = report.scores
    better = [s for s in others if s.differs and (s.value > model.value) == report.higher_is_better]
    if better:
        best = (max if report.higher_is_better else min)(better, key=lambda score: score.value)
        return f"Take {_named(best)} for this data: it is significantly better."
    equal = [_named(score) for score in others if score.differs is False and "and" not in score.uses]
    if equal:
        return f"The difference from {joined(equal)} is not significant: a simpler method may do."
    return ""


def _named(score: Score) -> str:
    return f"{score.name} ({score.uses})" if score.uses else score.name


def _size_of_test(report: FitReport) -> str:
    if not report.scores or not report.share:
        return ""
    low, high = report.scores[0].low, report.scores[0].high
    if low is None or high is None or high - low < _WIDE:
        return ""
    nodes = counted(report.dataset.test, "held-out node")
    leave = "leaves" if report.dataset.test == 1 else "leave"
    return (
        f"Label more nodes before comparing models: {nodes} {leave} an interval of "
        f"{100 * low:.1f} to {100 * high:.1f} %."
    )


def _rare_classes(report: FitReport) -> str:
    rare = [f"{row.name} ({row.train})" for row in report.per_class if row.train < _FEW]
    if not rare:
        return ""
    shown_ones = joined(rare[:5]) + (f" and {len(rare) - 5} more" if len(rare) > 5 else "")
    return f"Label more nodes of the classes with fewer than {_FEW} training labels: {shown_ones}."


def _edges(report: FitReport) -> str:
    few = [edge for edge in report.doubted_edges if edge.trust < _DOUBTED]
    if not few:
        return ""
    count = counted(len(few), "edge") + (" or more" if len(few) == len(report.doubted_edges) else "")
    sentence = f"Check the least trusted edges: {count} with a trust below {_DOUBTED}."
    if not report.per_class:  # plap inspect takes models of one class per node only
        return sentence
    return f"{sentence} “plap inspect OUT --edges-out edges.csv” ranks all of them."


def _neighbours(report: FitReport) -> str:
    found = report.neighbours
    if found is None or found.harmed <= found.helped:
        return ""
    return (
        f"Neighbours make more held-out nodes wrong ({found.harmed}) than right ({found.helped}): look for "
        "edges that should not be there, or compare with “plap fit --mu 100”, which all but ignores edges."
    )


def _probabilities(task: TaskSections) -> str:
    error = task.calibration_error
    if error is None or not task.calibration or error < _OFF:
        return ""
    return (
        f"Take probabilities as a ranking only: they are {percent(error)} off on average. More validation "
        "labels would calibrate them better."
    )


def _columns(report: FitReport) -> str:
    changes = {row.name: row.importance or 0.0 for row in report.columns}
    name, change = min(changes.items(), key=itemgetter(1), default=("", 0.0))
    if not report.share or not report.scores:
        return ""
    low, high = report.scores[0].low, report.scores[0].high
    width = 0.0 if low is None or high is None else high - low
    if -change < max(_BETTER_WITHOUT, _OF_INTERVAL * width):
        return ""
    return (
        f"Try “--ignore {name}”: with the values of this column shuffled, the {report.metric} rose by "
        f"{-100 * change:.1f} percentage points."
    )


def _labels(report: FitReport) -> str:
    if not report.dataset.unlabelled or not report.uncertain_nodes:
        return ""
    if min(row.probability for row in report.uncertain_nodes) >= _UNCERTAIN:
        return ""
    return "If you can label more nodes, begin with the least certain ones."


def _commands(report: FitReport) -> list[str]:
    said = ["“plap predict OUT GRAPH” predicts for other tables with the same columns."]
    if report.attackable:
        said.append(
            "“plap attack OUT” measures how far the accuracy falls if an adversary changes some of the edges."
        )
    said.append("“plap export OUT model.pt2” writes the model as a program that runs without plap.")
    return said


_BEFORE = '<section id="provenance">'
"""Where the section goes; at the end of a page without it."""


def with_attack_section(page: str, curve: AttackCurve) -> str:
    """The page of a fit with the curve on it, in place of an earlier curve of the same kind of attack."""
    name = f"attack-{_kind(curve)}"
    page = re.sub(rf'<section id="{name}">.*?</section>\s*', "", page, flags=re.DOTALL)
    before = _BEFORE if _BEFORE in page else "</main>"
    return page.replace(before, f"{attack_section(curve)}\n\n{before}", 1)


def attack_section(curve: AttackCurve) -> str:
    """The section itself: a caption, the curve and its numbers."""
    points = (AttackPoint(0.0, 0, curve.clean, curve.clean), *curve.points)
    series = (
        Series("adaptive attack", tuple(_point(p.budget, p.accuracy) for p in points), ()),
        Series("random edges", tuple(_point(p.budget, p.random) for p in points), ()),
    )
    panel = Panel("Attack", series)
    return render_template(
        "attack.html",
        anchor=f"attack-{_kind(curve)}",
        title=_TITLES[_kind(curve)],
        caption=caption(curve),
        whose="the node's edges" if curve.local else "the edges",
        figure=mean_figure(panel, (TRAINING, VALIDATION), large=False),
        points=points,
    ).strip()


_TITLES = {
    "evasion": "Under attack",
    "poisoning": "Under attack before training",
    "local": "Under attack on single nodes",
}


def caption(curve: AttackCurve) -> str:
    """What was attacked, and what the attacker knew.

    Examples
    --------
    >>> caption(AttackCurve(50, 0.9, (), poisoning=False, local=False))
    'An adversary who knows the model changes edges after training; 50 test nodes are judged.'
    """
    nodes, are = counted(curve.nodes, "test node"), "is" if curve.nodes == 1 else "are"
    who = "An adversary who knows the model changes edges"
    if curve.local:
        return f"{who} of one test node at a time, after training; {nodes} {are} judged."
    if curve.poisoning:
        return f"{who}, and the model is then retrained on the changed graph; {nodes} {are} judged."
    return f"{who} after training; {nodes} {are} judged."


def _kind(curve: AttackCurve) -> str:
    return "local" if curve.local else "poisoning" if curve.poisoning else "evasion"


def _point(budget: float, accuracy: float) -> Point:
    return Point(100 * budget, 100 * accuracy, 100 * accuracy, 100 * accuracy)
