"""The parts of a page about single nodes: content, positions, and how they behave in a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import report_samples
from headless import DESK, PHONE, complaints, show
from plap.reporting.html_page import fit_page
from plap.reporting.node_sections import map_figure, star_figure

NODES = report_samples.nodes()
EVIL = "<script>alert(1)</script>\"'&"


def test_width_is_trust_and_colour_is_the_effect() -> None:
    story = NODES.stories[0]
    figure = star_figure(story, NODES)
    judged = [spoke for spoke in figure.spokes if spoke.judged]
    assert [spoke.width for spoke in judged] == sorted(spoke.width for spoke in judged)
    assert judged[0].width == 5.5, "a trust of 1 is chance"
    effects = [spoke.effect for spoke in figure.spokes]
    assert effects == ["against", "against", "neutral", "for", "for"]
    assert figure.spokes[3].name == "pape…me-3"
    assert "effect +5.0, trust 8" in figure.spokes[3].title
    assert figure.links == ((figure.spokes[0], figure.spokes[1]),)
    for spoke in figure.spokes:
        assert 0 < spoke.x < figure.width
        assert 0 < spoke.y < figure.height


def test_effects_of_numbers_have_their_unit() -> None:
    numbers = replace(NODES, share=False)
    story = replace(NODES.stories[0], prediction=120.0)
    assert numbers.effect(story, 100.0) == "+20"
    assert numbers.effect(story, 120.0) == "0.000"
    assert numbers.direction(story, 121.0) == "against"
    assert numbers.shown(1234.5) == "1,234"


def test_the_map_keeps_its_proportions_and_marks_errors() -> None:
    figure = map_figure(NODES)
    dots = [(name, dot) for _, name, _, group in figure.groups for dot in group]
    assert len(dots) == 40
    assert sum(dot.wrong for _, dot in dots) == NODES.wrong == 5
    place = {dot.title.split(":")[0]: (dot.x, dot.y) for _, dot in dots}
    one, other, third = NODES.map[0], NODES.map[9], NODES.map[17]
    scale = (place[other.name][0] - place[one.name][0]) / (other.x - one.x)
    assert place[third.name][1] - place[one.name][1] == pytest.approx(scale * (third.y - one.y), abs=0.3)
    wrong = next(dot for name, dot in dots if dot.wrong and name == report_samples.CLASSES[0])
    assert wrong.title == f"paper-0: {report_samples.CLASSES[0]}, predicted {report_samples.CLASSES[1]}"


def test_names_are_escaped() -> None:
    story = replace(NODES.stories[0], node=EVIL, why=EVIL, predicted=EVIL, known=EVIL)
    story = replace(story, neighbours=[replace(story.neighbours[0], name=EVIL, predicted=EVIL)], links=())
    story = replace(story, features=[replace(story.features[0], name=EVIL, value=EVIL)])
    hostile = replace(NODES, stories=(story,), classes=(EVIL,) * 7, map=[replace(NODES.map[0], name=EVIL)])
    page = fit_page(report_samples.report(), None, hostile)
    assert "<script>alert" not in page
    assert page.count("<script>") == 2


def test_the_page_says_what_was_left_out() -> None:
    page = fit_page(report_samples.report(), None, NODES)
    assert "5 of 9 neighbours" in page
    assert "No neighbours" in page
    assert "The 2 of 1,433 features with the largest effect are shown." in page
    assert "Nodes more than 2 edges away were left out, so the numbers are approximate." in page
    assert "40 of 2,068 held-out nodes, drawn at random" in page
    assert len(page.encode()) < 2_000_000
    assert 'id="why"' not in fit_page(report_samples.report())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nodes") / "report.html"
    path.write_text(fit_page(report_samples.report(), None, NODES))
    return path


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_its_screen(browser: Any, page: Path, size: tuple[int, int], scheme: str) -> None:
    show(browser, page, size, scheme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert complaints(browser) == []
    inside = browser.execute_script(
        "return [...document.querySelectorAll('details[open] svg.star text')].every(text => {"
        "const box = text.getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; })"
    )
    assert inside


def test_keys_open_explanations_and_hide_classes(browser: Any, page: Path) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    show(browser, page)
    first, second = browser.find_elements("css selector", "#why details")
    assert first.get_attribute("open")
    assert not second.get_attribute("open")
    second.find_element("css selector", "summary").send_keys(keys.ENTER)
    assert second.get_attribute("open")
    button = browser.find_element("css selector", "#map .legend button")
    button.send_keys(keys.SPACE)
    assert button.get_attribute("aria-pressed") == "false"
    shown = browser.execute_script(
        "return [...document.querySelectorAll('svg .series')].map(s => getComputedStyle(s).display != 'none')"
    )
    assert shown.count(False) == 1, "the lines of the other figures stay"


def test_every_link_and_figure_says_where_it_leads(browser: Any, page: Path) -> None:
    show(browser, page)
    lost = browser.execute_script(
        "return [...document.querySelectorAll('nav a')].map(a => a.getAttribute('href'))"
        ".filter(target => !document.querySelector(target))"
    )
    assert lost == []
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('svg:not([aria-hidden])')]"
        ".map(figure => figure.getAttribute('aria-label'))"
        ".filter(label => !label)"
    )
    assert nameless == []
