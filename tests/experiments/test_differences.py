"""Every difference from the paper has a cause, which is a value; the file names real cells alone."""

from __future__ import annotations

import pytest

import outcome_samples
from plap.data.dataset import DatasetName
from plap.experiments.differences import CAUSES, _read, differences, find_cause
from plap.experiments.table_report import table_report
from plap.experiments.tables import load_table, table_names
from plap.reporting.table_files import csv_text, table_files
from plap.reporting.table_texts import causes


@pytest.mark.parametrize("name", sorted(_read()))
def test_entries_name_cells_of_the_table(name: str) -> None:
    assert name in table_names()
    table = load_table(name)
    known = {*table.datasets, *(DatasetName.parse(dataset).base for dataset in table.datasets)}
    for entry in differences(name):
        assert set(entry.datasets) <= known
        assert set(entry.models) <= set(table.models)
        assert entry.agreement in (None, "above", "below")
        assert entry.note.endswith(".")
        cells = [(model, dataset) for model in table.models for dataset in table.datasets]
        ways = [entry.agreement] if entry.agreement else ["above", "below"]
        first = [find_cause(name, *cell, way) for cell in cells for way in ways]  # type: ignore[arg-type]
        assert entry in first, "an earlier entry hides it"


def test_the_first_entry_that_fits_counts() -> None:
    found = find_cause("noisy-heterophilic", "appnp", "texas:r=0.5", "above")
    assert found is not None
    assert found.cause == "published-search"
    below = find_cause("noisy-heterophilic", "appnp", "texas:r=0.5", "below")
    assert below is not None
    assert below.cause == "unknown"
    assert find_cause("noisy-heterophilic", "appnp", "texas:r=0.5", "unknown") is None


def test_every_cell_that_differs_has_a_cause_in_every_format() -> None:
    result = outcome_samples.sample("heterophilic")
    report = table_report(result)
    differing = [cell for cell in report.cells if cell.agreement in ("above", "below")]
    assert differing
    assert all(cell.cause in CAUSES.values() for cell in differing)
    assert not any(cell.cause for cell in report.cells if cell not in differing)
    sentences = causes(report)
    assert sum(sentence.startswith("Not explained: ") for sentence in sentences) <= 1
    files = {name: content.decode() for name, content in table_files(report).items() if "curve" not in name}
    for cell in differing:
        assert cell.cause in files["heterophilic.md"]
        assert cell.cause in files["heterophilic.html"]
    assert csv_text(report).count(differing[0].cause) == sum(c.cause == differing[0].cause for c in differing)
