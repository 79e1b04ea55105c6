"""The section that ``plap attack`` adds to the page of a fit."""

from __future__ import annotations

import re

from plap.insight.attack import AttackCurve, AttackPoint
from plap.reporting.html_page import render_template
from plap.reporting.number_text import counted
from plap.reporting.palette import TRAINING, VALIDATION
from plap.reporting.svg_figures import mean_figure
from plap.reporting.table_content import Panel, Point, Series

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
    nodes = counted(curve.nodes, "test node")
    who = "An adversary who knows the model changes edges"
    if curve.local:
        return f"{who} of one test node at a time, after training; {nodes}, attacked one by one, are judged."
    if curve.poisoning:
        return f"{who}, and the model is then trained anew on the changed graph; {nodes} are judged."
    return f"{who} after training; {nodes} are judged."


def _kind(curve: AttackCurve) -> str:
    return "local" if curve.local else "poisoning" if curve.poisoning else "evasion"


def _point(budget: float, accuracy: float) -> Point:
    return Point(100 * budget, 100 * accuracy, 100 * accuracy, 100 * accuracy)
