"""The parts of a page that depend on the task: that they are there, and that their numbers are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sklearn.metrics

from plap.fitting import FitResult, FitSettings, fit
from plap.fitting.task_content import task_sections
from plap.reporting.task_sections import (
    CalibrationBin,
    Residuals,
    TaskSections,
    calibration_figure,
    residual_figure,
    task_figures,
)
from rare_graph import number_graph, rare_graph

QUICK = FitSettings(fixed={"p": 2.0}, search=False, seeds=1, hidden=8, max_epochs=30)


@pytest.fixture(scope="module")
def rare() -> FitResult:
    return fit(rare_graph(share=0.08), settings=replace(QUICK, conformal=0.9))


@pytest.fixture(scope="module")
def numbers() -> FitResult:
    return fit(number_graph(), settings=QUICK)


def test_curves_are_scikit_learns(rare: FitResult) -> None:
    sections = task_sections(rare)
    assert [curve.name for curve in sections.roc] == [method.name for method in rare.methods]
    test = rare.split.test
    positive = (rare.data.y[test] == 1).numpy()
    score = rare.model.probabilities[test][:, 1].numpy()
    fpr, tpr, _ = sklearn.metrics.roc_curve(positive, score, drop_intermediate=False)
    ours = sections.roc[0]
    assert sklearn.metrics.auc(ours.x, ours.y) == pytest.approx(sklearn.metrics.auc(fpr, tpr), abs=0.01)
    precision, recall, _ = sklearn.metrics.precision_recall_curve(positive, score)
    points = set(zip(recall.round(9), precision.round(9), strict=True))
    found = zip(
        np.round(sections.precision_recall[0].x, 9), np.round(sections.precision_recall[0].y, 9), strict=True
    )
    assert set(list(found)[1:]) <= points


def test_thresholds_and_suspects(rare: FitResult) -> None:
    sections = task_sections(rare)
    (chosen,) = [row for row in sections.thresholds if row.chosen]
    assert chosen.threshold == rare.task.settings()["threshold"]
    test = rare.split.test
    said = rare.task.decode(rare.model.probabilities[test])
    assert chosen.found == int((said == 1).sum())
    assert chosen.f1 == pytest.approx(sklearn.metrics.f1_score(rare.data.y[test], said))
    shares = [row.probability for row in sections.suspects]
    assert shares == sorted(shares, reverse=True)
    assert {row.role for row in sections.suspects} <= {"validation", "held out", "unlabelled"}
    assert all((row.precision is None) == (row.found == 0) for row in sections.thresholds)
    assert any(row.precision is None for row in sections.thresholds)
    assert sum(each.count for each in sections.calibration) == int(test.sum())
    assert "coverage of 90.0 %" in sections.sets


def test_the_page_of_a_rare_class(rare: FitResult) -> None:
    page = rare.page
    for part in ("ranking", "thresholds", "calibration", "suspects", "sets", "all-scores", "classes"):
        assert f'id="{part}"' in page
    assert "Average precision on held-out nodes" in page
    assert "Validation average precision by epoch" in page
    assert 'id="residuals"' not in page


def test_the_page_of_numbers(numbers: FitResult) -> None:
    page = numbers.page
    assert 'id="residuals"' in page
    assert "reaches an R² of 0." in page
    assert "Intervals of ±" in page
    for part in ("ranking", "confusion", "classes", "calibration", "suspects"):
        assert f'id="{part}"' not in page
    assert "<b>0</b> classes" not in page


def test_a_group_of_one_node_is_singular() -> None:
    figure = calibration_figure([CalibrationBin(0.9, 1.0, 1), CalibrationBin(0.5, 0.5, 2)])
    assert [mark.title.split(":")[0] for mark in figure.lines[0].marks] == ["1 node", "2 nodes"]


def test_many_residuals_are_thinned() -> None:
    figure = residual_figure(Residuals(list(range(10_000)), [k + 1.0 for k in range(10_000)]))
    assert len(figure.dots) <= 1200
    assert task_figures(TaskSections()).residuals is None
