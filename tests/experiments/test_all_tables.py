"""All tables: which are run, in which order, and how their progress adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import plap
from plap.experiments import all_tables, reproduce_all, reproduction
from plap.experiments.all_tables import _is_here, tables_by_cost
from plap.experiments.runner import TableProgress
from plap.experiments.tables import TableDefinition, load_table
from tiny_experiments import ThisProcess

SMALL = 'title = "Small"\ndatasets = ["csbm:phi=0.8,n=60,f=8"]\nmodels = ["mlp"]\nruns = 2\n'
LARGE = SMALL.replace("Small", "Large").replace('"]\nmodels', '", "csbm:phi=0.5,n=60,f=8"]\nmodels')
NOT_HERE = SMALL.replace("csbm:phi=0.8,n=60,f=8", "ogbn-arxiv")
EFFORT: dict[str, Any] = {"grid": "small", "max_epochs": 3}


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ThisProcess:
    """Three tables in place of the paper's, trained in this process."""
    files = {"large": LARGE, "none": NOT_HERE, "small": SMALL}
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
    paths = {name: tmp_path / f"{name}.toml" for name in files}

    def load(name: str) -> TableDefinition:
        return load_table(str(paths.get(name, name)))

    executor = ThisProcess()
    monkeypatch.setattr(all_tables, "table_names", lambda: tuple(files))
    for module in ("all_tables", "plan", "reproduction"):
        monkeypatch.setattr(f"plap.experiments.{module}.load_table", load)
    monkeypatch.setattr(reproduction, "_executor", lambda *arguments: executor)
    return executor


def test_cheapest_first_and_once(tmp_path: Path, tables: ThisProcess) -> None:
    out, told = tmp_path / "out", list[TableProgress]()
    outcomes = reproduce_all(out=out, root=tmp_path, progress=told.append, **EFFORT)
    assert [outcome.result.name for outcome in outcomes] == ["small", "large"]
    assert all(cell.mean is not None for outcome in outcomes for cell in outcome.result.cells)
    datasets = [job.setting.dataset for job in tables.jobs for _ in job.configs]
    every = 4 + 1  # the first seed has as many epochs as the search
    assert datasets.count("csbm:phi=0.8,n=60,f=8") == datasets.count("csbm:phi=0.5,n=60,f=8") == every
    shares = [status.done for status in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert told[0].message.startswith("small: ")
    assert told[-1].message.startswith("large: ")
    trained = len(tables.jobs)
    again = reproduce_all(out=out, root=tmp_path, **EFFORT)
    assert len(tables.jobs) == trained
    cells = {outcome.result.name: outcome.result.cells for outcome in outcomes}
    assert {outcome.result.name: outcome.result.cells for outcome in again} == cells


def test_the_order_follows_what_is_left(tmp_path: Path, tables: ThisProcess) -> None:
    out = tmp_path / "out"
    assert list(tables_by_cost(out=out, root=tmp_path, **EFFORT)) == ["small", "large"]
    plap.reproduce("large", out=out, only="dataset=csbm:phi=0.5,n=60,f=8", **EFFORT)
    plap.reproduce("large", out=out, only="dataset=csbm:phi=0.8,n=60,f=8", **EFFORT)
    left = tables_by_cost(out=out, root=tmp_path, **EFFORT)
    assert left == {"large": 0.0, "small": 0.0}


def test_all_that_was_published(tmp_path: Path, tables: ThisProcess) -> None:
    outcomes = reproduce_all(out=tmp_path / "out", root=tmp_path, **EFFORT)
    for outcome in outcomes:
        outcome.publish(tmp_path / "results")
    shown = reproduce_all(evidence=tmp_path / "results")
    assert [outcome.result.name for outcome in shown] == ["large", "small"]
    assert {outcome.result.name: outcome.result for outcome in outcomes} == {
        outcome.result.name: outcome.result for outcome in shown
    }


def test_what_is_refused(tmp_path: Path, tables: ThisProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(plap.InputError, match="only names cells of one table"):
        reproduce_all(only="model=mlp")
    monkeypatch.setattr(all_tables, "table_names", lambda: ("none",))
    with pytest.raises(plap.InputError, match="no table has its files here"):
        reproduce_all(root=tmp_path)


@pytest.mark.parametrize(
    ("table", "dataset"), [("noisy-heterophilic", "texas:r=0.5"), ("robustness", "cora-metattack:rate=0.05")]
)
def test_files_are_looked_for_under_the_name_of_their_benchmark(
    table: str, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(all_tables, "holding_folder", lambda benchmark, root: asked.append(benchmark.name))
    assert not _is_here(load_table(table), dataset, tmp_path)
    assert asked
    assert asked[0].split(":", maxsplit=1)[0] == dataset.split(":", maxsplit=1)[0]
