"""The page, as text and in a real browser."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import outcome_samples
from headless import DESK, PHONE, colour, complaints, contrast, luminance, requests, show
from plap.experiments.table_report import table_report
from plap.experiments.table_result import TableResult
from plap.reporting.table_page import table_page


def page(result: TableResult) -> str:
    return table_page(table_report(result))


EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name in ("noisy-homophilic", "csbm-sparse", "time-homophilic", "plug-in-heterophilic"):
        found[name] = folder / f"{name}.html"
        found[name].write_text(page(outcome_samples.sample(name)))
    return found


def cells_of(text: str) -> list[tuple[str, str, str]]:
    """Classes, title and content of all cells of the first table."""
    body = text.split('id="table"')[1].partition("</section>")[0]
    return re.findall(r'<td class="n (\w+)"[^>]*title="([^"]*)"[^>]*>(.*?)</td>', body, re.DOTALL)


def without_tags(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.parametrize("name", ["noisy-homophilic", "time-homophilic", "ppi"])
def test_needs_nothing_from_elsewhere(name: str) -> None:
    text = page(outcome_samples.sample(name))
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", text)
    assert "@import" not in text
    assert "url(" not in text
    assert len(text) < 300_000


@pytest.mark.parametrize("name", ["homophilic", "time-homophilic", "plug-in-heterophilic", "ppi"])
def test_every_cell_stands_beside_the_published_one(name: str) -> None:
    result = outcome_samples.sample(name)
    found = cells_of(page(result))
    assert len(found) == len(result.cells)
    for cell, (kind, _, content) in zip(result.cells, found, strict=True):
        text = outcome_samples.text_of(result, cell)
        assert kind == text.agreement
        ours = [text.mean, f"± {text.deviation}" if text.deviation else "", text.ratio, text.symbol]
        theirs = [text.published_mean, f"± {text.published_deviation}" if text.published_deviation else "",
                  text.published_ratio]  # fmt: skip
        assert without_tags(content) == " ".join(filter(None, [*ours, *theirs]))
        assert (f'<b class="{text.mark}">{text.mean}</b>' in content) == bool(text.mark)


def test_a_cell_tells_its_details() -> None:
    result = outcome_samples.sample("heterophilic")
    changed = replace(
        result.cell("mlp", "texas"),
        values=(70.0, 72.0),
        config={"lr": 0.01, "K": 4},
        tried=3,
        grid=12,
        not_finite=1,
    )
    old = result.cell("mlp", "texas")
    result = replace(result, cells=tuple(changed if cell is old else cell for cell in result.cells))
    titles = dict(zip(((c.model, c.dataset) for c in result.cells), cells_of(page(result)), strict=True))
    lines = unescape(titles["mlp", "texas"][1]).splitlines()
    assert lines == [
        "MLP on Texas",
        "2 runs",
        "95 % confidence interval 58.29 to 83.71",
        "−8.50 compared with the published mean",
        "selected: lr 0.01, K 4",
        "3 of 12 configurations tried",
        "1 run ended in NaN or infinity (including the search)",
    ]
    assert unescape(titles["gat", "cornell-2021"][1]) == "GAT on Cornell (before July 2022)"


def test_times_tell_those_of_a_run() -> None:
    result = outcome_samples.sample("time-homophilic")
    cells = tuple(replace(cell, totals=(3.0, 4.0)) if cell.values else cell for cell in result.cells)
    titles = [unescape(title) for _, title, _ in cells_of(page(replace(result, cells=cells)))]
    assert "3.5 s per run (published: 5.27 s)" in titles[0]
    assert "compared with the published mean" not in " ".join(titles)


def test_everything_is_escaped() -> None:
    sample = outcome_samples.sample("noisy-heterophilic")
    models, datasets = (EVIL,), (f"{EVIL}:r=0.5", f"{EVIL}:r=1")
    hostile = replace(
        sample,
        name=EVIL,
        title=EVIL,
        unit=EVIL,
        protocol=EVIL,
        models=models,
        datasets=datasets,
        families=(models,),
        rules=(EVIL,),
        notes=(EVIL,),
        cells=tuple(
            replace(sample.cells[k], model=EVIL, dataset=datasets[k], config={EVIL: EVIL}, problem=EVIL)
            for k in range(2)
        ),
    )
    text = page(hostile)
    assert "<script>alert" not in text
    assert text.count("<script>") == 2
    assert text.count("&lt;script&gt;alert(1)") >= 20


def test_empty_parts_are_left_out() -> None:
    sample = outcome_samples.sample("heterophilic")
    cells = tuple(
        replace(cell, values=(), published=None, problem=None, not_finite=0) for cell in sample.cells
    )
    text = page(replace(sample, cells=cells, rules=(), notes=()))
    for part in ("curves", "differ", "missing", "rules", "notes"):
        assert f'id="{part}"' not in text
    assert "0 of 66 cells have values." in text
    assert 'class="agreements"' not in text


def test_opens_from_a_file_without_asking_the_network(browser: Any, pages: dict[str, Path]) -> None:
    browser.get_log("performance")
    for name, path in pages.items():
        show(browser, path)
        assert browser.title == f"{name} · plap"
    assert [address for address in requests(browser) if address.startswith("http")] == []
    assert complaints(browser) == []


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_fits_its_screen(browser: Any, pages: dict[str, Path], size: tuple[int, int]) -> None:
    for path in pages.values():
        show(browser, path, size)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    show(browser, pages["csbm-sparse"], size)
    smallest = browser.execute_script(
        "return Math.min(...[...document.querySelectorAll('svg text')]"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getScreenCTM().a))"
    )
    assert smallest >= 10


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_a_wide_table_scrolls_by_itself_under_a_fixed_first_column(
    browser: Any, pages: dict[str, Path], size: tuple[int, int]
) -> None:
    show(browser, pages["noisy-homophilic"], size)
    script = """
        const box = document.querySelector('.matrix');
        const head = box.querySelector('tbody th'), last = box.querySelector('tbody tr').lastElementChild;
        const frame = () => [head.getBoundingClientRect().left, last.getBoundingClientRect().right];
        const before = frame();
        box.scrollLeft = box.scrollWidth;
        return [box.scrollWidth > box.clientWidth, before, frame(), box.getBoundingClientRect().right,
                document.elementFromPoint(head.getBoundingClientRect().left + 5,
                                          head.getBoundingClientRect().top + 5) === head];
    """
    browser.execute_script("document.querySelector('.matrix').scrollIntoView()")
    scrolls, before, after, edge, on_top = browser.execute_script(script)
    assert scrolls
    assert before[1] > edge
    assert after[0] == before[0]
    assert after[1] == pytest.approx(edge, abs=2)
    assert on_top


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_light_and_dark_are_both_readable(
    browser: Any, pages: dict[str, Path], scheme: str, dark: bool
) -> None:
    show(browser, pages["noisy-homophilic"], scheme=scheme)
    ground = colour(browser, "body", "background-color")
    assert (luminance(ground) < 0.2) == dark
    above, below = (colour(browser, f"td.{kind}", "background-color") for kind in ("above", "below"))
    assert above != below
    for selector, name, on, least in (
        ("td.above", "color", above, 7.0),
        ("td.below", "color", below, 7.0),
        ("td.above small", "color", above, 4.5),
        ("td.below small", "color", below, 4.5),
        ("td.above .symbol", "color", above, 3.0),
        ("td.below .symbol", "color", below, 3.0),
        (".agreements", "color", ground, 4.5),
        ("svg .line", "stroke", ground, 3.0),
        ("svg .marker", "fill", ground, 3.0),
    ):
        assert contrast(colour(browser, selector, name), on) >= least, selector


def lines_shown(browser: Any, number: int) -> list[bool]:
    script = (
        "return [...document.querySelectorAll(`svg .series[data-line='${arguments[0]}']`)]"
        ".map(line => getComputedStyle(line).display !== 'none')"
    )
    found: list[bool] = browser.execute_script(script, number)
    return found


def test_curves_have_a_line_a_model_and_can_be_hidden(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["noisy-homophilic"])
    counts = browser.execute_script(
        "return ['figure svg', '.legend button', 'path.line', 'path.dashed', '.whisker'].map("
        "selector => document.querySelectorAll('#curves ' + selector).length)"
    )
    sample = outcome_samples.sample("noisy-homophilic")
    # SGC has no line on Physics; the legend draws a line for each model too
    assert counts == [4, 11, 4 * 11 - 1 + 11, 4 * 11 - 1, sum(bool(c.deviation) for c in sample.cells)]
    button = browser.find_elements("css selector", ".legend button")[3]
    assert button.text == "GAT"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert lines_shown(browser, 3) == [False] * 4
    assert lines_shown(browser, 2) == [True] * 3
    button.click()
    assert lines_shown(browser, 3) == [True] * 4


def test_a_model_is_seen_alone_while_its_button_is_pointed_at(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["csbm-sparse"])
    faded = "return document.querySelectorAll('svg .series.faded').length"
    browser.execute_script("document.querySelectorAll('.legend button')[2].focus()")
    assert browser.execute_script(faded) == 10
    browser.execute_script("document.activeElement.blur()")
    assert browser.execute_script(faded) == 0


def test_tables_sort(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["noisy-homophilic"])

    def column(section: str, index: int) -> list[str]:
        script = (
            "return [...document.querySelectorAll('#' + arguments[0] + ' tbody tr')]"
            ".map(row => row.cells[arguments[1]].dataset.value)"
        )
        values: list[str] = browser.execute_script(script, section, index)
        return values

    distances = [abs(float(value)) for value in column("differ", 5)]
    assert distances == sorted(distances, reverse=True)
    browser.find_elements("css selector", "#table thead button")[1].click()
    scores = [float(value) for value in column("table", 1)]
    assert scores == sorted(scores, reverse=True)


def test_families_are_ruled_off_until_the_rows_are_sorted(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["plug-in-heterophilic"])
    width = "return getComputedStyle(document.querySelector('tr.family td')).borderTopWidth"
    assert browser.execute_script(width) == "2px"
    browser.find_elements("css selector", "#table thead button")[1].click()
    assert browser.execute_script(width) == "1px"


def test_the_same_result_gives_the_same_page() -> None:
    result: TableResult = outcome_samples.sample("csbm-dense")
    assert page(result) == page(outcome_samples.sample("csbm-dense"))
