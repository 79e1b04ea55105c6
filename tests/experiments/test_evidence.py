"""Published evidence: what is written, that the table comes back from it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest
from evidence_page import best_json, evidence_page

import plap
from csbm_draws import within_reach
from plap.experiments import reproduction
from plap.experiments.evidence import evidence_tables
from plap.experiments.reproduction import Outcome
from tiny_experiments import ThisProcess, write_tiny_table

HOMOPHILIC = "csbm:phi=0.8,n=60,f=8"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> ThisProcess:
    """Training in this process, to keep tests short."""
    executor = ThisProcess()
    monkeypatch.setattr(reproduction, "_executor", lambda *arguments: executor)
    return executor


def run(folder: Path, **options: object) -> Outcome:
    given = {"quick": True, "max_epochs": 5, **options}
    return plap.reproduce(folder / "tiny.toml", out=folder / "out", **given)  # type: ignore[arg-type]


def test_a_table_comes_back_without_training(tmp_path: Path, here: ThisProcess) -> None:
    write_tiny_table(tmp_path)
    outcome = run(tmp_path)
    cells = len(outcome.cells)
    assert repr(outcome) == f"Outcome('tiny', {cells} of {cells} cells with runs)"
    trained = len(here.jobs)
    path = outcome.publish(tmp_path / "results")
    assert path == tmp_path / "results" / "tiny.parquet"
    again = plap.reproduce(tmp_path / "tiny.toml", evidence=tmp_path / "results")
    assert len(here.jobs) == trained
    assert again.result == outcome.result
    assert again.files == outcome.files
    one = plap.reproduce(tmp_path / "tiny.toml", evidence=tmp_path / "results", only="model=mlp")
    assert one.result.models == ("mlp",)


def test_a_row_says_what_a_run_was(tmp_path: Path, here: ThisProcess) -> None:
    write_tiny_table(tmp_path)
    outcome = run(tmp_path, only="model=mlp")
    frame = polars.read_parquet(outcome.publish(tmp_path / "results"))
    records = [record for runs in outcome.cells for record in (*runs.search, *runs.final)]
    assert frame.height == len(records) == 2 * (4 + 3)
    assert frame["seed"].to_list() == [record.run.config.seed for record in records]
    assert frame["split_digest"].to_list() == [record.split_digest for record in records]
    assert frame["test_score"].to_list() == [record.test_score for record in records]
    assert frame["epochs"].to_list() == [record.epochs for record in records]
    assert [json.loads(text) for text in frame["config"]] == [r.run.config.to_dict() for r in records]
    assert {name for text in frame["versions"] for name in json.loads(text)} >= {"plap", "torch"}


def test_cells_are_added_and_replaced_and_keep_their_own_effort(tmp_path: Path, here: ThisProcess) -> None:
    write_tiny_table(tmp_path)
    results = tmp_path / "results"
    run(tmp_path, only="model=mlp").publish(results)
    run(tmp_path, only="model=two_hop", runs=2).publish(results)
    run(tmp_path, only=f"model=mlp,dataset={HOMOPHILIC}", runs=1, max_epochs=4).publish(results)
    shown = plap.reproduce(tmp_path / "tiny.toml", evidence=results)
    runs = {(cell.model, cell.dataset): len(cell.values) for cell in shown.result.cells}
    assert runs == {
        ("mlp", HOMOPHILIC): 1, ("mlp", "csbm:phi=-0.8,n=60,f=8"): 3,
        ("two_hop", HOMOPHILIC): 2, ("two_hop", "csbm:phi=-0.8,n=60,f=8"): 2,
    }  # fmt: skip
    efforts = [rule for rule in shown.result.rules if "per cell" in rule]
    assert len(efforts) == 3
    assert any(rule.startswith("MLP on ") and "1 run per cell" in rule for rule in efforts)
    assert any("at most 4 epochs" in rule for rule in efforts)


def test_interrupted_cells_without_final_runs_are_left_out(tmp_path: Path, here: ThisProcess) -> None:
    write_tiny_table(tmp_path)
    run(tmp_path, only="model=mlp")
    part = run(tmp_path, report_only=True)
    part.publish(tmp_path / "results")
    shown = plap.reproduce(tmp_path / "tiny.toml", evidence=tmp_path / "results")
    assert shown.result.models == ("mlp",)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_bytes(b"not Parquet"), "tiny.parquet is not a Parquet file"),
        (lambda path: polars.DataFrame({"a": [1]}).write_parquet(path), "does not have the columns"),
        (lambda path: path.unlink(), "there are no published runs of table tiny"),
        (
            lambda path: polars.read_parquet(path).with_columns(model=polars.lit("gone")).write_parquet(path),
            "runs of gone on csbm:phi=0.8,n=60,f=8, which is no cell of table tiny",
        ),
    ],
)
def test_damaged_files(tmp_path: Path, here: ThisProcess, damage: object, words: str) -> None:
    write_tiny_table(tmp_path)
    damage(run(tmp_path, only="model=mlp").publish(tmp_path / "results"))  # type: ignore[operator]
    with pytest.raises(plap.InputError, match=words):
        plap.reproduce(tmp_path / "tiny.toml", evidence=tmp_path / "results")


def test_what_is_refused(tmp_path: Path, here: ThisProcess) -> None:
    write_tiny_table(tmp_path)
    with pytest.raises(plap.InputError, match="there is no folder"):
        evidence_tables(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(plap.InputError, match="holds no published runs"):
        evidence_tables(tmp_path / "empty")
    outcome = run(tmp_path, only="model=mlp", runs=1)
    outcome.publish(tmp_path / "results")
    with pytest.raises(plap.InputError, match="only leaves no cell of table tiny that was published"):
        plap.reproduce(tmp_path / "tiny.toml", evidence=tmp_path / "results", only="model=two_hop")
    paper = run(tmp_path, only="model=mlp", runs=1, protocol="paper")
    with pytest.raises(plap.InputError, match="runs of protocol sound, which cannot be mixed"):
        paper.publish(tmp_path / "results")
    with pytest.raises(plap.InputError, match="table tiny has no finished cell to publish"):
        run(tmp_path, only="model=two_hop", report_only=True).publish(tmp_path / "results")


ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
OWN = "benchmarks/directed/directed-heterophilic.toml"


@pytest.mark.parametrize("table", [*evidence_tables(RESULTS), OWN])
def test_the_evidence_of_the_project(table: str) -> None:
    """Every published run is finite and can be repeated; a cell has one split, or a mask per run."""
    if table == OWN:
        outcome = plap.reproduce(ROOT / OWN, evidence=RESULTS / "own")
    else:
        outcome = plap.reproduce(table, evidence=RESULTS)
    masks = outcome.result.protocol == "masks"
    assert masks == (table == "modern-heterophily")
    assert outcome.result.protocol in ("paper", "masks")
    assert all(cell.not_finite == 0 for cell in outcome.result.cells)
    for runs in outcome.cells:
        assert len({record.split_digest for record in runs.every}) == (len(runs.final) if masks else 1)
        assert [record.run.config.seed for record in runs.final] == list(range(len(runs.final)))
        best = max(runs.search, key=lambda record: (record.val_score, -record.val_loss), default=None)
        if best is not None and runs.chosen is not None and not runs.finalists:
            longer = {"max_epochs": runs.chosen.max_epochs, "seed": 0}
            assert best.run.config.with_values(**longer) == runs.chosen
        if table != OWN:
            assert plap.experiments.best(table, runs.plan.dataset, runs.plan.model) == runs.chosen


def test_the_published_numbers_of_chameleon_come_back_on_the_directed_graph() -> None:
    outcome = plap.reproduce(ROOT / OWN, evidence=RESULTS / "own")
    column = {c.model: c.agreement for c in outcome.report.cells if c.dataset == "chameleon"}
    assert column == dict.fromkeys(("gcn", "pgnn-1.0", "pgnn-1.5", "pgnn-2.0", "pgnn-2.5"), "agrees")
    assert any("edges are directed here" in rule for rule in outcome.result.rules)


@pytest.mark.parametrize("table", evidence_tables(RESULTS))
def test_what_is_said_of_a_search_is_so(table: str) -> None:
    """A cause that names what the search chose is true of the runs that are published."""
    outcome = plap.reproduce(table, evidence=RESULTS)
    chosen = {(runs.plan.model, runs.plan.dataset): runs.chosen for runs in outcome.cells}
    for cell in outcome.report.cells:
        config = chosen.get((cell.model, cell.dataset))
        if config is None:
            continue
        if "α = 1" in cell.cause_note:
            assert config.value("alpha") == 1
        if "a large μ" in cell.cause_note:
            assert config.value("mu") >= 1


@pytest.mark.parametrize("table", ["csbm-dense", "csbm-sparse"])
def test_what_is_said_of_other_draws_is_so(table: str) -> None:
    """A cause that names other draws of the cSBM is true of the draws that were measured, and only there."""
    rows = json.loads((ROOT / "benchmarks" / "csbm_draws.json").read_text())
    cells = [c for c in plap.reproduce(table, evidence=RESULTS).report.cells if c.agreement != "agrees"]
    judged = {(cell.dataset, cell.model): within_reach(table, cell, rows) for cell in cells}
    assert {*judged.values()} == {True, False, None}
    for cell in cells:
        assert ("csbm_draws" in cell.cause_note) == bool(judged[cell.dataset, cell.model])


def test_evidence_is_small() -> None:
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()) < 3_000_000


def test_the_page_has_every_cell(tmp_path: Path) -> None:
    page = evidence_page(RESULTS)
    for table in evidence_tables(RESULTS):
        for cell in plap.reproduce(table, evidence=RESULTS).report.cells:
            if cell.mean is not None and table.startswith("plug-in"):
                assert f"{cell.mean:.2f}" in page
    assert "NaN" in page
    assert set(json.loads(best_json(RESULTS))) == set(evidence_tables(RESULTS))


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (("heterofilic", "texas", "gcn"), "no runs of table 'heterofilic' were published: "),
        (("plug-in-heterophilic", "texass", "gcn"), "plug-in-heterophilic: no runs on 'texass' were"),
        (("plug-in-heterophilic", "texas", "mlp"), "plug-in-heterophilic, texas: no runs of 'mlp' were"),
    ],
)
def test_a_cell_that_is_not_known(cell: tuple[str, str, str], words: str) -> None:
    with pytest.raises(plap.InputError) as caught:
        plap.experiments.best(*cell)
    assert str(caught.value).startswith(words)
