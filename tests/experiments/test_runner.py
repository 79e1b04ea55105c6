from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plap.data import load, split
from plap.errors import InputError
from plap.experiments import execution, protocol
from plap.experiments.assembly import assemble
from plap.experiments.cell_runs import stored_runs
from plap.experiments.plan import CellPlan, Effort, Selection, make_cells
from plap.experiments.runner import TableProgress, _Schedule, run_cells
from plap.experiments.runs import Job, Record, Setting
from plap.experiments.store import Store
from plap.experiments.tables import TableDefinition, load_table
from plap.training import RunConfig, accuracy, train_runs
from tiny_experiments import TINY, TWO_HOP, ThisProcess, equal_records, means, write_tiny_table

EFFORT = Effort(runs=3, grid="small", search_epochs=6, max_epochs=12, patience=10)


def tiny(
    folder: Path, effort: Effort = EFFORT, only: str = "", text: str = TINY
) -> tuple[TableDefinition, list[CellPlan]]:
    table = load_table(str(write_tiny_table(folder, text)))
    return table, make_cells(table, table.protocol, effort, Selection.parse([only] if only else []))


def test_a_cell_is_searched_and_then_run_with_every_seed(tmp_path: Path) -> None:
    table, cells = tiny(tmp_path, only="model=mlp")
    with Store(tmp_path / "runs.sqlite") as store:
        assert run_cells(cells, store, ThisProcess()) == {}
        result = assemble(table, "sound", stored_runs(cells, store))
        records = store.all_records()
    assert len(records) == 2 * (4 + 3)
    for cell in result.cells:
        assert (len(cell.values), cell.tried, cell.grid, cell.not_finite) == (3, 4, 8, 0)
        assert cell.config is not None
        assert set(cell.config) == {"lr", "dropout", "weight_decay"}
    search = [r for r in records if r.run.config.max_epochs == 6 and "phi=0.8" in r.run.setting.dataset]
    best = max(search, key=lambda r: (r.val_score, -r.val_loss))
    assert result.cells[0].config == {
        name: best.run.config.value(name) for name in result.cells[0].config or {}
    }


def test_scores_are_those_of_the_test_nodes_of_each_runs_own_split(tmp_path: Path) -> None:
    _, (cell,) = tiny(tmp_path, only="dataset=csbm:phi=0.8,n=60,f=8,model=mlp")
    with Store(tmp_path / "runs.sqlite") as store:
        run_cells([cell], store, ThisProcess())
        final = store.records(cell.final(store.records(cell.search())))
    for seed, stored in enumerate(final):
        data = load(f"{cell.dataset},seed={seed}")
        parts = split(data, preset="dense", seed=seed)
        (trained,) = train_runs(
            data.graph, data.x, data.y, [stored.run.config], parts, num_classes=data.num_classes
        )
        assert stored.split_digest == parts.digest
        assert stored.test_score == accuracy(data.y[parts.test], trained.logits[parts.test].argmax(1))
        assert (stored.val_score, stored.epochs) == (trained.val_score, trained.epochs)


def test_nothing_is_trained_twice(tmp_path: Path) -> None:
    _, cells = tiny(tmp_path)
    with Store(tmp_path / "runs.sqlite") as store:
        run_cells(cells, store, ThisProcess())
        before = store.all_records()
        again = ThisProcess()
        run_cells(cells, store, again)
        assert again.jobs == []
        more = ThisProcess()
        run_cells([replace(cell, effort=replace(EFFORT, runs=5)) for cell in cells], store, more)
        assert sorted(c.seed for job in more.jobs for c in job.configs) == sorted([3, 4] * 4)
        assert equal_records(before, [r for r in store.all_records() if r.run.config.seed < 3])


def test_a_table_that_was_cut_short_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    table, cells = tiny(tmp_path)

    class StopsAfter(ThisProcess):
        def __init__(self, events: int) -> None:
            super().__init__()
            self._events = events

        def run(self, next_job):  # type: ignore[no-untyped-def]
            for count, event in enumerate(super().run(next_job)):
                if count == self._events:
                    return
                yield event

    with Store(tmp_path / "whole.sqlite") as whole, Store(tmp_path / "cut.sqlite") as cut:
        run_cells(cells, whole, ThisProcess())
        for events in (1, 3, 7, 2, 11):
            run_cells(cells, cut, StopsAfter(events))
        partial = assemble(table, "sound", stored_runs(cells, cut))
        assert any(cell.mean is None for cell in partial.cells)
        run_cells(cells, cut, ThisProcess())
        assert equal_records(whole.all_records(), cut.all_records())
        one, other = (assemble(table, "sound", stored_runs(cells, store)) for store in (whole, cut))
        assert means(one) == means(other)


def test_a_changed_model_is_another_model(tmp_path: Path) -> None:
    _, cells = tiny(tmp_path, only="model=two_hop")
    with Store(tmp_path / "runs.sqlite") as store:
        run_cells(cells, store, ThisProcess())
        count = len(store.all_records())
        (tmp_path / "two_hop.py").write_text(TWO_HOP.replace("K=2", "K=3"))
        table = load_table(str(tmp_path / "tiny.toml"))
        changed = make_cells(table, "sound", EFFORT, Selection.parse(["model=two_hop"]))
        run_cells(changed, store, ThisProcess())
        assert len(store.all_records()) == 2 * count


def test_a_users_model_is_searched_over_its_own_grid(tmp_path: Path) -> None:
    _, cells = tiny(tmp_path, only="model=two_hop")
    search = cells[0].search()
    assert [run.config.lr for run in search] == [0.01, 0.1]
    assert {run.config.parameters.hidden for run in search} == {4}
    assert {run.config.max_epochs for run in cells[0].final([])} == {12}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = 1", "must define build"),
        ("def build(:", "cannot be run: SyntaxError"),
        ("import nothing_of_that_name", "cannot be run: ModuleNotFoundError"),
        ("build = print\nGRID = {'rate': [1]}", "names 'rate', which is neither"),
    ],
)
def test_mistakes_in_a_users_model(tmp_path: Path, code: str, words: str) -> None:
    path = write_tiny_table(tmp_path)
    (tmp_path / "two_hop.py").write_text(code)
    with pytest.raises(InputError, match=r"two_hop\.py") as caught:
        make_cells(load_table(str(path)), "sound", EFFORT, Selection())
    assert words in str(caught.value)


def test_a_cell_that_fails_does_not_hold_up_the_others(tmp_path: Path) -> None:
    text = TINY.replace('"csbm:phi=-0.8,n=60,f=8"', '"csbm:phi=7,n=60,f=8"')
    table, cells = tiny(tmp_path, text=text)
    with Store(tmp_path / "runs.sqlite") as store:
        problems = run_cells(cells, store, ThisProcess())
        result = assemble(table, "sound", stored_runs(cells, store), problems)
    assert {dataset for dataset, _ in problems} == {"csbm:phi=7,n=60,f=8"}
    assert all("phi" in failure.reason for failure in problems.values())
    assert [cell.mean is None for cell in result.cells] == [False, True, False, True]
    assert [cell.problem is None for cell in result.cells] == [True, False, True, False]


def test_progress_ends_at_all_runs(tmp_path: Path) -> None:
    _, cells = tiny(tmp_path)
    told: list[TableProgress] = []
    with Store(tmp_path / "runs.sqlite") as store:
        run_cells(cells, store, ThisProcess(), told.append)
    assert [status.finished for status in told] == list(range(len(told)))
    assert told[-1].runs == told[-1].finished == 2 * (4 + 3) + 2 * (2 + 3)
    assert told[-1].done == pytest.approx(1)
    assert all(one.done <= two.done + 1e-9 for one, two in itertools.pairwise(told))


def test_running_times_are_measured_one_run_at_a_time(tmp_path: Path) -> None:
    table, cells = tiny(tmp_path, text=TINY + 'measure = "time"')
    executor = ThisProcess()
    with Store(tmp_path / "runs.sqlite") as store:
        run_cells(cells, store, executor)
        result = assemble(table, "sound", stored_runs(cells, store))
    assert all(job.setting.alone for job in executor.jobs)
    assert result.unit == "ms per epoch"
    assert all(len(cell.values) == len(cell.totals) == 3 and min(cell.values) > 0 for cell in result.cells)


def test_effort() -> None:
    table = load_table("heterophilic")
    assert Effort.of(table) == Effort(runs=100, stopping="published")
    assert Effort.of(table, runs=10, grid="small").search_epochs == 200
    quick = Effort.of(table, quick=True)
    assert (quick.runs, quick.grid) == (3, "small")
    assert quick.sentence(timed=False).startswith("Quick look, not the paper's effort: 3 runs per cell")
    with pytest.raises(InputError, match="grid must be one of full, small, not 'tiny'"):
        Effort.of(table, grid="tiny")


def test_stopping_is_the_papers_in_the_papers_tables() -> None:
    paper, ours, times = (load_table(name) for name in ("heterophilic", "robustness", "time-heterophilic"))
    assert Effort.of(paper, max_epochs=300).stopping == "published"
    assert Effort.of(paper, patience=50).stopping == "best"
    assert Effort.of(paper, patience=50, stopping="progress").stopping == "progress"
    assert Effort.of(paper, quick=True).stopping == "best"
    assert Effort.of(paper, protocol="sound").stopping == "best"
    assert Effort.of(ours).stopping == Effort.of(times).stopping == "best"
    with pytest.raises(InputError, match="stopping must be one of best, progress, published, not 'never'"):
        Effort.of(paper, stopping="never")
    words = "1000 epochs, of which the first with the best validation score counts"
    assert words in Effort.of(paper).sentence(timed=False)
    assert "patience of 50, which a falling" in Effort.of(paper, patience=50, stopping="progress").sentence(
        timed=False
    )


def test_runs_after_the_search_follow_the_published_rule(tmp_path: Path) -> None:
    effort = replace(EFFORT, stopping="published", finalists=2, patience=2, search_epochs=60, max_epochs=60)
    _, (cell, *_) = tiny(tmp_path, effort, only="model=mlp")
    with Store(tmp_path / "runs.sqlite") as store:
        run_cells([cell], store, ThisProcess())
        (found,) = stored_runs([cell], store)
    assert {record.run.config.stopping for record in found.search} == {"best"}
    assert min(record.epochs for record in found.search) < effort.search_epochs
    later = (*found.finalists, *found.final)
    assert {(record.run.config.stopping, record.epochs) for record in later} == {("published", 60)}


def test_selection() -> None:
    table = load_table("noisy-heterophilic")
    cells = make_cells(table, "paper", EFFORT, Selection.parse(["dataset=texas,model=gcn", "model=mlp"]))
    assert [(cell.dataset, cell.model) for cell in cells] == [
        (f"texas:r={r}", model) for r in ("0.25", "0.5", "1") for model in ("mlp", "gcn")
    ]
    for wrong, words in (
        ("dataset=cora", "has no dataset 'cora'"),
        ("model=cnn", "has no model 'cnn'"),
        ("texas", "only takes dataset=NAME or model=NAME, not 'texas'"),
        ("dataset=", "not 'dataset='"),
    ):
        with pytest.raises(InputError) as caught:
            make_cells(table, "paper", EFFORT, Selection.parse([wrong]))
        assert words in str(caught.value)


def test_selection_knows_names_as_the_table_has_them(tmp_path: Path) -> None:
    (tmp_path / "Ours").mkdir()
    text = 'models = ["mlp", "MyNet.py"]\ndatasets = ["Ours", "Ours:r=0.5", "texas"]'
    (tmp_path / "MyNet.py").write_text(TWO_HOP)
    table = load_table(str(write_tiny_table(tmp_path, text)))
    for named, count in (("dataset=Ours", 2), ("dataset=ours:r=0.5", 1), (f"dataset={tmp_path}/Ours", 2)):
        cells = make_cells(table, "sound", EFFORT, Selection.parse([f"{named},model=MyNet"]))
        assert [cell.model for cell in cells] == ["MyNet"] * count


def test_where_files_lie_does_not_make_a_run_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own" / "graph").mkdir(parents=True)
    (tmp_path / "own" / "graph" / "edges.csv").write_text("source,target\n0,1\n")
    write_tiny_table(tmp_path / "own", 'models = ["mlp"]\ndatasets = ["graph"]')
    keys = []
    for folder, name in ((tmp_path, "own/tiny.toml"), (tmp_path / "own", "tiny.toml")):
        monkeypatch.chdir(folder)
        (cell,) = make_cells(load_table(name), "sound", EFFORT, Selection())
        keys.append([run.key for run in cell.search()])
    assert keys[0] == keys[1]


def test_what_another_process_has_stored_is_not_trained_again(tmp_path: Path) -> None:
    _, cells = tiny(tmp_path)
    with Store(tmp_path / "other.sqlite") as other:
        run_cells(cells, other, ThisProcess())
        records = other.all_records()
    executor = ThisProcess()
    with Store(tmp_path / "runs.sqlite") as store:
        table = _Schedule(cells, store, "cpu")
        for record in records:
            store.add(record)
        assert list(executor.run(table.next_job)) == []
    assert executor.jobs == []


def forget_data() -> None:
    """What was opened under a name that now stands for something else."""
    for remembered in (protocol._load, protocol._open, execution._data_digest):
        remembered.cache_clear()


def test_sound_runs_on_one_graph_are_trained_together(monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []

    def spy(
        graph: object, x: object, y: object, configs: Sequence[RunConfig], *rest: Any, **more: Any
    ) -> Any:
        together.append(len(configs))
        return train_runs(graph, x, y, configs, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "train_runs", spy)
    configs = tuple(RunConfig(model="mlp", max_epochs=4, seed=seed) for seed in range(3))
    job = Job(Setting("sound", "texas", "dense"), "mlp", None, configs)
    records: list[Record] = []
    monkeypatch.setattr(protocol, "load", lambda name: load("csbm:phi=0.8,n=60,f=8,seed=1"))
    forget_data()
    execution.execute(job, records.append)
    assert sum(together) == 3
    assert len(together) < 3
    assert len({record.split_digest for record in records}) == 3
    alone: list[Record] = []
    for config in configs:
        execution.execute(replace(job, configs=(config,)), alone.append)
    assert equal_records(records, alone)
    forget_data()


def test_wider_models_where_the_table_says_so() -> None:
    table = load_table("hidden-64-heterophilic")
    widths = {
        cell.model: {run.config.parameters.hidden for run in cell.search()}
        for cell in make_cells(table, "paper", EFFORT, Selection.parse(["dataset=texas"]))
        if cell.model != "sgc"
    }
    assert widths.pop("gat") == {8}
    assert set(map(frozenset, widths.values())) == {frozenset({64})}
