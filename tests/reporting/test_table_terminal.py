from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from rich.console import Console

import outcome_samples
import report_samples
from plap.experiments.table_report import table_report
from plap.experiments.table_result import TableResult
from plap.reporting.terminal import learned_sentences, show_fit, show_story, show_table

BOLD, BOLD_UNDERLINED, DIM = "\x1b[1m", "\x1b[1;4m", "\x1b[2m"


def shown(result: TableResult, width: int = 100, *, terminal: bool = False) -> str:
    stream = io.StringIO()
    color: Literal["standard"] | None = "standard" if terminal else None
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=color)
    show_table(table_report(result), console)
    return stream.getvalue()


def rows(text: str, model: str) -> list[str]:
    """Lines of the tables that begin with a model, one for each table."""
    return [line for line in text.splitlines() if line.startswith(f"│ {model} ")]


@pytest.mark.parametrize("width", [40, 72, 100, 400])
@pytest.mark.parametrize("name", ["noisy-homophilic", "time-heterophilic"])
def test_every_cell_is_there_at_any_width(name: str, width: int) -> None:
    result = outcome_samples.sample(name)
    text = shown(result, width)
    assert max(map(len, text.splitlines())) <= width
    for model, label in (("gcn", "GCN"), ("pgnn-1.5", "pGNN p = 1.5")):
        line = " ".join(rows(text, label))
        for dataset in result.datasets:
            assert outcome_samples.text_of(result, result.cell(model, dataset)).ours in line
    for cell in result.cells:
        assert outcome_samples.text_of(result, cell).published in text


def test_nothing_is_cut_off_or_broken() -> None:
    result = outcome_samples.sample("hidden-64-heterophilic")
    for width in range(60, 80):
        text = shown(result, width)
        assert rows(text, "pGNN p = 1.5")
        assert all(outcome_samples.text_of(result, cell).ours in text for cell in result.cells)


def test_wide_tables_are_split_only_if_they_must() -> None:
    result = outcome_samples.sample("noisy-homophilic")
    assert [len(rows(shown(result, width), "MLP")) for width in (400, 160, 100, 30)] == [1, 2, 3, 12]


def test_marks_are_styles_on_a_terminal() -> None:
    result = outcome_samples.sample("heterophilic")
    text = shown(result, terminal=True)
    for cell in result.cells:
        ours = outcome_samples.text_of(result, cell).ours
        assert (f"{BOLD}{ours}\x1b" in text) == (result.mark(cell) == "best")
        assert (f"{BOLD_UNDERLINED}{ours}\x1b" in text) == (result.mark(cell) == "near")
        assert f"{DIM}{outcome_samples.text_of(result, cell).published}\x1b" in text
    assert "Bold: best in its column." in re.sub(r"\x1b\[[\d;]*m", "", text)


def test_marks_are_signs_in_a_file() -> None:
    result = outcome_samples.sample("heterophilic")
    text = shown(result, 300)
    assert "\x1b" not in text
    for cell in result.cells:
        ours = outcome_samples.text_of(result, cell).ours
        assert (f"{ours}*" in text) == (result.mark(cell) == "best")
        assert (f"{ours}°" in text) == (result.mark(cell) == "near")
    assert "*: best in its column. °: within the 95 % confidence interval" in text


def test_says_by_which_rules_and_what_is_missing() -> None:
    text = shown(outcome_samples.sample("homophilic"), 300)
    for rule in outcome_samples.RULES:
        assert f"· {rule}" in text
    assert "! SGC on Physics: out of memory" in text
    assert "≈ within two standard deviations" in text
    assert "OOM" in text
    assert " – " in text


def test_families_stand_apart() -> None:
    text = shown(outcome_samples.sample("plug-in-heterophilic"), 200)
    lines = text.splitlines()
    (between,) = (k for k, line in enumerate(lines) if line.startswith("├"))
    assert lines[between + 1].startswith("│ JKNet ")


def test_a_table_of_one_s_own_has_no_second_lines() -> None:
    result = outcome_samples.sample("heterophilic")
    own = replace(result, cells=tuple(replace(cell, published=None) for cell in result.cells), notes=())
    text = shown(own, 200)
    assert sum(line.startswith("│") for line in text.splitlines()) == len(own.models)
    assert "published" not in text


def test_names_are_not_taken_for_markup() -> None:
    result = outcome_samples.sample("ppi")
    model, name = "[red]mine[/red]", "图[/bold]"
    cells = tuple(replace(c, model=model, dataset=name) for c in result.cells[:1])
    own = replace(result, models=(model,), datasets=(name,), families=((model,),), cells=cells)
    text = shown(replace(own, title="[dim]Own", rules=("[b]rule",)), terminal=True)
    for part in (model, name, "[dim]Own", "[b]rule"):
        assert part in text


def test_of_runners_up_only_what_differs_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    chosen: dict[str, float | int | str] = {"model": "pgnn", "p": 1.5, "mu": 0.1}
    others: list[dict[str, float | int | str]] = [{**chosen, "p": 2.0}, {"model": "gcn", "hidden": 64}]
    report = replace(report_samples.report(), chosen=chosen, runners_up=others, runner_up_members=3)
    show_fit(report, Path("out"))
    lines = capsys.readouterr().out.splitlines()
    assert "· p = 2" in lines
    assert "· model = gcn, hidden = 64" in lines


def test_one_of_anything_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    story = replace(report_samples.nodes().stories[0], num_neighbours=1, num_features=1, hops=1)
    show_story(story, share=True)
    show_fit(replace(report_samples.report(), runners_up=[{"p": 1}], runner_up_members=1), Path("out"))
    found = {
        "entropy": {"mean": None},
        "trust": {"edges": 1, "below_chance": 1, "median": 0.5},
        "neighbours": {"judged": 1, "helped": 1, "harmed": 0, "mean_gain": 0.5},
    }
    learned: Any = SimpleNamespace(summary=lambda: found)
    said = " ".join([*capsys.readouterr().out.split(), *learned_sentences(learned, fitted_here=True)])
    for piece in (
        "of 1 neighbour and",
        "of 1 column, the largest",
        "more than 1 edge away",
        "1 of the 5 members of the ensemble has that",
        "Of 1 edge, 1 looks more like",
        "Of 1 held-out node, 1 is classified correctly",
    ):
        assert piece in said
    assert learned_sentences(learned, fitted_here=False)[1].startswith("Of 1 node with a known label, 1 is")
