from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch

import plap
import report_samples
from plap.data.splits import Split
from plap.errors import InputError
from plap.insight.attack import AttackCurve
from plap.reporting.fit_content import (
    ClassRow,
    ConfusionMatrix,
    DatasetFacts,
    FitReport,
    NeighbourFacts,
    NodeRow,
    Score,
    TrainingRun,
    TrialRow,
    finding,
)
from plap.reporting.html_page import caption, fit_page
from plap.reporting.svg_figures import Scale, loss_figure, matrix_figure, score_figure, search_figure

EVIL = "<script>alert(1)</script>\"'&"


def test_needs_nothing_from_elsewhere() -> None:
    page = fit_page(report_samples.report())
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page)
    assert "@import" not in page
    assert "url(" not in page
    assert len(page) < 300_000


def test_everything_is_escaped() -> None:
    sample = report_samples.report()
    hostile = replace(
        sample,
        dataset=replace(sample.dataset, name=EVIL, notes=(EVIL,)),
        finding=EVIL,
        metric=EVIL,
        scores=(Score(EVIL, 0.5, 0.4, 0.6, EVIL),),
        confusion=ConfusionMatrix((EVIL, "b"), ((1, 2), (3, 4))),
        runs=(TrainingRun(EVIL, [1.0], [1.0], [0.5], 1),),
        trials=(TrialRow({EVIL: EVIL, "p": 1}, 0.5, 3), TrialRow({EVIL: EVIL, "p": 2}, 0.6, 3)),
        uncertain_nodes=(NodeRow(EVIL, EVIL, 0.5, EVIL, 0.4, EVIL),),
        chosen={EVIL: EVIL},
        provenance={EVIL: EVIL},
        versions={EVIL: EVIL},
    )
    page = fit_page(hostile)
    assert "<script>alert" not in page
    assert page.count("<script>") == 1
    assert page.count("&lt;script&gt;alert(1)") >= 20


def test_empty_parts_are_left_out() -> None:
    page = fit_page(FitReport(DatasetFacts("tiny", 3, 2, 0, 2, 1, 1, 1), "Nothing.", ()))
    for part in ("scores", "confusion", "classes", "training", "search", "nodes", "edges"):
        assert f'id="{part}"' not in page


def test_odd_numbers_do_not_break_it() -> None:
    nan = math.nan
    odd = FitReport(
        DatasetFacts("odd", 1, 0, 0, 1, 0, 0, 1),
        "",
        (Score("a", nan), Score("b", 0.5, None, None)),
        confusion=ConfusionMatrix(("only",), ((0,),)),
        runs=(TrainingRun("s", [nan, math.inf], [], [1.0, 1.0], 0), TrainingRun("t", [], [], [], 5)),
        trials=(TrialRow({"p": 1.0}, nan, 0), TrialRow({"p": 2.0}, 0.5, 0), TrialRow({}, 0.5, 1)),
    )
    page = fit_page(odd)
    assert 'd="MNaN' not in page
    assert "nan %" not in page


def test_finding_tells_better_from_equal_from_worse() -> None:
    text = finding(report_samples.SCORES, 2068)
    assert "significantly better than MLP (features alone, 57.7 %) and Label propagation" in text
    assert "not significantly different from GCN" in text
    assert "significantly worse than MLP (70.0 %)" in finding(
        [Score("PGNN", 0.6, 0.55, 0.65), Score("MLP", 0.7, 0.66, 0.74, differs=True)], 9
    )
    assert "It is" not in finding([Score("PGNN", 0.6), Score("MLP", 0.5)], 1)
    ahead = finding([Score("PGNN", 0.6), Score("label propagation", 0.8, differs=False)], 9)
    assert ahead.endswith("Label propagation was better on these nodes, which may be chance.")
    assert "was better" not in finding([Score("PGNN", 0.6), Score("MLP", 0.5, differs=False)], 9)
    errors = [Score("PGNN", 6.0), *(Score(name, 5.0, differs=False) for name in ("MLP", "GCN"))]
    assert finding(errors, 9, "mean absolute error", share=False, higher_is_better=False).endswith(
        "MLP and GCN were better on these nodes, which may be chance."
    )
    assert finding([Score("PGNN", 0.6)], 10, "micro-F1") == (
        "On 10 held-out nodes, PGNN reaches a micro-F1 of 60.0 %."
    )


def test_a_share_of_no_nodes_is_a_dash() -> None:
    rows = (ClassRow("absent", 3, 0, 0.0, None, None), ClassRow("never", 3, 4, None, 0.0, 0.0))
    page = fit_page(replace(report_samples.report(), per_class=rows))
    shown = {
        name: re.findall(r">([^<]*)</td>", page.split(f">{name}</th>")[1])[2:5]
        for name in ("absent", "never")
    }
    assert shown == {"absent": ["0.0 %", "–", "–"], "never": ["–", "0.0 %", "0.0 %"]}


def test_a_class_without_held_out_nodes_has_no_recall() -> None:
    data = plap.data.csbm(phi=0.5, n=60, f=5, seed=1)
    third = replace(data, y=torch.arange(60) % 3, class_names=("a", "b", "c"))
    test = (torch.arange(60) >= 30) & (third.y != 2)
    val = (torch.arange(60) >= 20) & (torch.arange(60) < 30)
    parts = Split("public", torch.arange(60) < 20, val, test)
    result = plap.fit(third, split=parts, search=False, seeds=1, max_epochs=2, rivals=())
    row = result.content.per_class[2]
    assert (row.test, row.recall, row.f1) == (0, None, None)
    said = result.task.decode(result.model.probabilities[test])
    for k, each in enumerate(result.content.per_class):
        assert (each.precision is None) == (not bool((said == k).any()))


def test_one_of_anything_is_singular() -> None:
    one = FitReport(
        DatasetFacts("one", 1, 1, 1, 1, 0, 0, 1),
        "",
        (),
        trials=(TrialRow({}, 0.5, 1),),
        neighbours=NeighbourFacts(1, 1, 0, ()),
        runners_up=[{"p": 1}],
        runner_up_members=1,
    )
    page = re.sub("<[^>]*>", "", fit_page(one))
    for piece in (
        "1 node\n", "1 edge\n", "1 feature\n", "1 class\n", "1 training run,",
        "Of 1 held-out node, 1 is classified", "members of the ensemble has that",
    ):  # fmt: skip
        assert piece in page
    assert caption(AttackCurve(1, 1.0, (), poisoning=False, local=False)).endswith("1 test node is judged.")


@pytest.mark.parametrize("values", [[0.0], [1.0, 1.0], [], [1e-9, 2e-9], [-5, 1e6], [math.nan, 3.0]])
def test_scales_hold_their_values(values: list[float]) -> None:
    scale = Scale.around(values, 0, 100)
    assert scale.high > scale.low
    assert all(scale.low <= value <= scale.high for value in values if math.isfinite(value))
    assert 2 <= len(scale.values) <= 12


def test_figures_stay_inside_their_picture() -> None:
    sample = report_samples.report()
    for bar in score_figure(sample.scores).bars:
        assert 0 <= bar.low <= bar.at <= bar.high <= 360
    many = [f"a class with a long name {k}" for k in range(50)]
    assert sample.confusion is not None
    for confusion in (sample.confusion, ConfusionMatrix(many, [[1] * 50] * 50)):
        figure = matrix_figure(confusion)
        assert all(cell.x + figure.size <= 360 for cell in figure.squares)
        assert figure.numbers == (len(confusion.classes) <= 12)
    for line in loss_figure(sample.runs).lines:
        places = [float(part) for part in re.findall(r"[\d.]+", line.path)]
        assert min(places) >= 0
        assert max(places) <= 360


def test_search_figure_needs_a_choice() -> None:
    assert search_figure((TrialRow({"p": 1.0}, 0.5, 1),)) is None
    figure = search_figure((TrialRow({"p": 1.0}, 0.5, 1), TrialRow({"p": "free"}, 0.6, 1, chosen=True)))
    assert figure is not None
    assert [tick.text for tick in figure.x_ticks] == ["1.0", "free"]
    assert [dot.chosen for dot in figure.dots] == [False, True]


def test_confusion_must_be_square() -> None:
    with pytest.raises(InputError, match="2 rows of 2"):
        ConfusionMatrix(("a", "b"), ((1, 2), (3,)))


def test_of_runners_up_the_page_lists_only_what_differs() -> None:
    chosen: dict[str, float | int | str] = {"p": 1.5, "K": 4, "hidden": 16}
    report = replace(
        report_samples.report(),
        chosen=chosen,
        runners_up=[chosen | {"p": 2.0}, chosen | {"K": 8, "hidden": 64}],
    )
    lists = dict(report.provenance_lists)
    assert lists["Selected hyperparameters"] == chosen
    assert (lists["Runner-up 1"], lists["Runner-up 2"]) == ({"p": 2.0}, {"K": 8, "hidden": 64})
    assert "Only what differs" in fit_page(report)
