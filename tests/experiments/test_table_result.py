"""Means, intervals, marks and agreement: against SciPy, and by hand where the rule is ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import outcome_samples
from plap.experiments.published import PublishedCell
from plap.experiments.table_result import Cell, TableResult

scores = st.lists(st.floats(0, 100), min_size=2, max_size=30)


def published(mean: str, plus_minus: str | None = None) -> PublishedCell:
    return PublishedCell(Decimal(mean), None if plus_minus is None else Decimal(plus_minus))


def table(
    cells: Mapping[str, tuple[float, ...]],
    *,
    measure: str = "score",
    families: tuple[tuple[str, ...], ...] | None = None,
) -> TableResult:
    """One dataset, a row for each entry."""
    models = tuple(cells)
    return TableResult(
        name="own",
        title="Own",
        unit="accuracy in %",
        measure=measure,
        models=models,
        datasets=("cora",),
        families=families or (models,),
        cells=tuple(Cell(model, "cora", values) for model, values in cells.items()),
        protocol="sound",
        rules=(),
    )


def marks(result: TableResult) -> dict[str, str]:
    return {cell.model: result.mark(cell) for cell in result.cells}


@given(scores)
def test_mean_and_deviation_are_those_of_numpy(values: list[float]) -> None:
    cell = Cell("mlp", "cora", tuple(values))
    assert cell.mean == pytest.approx(np.mean(values))
    assert cell.deviation == pytest.approx(np.std(values, ddof=1), abs=1e-9)


@given(scores)
def test_interval_is_student_s(values: list[float]) -> None:
    cell = Cell("mlp", "cora", tuple(values))
    standard_error = scipy.stats.sem(values)
    if standard_error < 1e-9:
        assert cell.interval == pytest.approx((np.mean(values), np.mean(values)), abs=1e-6)
        return
    expected = scipy.stats.t.interval(0.95, len(values) - 1, np.mean(values), standard_error)
    assert cell.interval == pytest.approx(expected)


def test_interval_holds_the_true_mean_in_95_of_100_tables() -> None:
    noise = np.random.default_rng(0)
    intervals = [Cell("m", "d", tuple(noise.normal(70, 3, 5))).interval for _ in range(2000)]
    held = np.mean([interval is not None and interval[0] <= 70 <= interval[1] for interval in intervals])
    assert 0.935 < held < 0.965


def test_too_few_runs() -> None:
    none, one = Cell("mlp", "cora"), Cell("mlp", "cora", (71.5,))
    assert (none.mean, none.deviation, none.interval, none.difference) == (None, None, None, None)
    assert (one.mean, one.deviation, one.interval) == (71.5, None, None)


def test_difference_is_ours_minus_theirs() -> None:
    cell = Cell("mlp", "cora", (70.0, 72.0), published=published("70.25", "0.50"))
    assert cell.difference == 0.75
    assert replace(cell, published=PublishedCell(out_of_memory=True)).difference is None


@pytest.mark.parametrize(
    ("values", "theirs", "expected"),
    [
        # deviations 3 and 4 are 5 together: agreement reaches to 10
        ((70 - 3 / math.sqrt(2), 70 + 3 / math.sqrt(2)), published("79.9", "4"), "agrees"),
        ((70 - 3 / math.sqrt(2), 70 + 3 / math.sqrt(2)), published("80.1", "4"), "below"),
        ((70 - 3 / math.sqrt(2), 70 + 3 / math.sqrt(2)), published("59.9", "4"), "above"),
        # one run has no deviation of its own
        ((70.0,), published("71.9", "1"), "agrees"),
        ((70.0,), published("72.1", "1"), "below"),
        ((70.0,), published("70.0"), "agrees"),
        ((70.0,), published("70.1"), "below"),
        ((), published("70.0", "1"), "unknown"),
        ((70.0,), None, "unknown"),
        ((70.0,), PublishedCell(out_of_memory=True), "unknown"),
    ],
)
def test_agreement(values: tuple[float, ...], theirs: PublishedCell | None, expected: str) -> None:
    cell = Cell("mlp", "cora", values, published=theirs)
    assert table({}).agreement(cell) == expected
    assert table({}, measure="time").agreement(cell) == "unknown"


def test_best_and_near_it() -> None:
    best = (80.0, 82.0, 84.0)
    interval = Cell("best", "cora", best).interval
    assert interval is not None
    low = interval[0]
    result = table({"far": (low - 0.01,), "best": best, "near": (low + 0.01,), "none": ()})
    assert marks(result) == {"far": "", "best": "best", "near": "near", "none": ""}


def test_only_the_interval_of_the_best_counts() -> None:
    """A rival's own wide interval does not bring it near."""
    assert marks(table({"best": (80.0, 80.2), "wide": (20.0, 100.0)})) == {"best": "best", "wide": ""}


def test_a_single_run_of_the_best_has_no_interval() -> None:
    assert marks(table({"best": (80.0,), "other": (79.99, 79.98)})) == {"best": "best", "other": ""}


def test_every_family_has_its_own_best() -> None:
    values = {"gcn": (80.0, 80.1), "gcn+": (70.0, 70.1), "jknet": (60.0, 60.1), "jknet+": (65.0, 65.1)}
    result = table(values, families=(("gcn", "gcn+"), ("jknet", "jknet+")))
    assert marks(result) == {"gcn": "best", "gcn+": "", "jknet": "", "jknet+": "best"}
    assert marks(table(values)) == {"gcn": "best", "gcn+": "", "jknet": "", "jknet+": ""}


def test_of_times_the_shortest_is_best() -> None:
    result = table({"mlp": (2.0, 2.2), "gcn": (8.0, 8.1), "sgc": (2.15, 2.15)}, measure="time")
    assert marks(result) == {"mlp": "best", "gcn": "", "sgc": "near"}


def test_columns_are_marked_apart() -> None:
    result = outcome_samples.sample("heterophilic")
    for dataset in result.datasets:
        column = [cell for cell in result.cells if cell.dataset == dataset]
        (best,) = (cell for cell in column if result.mark(cell) == "best")
        assert best.mean == max(cell.mean for cell in column if cell.mean is not None)
        low, high = best.interval or (math.nan, math.nan)
        for cell in column:
            inside = cell.mean is not None and low <= cell.mean <= high
            assert result.mark(cell) == ("best" if cell is best else "near" if inside else "")


def test_cells_are_found_by_row_and_column() -> None:
    result = outcome_samples.sample("noisy-homophilic")
    for model in result.models:
        for dataset in result.datasets:
            cell = result.cell(model, dataset)
            assert (cell.model, cell.dataset) == (model, dataset)
