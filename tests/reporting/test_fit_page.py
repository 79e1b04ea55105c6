"""The page in a real browser: it opens without a network, shows its figures, sorts, turns dark."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import report_samples
from headless import DESK, PHONE, luminance, show
from plap.reporting.html_page import fit_page

By = pytest.importorskip("selenium.webdriver.common.by", reason="selenium is not installed").By
Keys = pytest.importorskip("selenium.webdriver.common.keys", reason="selenium is not installed").Keys


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(fit_page(report_samples.report()))
    return path


def column(browser: Any, section: str, index: int) -> list[str]:
    script = (
        "return [...document.querySelectorAll('#' + arguments[0] + ' tbody tr')]"
        ".map(row => row.cells[arguments[1]].textContent.trim())"
    )
    values: list[str] = browser.execute_script(script, section, index)
    return values


def test_opens_from_a_file_without_asking_the_network(browser: Any, page: Path) -> None:
    browser.get_log("performance")
    show(browser, page)
    assert browser.title == "cora · plap"
    requests = [
        entry["message"]
        for entry in browser.get_log("performance")
        if "requestWillBeSent" in entry["message"]
    ]
    assert not [message for message in requests if "http" in message.split('"url":"')[1].split('"')[0]]
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_shows_its_figures(browser: Any, page: Path, size: tuple[int, int]) -> None:
    show(browser, page, size)
    figures = browser.find_elements(By.TAG_NAME, "svg")
    assert len(figures) == 5
    for figure in figures:
        assert figure.is_displayed()
        assert figure.size["width"] > 250
        assert figure.size["height"] > 100
        assert figure.get_attribute("aria-label")
    counts = browser.execute_script(
        "return ['#scores circle', '#confusion .cell', '#training path.line', '#search circle.trial']"
        ".map(selector => document.querySelectorAll(selector).length)"
    )
    assert counts == [4, 49, 15, 48]


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_fits_its_screen(browser: Any, page: Path, size: tuple[int, int]) -> None:
    show(browser, page, size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    smallest = browser.execute_script(
        "return Math.min(...[...document.querySelectorAll('svg text')].filter(t => t.textContent.trim())"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getScreenCTM().a))"
    )
    assert smallest >= 10


def test_can_be_used_by_keyboard_and_read_aloud(browser: Any, page: Path) -> None:
    show(browser, page)
    browser.execute_script("document.activeElement.blur()")
    browser.switch_to.active_element.send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.text == "Skip the list of sections"
    assert skip.location["x"] >= 0
    target = skip.get_attribute("href").split("#")[1]
    assert browser.find_element(By.ID, target).tag_name == "section"
    levels = [int(h.tag_name[1]) for h in browser.find_elements(By.CSS_SELECTOR, "h1, h2, h3, h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('[tabindex], svg:not([aria-hidden]), nav')]"
        ".filter(e => !(e.getAttribute('aria-label') || '').trim() || (e.matches('[tabindex]') && !e.role))"
        ".map(e => e.outerHTML.slice(0, 100))"
    )
    assert unnamed == []
    assert not browser.find_elements(By.CSS_SELECTOR, "th:not([scope])")
    listed = browser.execute_script(
        "return [...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))"
    )
    sections = browser.execute_script("return [...document.querySelectorAll('section')].map(s => s.id)")
    assert listed == [name for name in sections if name in listed]
    scores = browser.find_element(By.CSS_SELECTOR, "#scores svg").get_attribute("aria-label")
    first = report_samples.report().scores[0]
    assert f"{first.name}: {100 * first.value:.1f} %" in scores


def test_tables_sort(browser: Any, page: Path) -> None:
    show(browser, page)
    names = column(browser, "classes", 0)
    heads = browser.find_elements(By.CSS_SELECTOR, "#classes thead button")
    heads[0].click()
    assert column(browser, "classes", 0) == sorted(names)
    heads[0].click()
    assert column(browser, "classes", 0) == sorted(names, reverse=True)
    assert (
        browser.find_element(By.CSS_SELECTOR, "#classes thead th").get_attribute("aria-sort") == "descending"
    )
    heads[3].click()
    precision = [float(value.split()[0]) for value in column(browser, "classes", 3)]
    assert precision == sorted(precision, reverse=True)
    assert browser.find_element(By.CSS_SELECTOR, "#classes thead th").get_attribute("aria-sort") is None


def test_numbers_sort_by_value_and_names_by_their_numbers(browser: Any, page: Path) -> None:
    show(browser, page)
    before = column(browser, "search", 2)
    browser.find_elements(By.CSS_SELECTOR, "#search thead button")[2].click()
    mu = [float(value) for value in column(browser, "search", 2)]
    assert mu == sorted((float(value) for value in before), reverse=True)
    browser.find_elements(By.CSS_SELECTOR, "#nodes thead button")[0].click()
    assert column(browser, "nodes", 0) == [f"paper-{n}" for n in range(20)]


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_light_and_dark_are_both_readable(browser: Any, page: Path, scheme: str, dark: bool) -> None:
    show(browser, page, scheme=scheme)

    def colour(selector: str, name: str) -> str:
        script = (
            "return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])"
        )
        return str(browser.execute_script(script, selector, name))

    ground = luminance(colour("body", "background-color"))
    assert (ground < 0.2) == dark
    for selector, name, least in (
        ("body", "color", 7.0),
        (".caption", "color", 4.5),
        ("svg .tick", "fill", 4.5),
        ("svg .model circle", "fill", 3.0),
        ("svg .line", "stroke", 3.0),
        ("thead button", "color", 4.5),
    ):
        other = luminance(colour(selector, name))
        contrast = (max(ground, other) + 0.05) / (min(ground, other) + 0.05)
        assert contrast >= least, (selector, contrast)
    strong = luminance(colour("svg .count.strong", "fill"))
    cell = luminance(colour("svg .fill", "fill"))
    assert (max(strong, cell) + 0.05) / (min(strong, cell) + 0.05) >= 4.5
