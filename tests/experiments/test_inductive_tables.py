"""The tables of PPI and ogbn-arxiv from their raw files to a report, on tiny sets of the same formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from plap.data.benchmarks.registry import BENCHMARKS
from plap.experiments import protocol
from plap.experiments.assembly import assemble
from plap.experiments.cell_runs import stored_runs
from plap.experiments.plan import Effort, Selection, make_cells
from plap.experiments.runner import run_cells
from plap.experiments.store import Store
from plap.experiments.tables import load_table
from tiny_benchmarks import WRITERS, without_sums
from tiny_experiments import ThisProcess

EFFORT = Effort(runs=2, grid="small", search_epochs=3, max_epochs=4, patience=4)


@pytest.fixture
def tiny_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PPI and ogbn-arxiv with a few nodes each, where the loader looks for the real ones."""
    monkeypatch.setenv("PLAP_DATA", str(tmp_path))
    for name in ("ppi", "ogbn-arxiv"):
        WRITERS[name](tmp_path)
        monkeypatch.setitem(BENCHMARKS, name, without_sums(name, tmp_path))
    protocol._load.cache_clear()
    protocol._open.cache_clear()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "models", "metric"),
    [
        ("ppi", ["gat-1-head", "gat-4-heads", "pgnn-1.0-256", "pgnn-2.5-512"], "micro-F1"),
        ("ogbn-arxiv", ["pgnn-1.0", "pgnn-3.0+residual-6+cs"], "accuracy"),
    ],
)
def test_from_raw_files_to_a_result(tiny_files: Path, name: str, models: list[str], metric: str) -> None:
    table = load_table(name)
    cells = make_cells(table, "paper", EFFORT, Selection.parse([f"model={model}" for model in models]))
    with Store(tiny_files / "runs.sqlite") as store:
        assert run_cells(cells, store, ThisProcess()) == {}
        result = assemble(table, "paper", stored_runs(cells, store))
        assert {record.metric for record in store.all_records()} == {metric}
    trained = [cell for cell in result.cells if cell.values]
    assert [cell.model for cell in trained] == models
    assert all(len(cell.values) == 2 and cell.not_finite == 0 and cell.published for cell in trained)
    whole = 1 if name == "ppi" else 100
    assert all(0 <= value <= whole for cell in trained for value in cell.values)
    assert {row.key for row in table.rows if not row.is_run} <= set(result.models)


def test_the_appendix_models() -> None:
    widths = {
        cell.model: cell.candidates.base
        for name in ("ppi", "ogbn-arxiv")
        for cell in make_cells(load_table(name), "paper", EFFORT, Selection())
    }
    assert widths["pgnn-1.5-512"].model == "deep-pgnn"
    ppi = widths["pgnn-1.5-512"].parameters
    assert (ppi.p, ppi.hidden, ppi.mu, ppi.K, ppi.layers, ppi.mlp_layers) == (1.5, 512, 0.01, 1, 3, 1)
    heads = widths["gat-4-heads"].parameters
    assert (heads.heads, heads.hidden) == (4, 256)
    arxiv = widths["pgnn-3.0"].parameters
    assert (arxiv.p, arxiv.hidden, arxiv.mu, arxiv.K, arxiv.layers, arxiv.residual) == (
        3.0, 256, 0.5, 2, 3, False,
    )  # fmt: skip
    deep = widths["pgnn-3.0+residual-6+cs"].parameters
    assert (deep.layers, deep.residual) == (6, True)
