from __future__ import annotations

from dataclasses import replace

import pytest

import plap
import report_samples
from plap.reporting.fit_content import ColumnRow, FitReport, NeighbourFacts, Score
from plap.reporting.html_page import next_steps
from plap.reporting.task_sections import CalibrationBin, TaskSections

REPORT = report_samples.report()


def said(report: FitReport, task: TaskSections = TaskSections()) -> str:  # noqa: B008 - frozen
    return " ".join(next_steps(report, task))


def test_a_rival_that_is_better_comes_first() -> None:
    rival = Score("MLP", 0.9, uses="features alone", differs=True)
    first = next_steps(replace(REPORT, scores=(*REPORT.scores, rival)), TaskSections())[0]
    assert first == "Take MLP (features alone) for this data: it is significantly better."
    error = replace(
        REPORT, scores=(Score("pGNN", 2.0), replace(rival, value=1.0)), higher_is_better=False, share=False
    )
    assert next_steps(error, TaskSections())[0] == first
    worse = replace(REPORT, scores=(REPORT.scores[0], replace(rival, value=0.1)))
    assert "Take MLP" not in said(worse)


def test_a_simpler_method_that_does_not_differ_is_named() -> None:
    equal = Score("MLP", 0.79, uses="features alone", differs=False)
    assert "The difference from MLP (features alone) is not significant" in said(
        replace(REPORT, scores=(REPORT.scores[0], equal))
    )
    both = replace(equal, uses="features and edges")
    assert "not significant" not in said(replace(REPORT, scores=(REPORT.scores[0], both)))


def test_small_samples_are_named() -> None:
    assert "Label more nodes" not in said(REPORT)
    wide = replace(REPORT, scores=(replace(REPORT.scores[0], low=0.6, high=0.9),))
    assert "2,068 held-out nodes leave an interval of 60.0 to 90.0 %" in said(wide)
    one = replace(wide, dataset=replace(wide.dataset, test=1))
    assert "1 held-out node leaves an interval of 60.0 to 90.0 %" in said(one)
    rare = replace(REPORT, per_class=(replace(REPORT.per_class[0], train=3), *REPORT.per_class[1:]))
    assert "fewer than 10 training labels: Theory (3)." in said(rare)


def test_edges_and_neighbours() -> None:
    assert "20 edges or more with a trust below 0.1" in said(REPORT)
    few = replace(
        REPORT, doubted_edges=[*REPORT.doubted_edges[:3], replace(REPORT.doubted_edges[0], trust=0.4)]
    )
    assert "3 edges with a trust below 0.1" in said(few)
    assert "Check the least trusted edges" not in said(replace(few, doubted_edges=few.doubted_edges[3:]))
    harmed = replace(REPORT, neighbours=NeighbourFacts(100, 3, 8, ()))
    assert "more held-out nodes wrong (8) than right (3)" in said(harmed)
    assert "than right" not in said(replace(REPORT, neighbours=NeighbourFacts(100, 8, 3, ())))


def test_probabilities_and_columns() -> None:
    bins = (CalibrationBin(0.9, 0.8, 100),)
    assert "they are 10.0 % off" in said(REPORT, TaskSections(calibration=bins, calibration_error=0.1))
    assert "ranking only" not in said(REPORT, TaskSections(calibration=bins, calibration_error=0.01))
    columns = (ColumnRow("age", "number", 1, 0, "", 0.1), ColumnRow("noise", "number", 1, 0, "", -0.02))
    assert "Try “--ignore noise”" in said(replace(REPORT, columns=columns))
    assert "rose by 2.0 percentage points." in said(replace(REPORT, columns=columns))
    assert "--ignore" not in said(replace(REPORT, columns=columns[:1]))
    unsure = (replace(REPORT.scores[0], low=0.5, high=0.7), *REPORT.scores[1:])
    assert "--ignore" not in said(replace(REPORT, columns=columns, scores=unsure))


def test_commands_fit_the_task() -> None:
    assert "plap attack OUT" in said(REPORT)
    assert "plap attack OUT" not in said(replace(REPORT, attackable=False))
    assert "plap inspect OUT --edges-out" in said(REPORT)
    numbers = said(replace(REPORT, per_class=()))
    assert "Check the least trusted edges" in numbers
    assert "plap inspect OUT" not in numbers
    more = replace(REPORT, dataset=replace(REPORT.dataset, nodes=REPORT.dataset.nodes + 9))
    assert "begin with the least certain ones" in said(more)
    assert "begin with" not in said(replace(more, uncertain_nodes=()))
    assert REPORT.dataset.unlabelled == 0
    assert "begin with" not in said(REPORT)


RING = [(k, (k + 1) % 60) for k in range(60)]


@pytest.mark.parametrize(
    ("graph", "works"),
    [
        (plap.Graph.from_edges(RING), True),
        (plap.Graph.from_edges(RING, weight=[2.0] * 60), False),
        (plap.Graph.from_edges([*RING, (3, 3)], self_loops="keep"), False),
        (plap.Graph.from_edges(RING[:4], num_nodes=60), False),
        (plap.Graph.from_edges([], num_nodes=60), False),
    ],
    ids=["plain", "weights", "a loop", "too few edges", "no edges"],
)
def test_an_attack_is_suggested_where_it_works(graph: plap.Graph, works: bool) -> None:
    data = replace(plap.data.csbm(phi=0.5, n=60, f=5, seed=1), graph=graph)
    result = plap.fit(data, search=False, seeds=1, max_epochs=2, rivals=())
    assert ("plap attack OUT" in result.page) is works
