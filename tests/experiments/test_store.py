from __future__ import annotations

import contextlib
import json
import multiprocessing
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plap.errors import InputError
from plap.experiments.model_files import UserModelFile, load_model_file
from plap.experiments.runs import Record, Run, Setting, pack_history, unpack_history
from plap.experiments.store import Store
from plap.training import RunConfig
from tiny_experiments import equal_records


def record(seed: int = 0, score: float = 0.5) -> Record:
    return Record(
        run=Run(Setting("sound", "texas", "dense"), "mlp", RunConfig(model="mlp", seed=seed)),
        split_digest="a", data_digest="b", metric="accuracy", test_score=score, val_score=0.25, val_loss=1.5,
        best_epoch=3, epochs=5, seconds=0.125, finite=True,
        history=pack_history(np.arange(15.0).reshape(3, 5)), versions=(("plap", "0"), ("torch", "2")),
    )  # fmt: skip


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    with Store(tmp_path / "new folder" / "runs.sqlite") as store:
        assert store.add(record())
        (back,) = store.records([record().run])
        assert back == record()
        assert unpack_history(back.history).tolist() == np.arange(15.0).reshape(3, 5).tolist()


def test_a_run_is_kept_once(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.sqlite") as store:
        assert store.add(record(score=0.5))
        assert not store.add(record(score=0.75))
        assert [r.test_score for r in store.all_records()] == [0.5]


def test_scores_that_are_not_a_number_come_back_as_such(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.sqlite") as store:
        store.add(replace(record(), val_loss=float("nan"), finite=False))
        (back,) = store.all_records()
        assert np.isnan(back.val_loss)
        assert not back.finite


def test_missing_runs_in_their_order(tmp_path: Path) -> None:
    runs = [record(seed).run for seed in range(1200)]
    with Store(tmp_path / "runs.sqlite") as store:
        for seed in (3, 700):
            store.add(record(seed))
        assert store.missing(runs) == runs[:3] + runs[4:700] + runs[701:]
        assert [r.run for r in store.records(runs[::-1])] == [runs[700], runs[3]]


@pytest.mark.parametrize(
    "other",
    [
        lambda run: replace(run, config=run.config.with_values(lr=0.02)),
        lambda run: replace(run, config=run.config.with_values(hidden=3)),
        lambda run: replace(run, setting=replace(run.setting, correct_and_smooth=True)),
        lambda run: replace(run, code_digest="changed"),
        lambda run: replace(run, setting=replace(run.setting, protocol="paper")),
        lambda run: replace(run, setting=replace(run.setting, split="sparse")),
        lambda run: replace(run, setting=replace(run.setting, files_digest="changed")),
        lambda run: replace(run, setting=replace(run.setting, alone=True)),
    ],
)
def test_runs_that_differ_in_anything_have_different_keys(other: object) -> None:
    run = record().run
    assert callable(other)
    assert other(run).key != run.key
    assert replace(run, model="called otherwise").key == run.key


def test_what_is_no_store(tmp_path: Path) -> None:
    text = tmp_path / "notes.sqlite"
    text.write_text("these are notes, and there are many of them" * 100)
    with pytest.raises(InputError, match="is not a store of plap"):
        Store(text)
    assert text.read_text().startswith("these are notes")
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")
    with pytest.raises(InputError, match="is a database of something else"):
        Store(foreign)
    with pytest.raises(InputError, match="cannot be opened"):
        Store(text / "runs.sqlite")
    newer = tmp_path / "newer.sqlite"
    Store(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="written by another version of plap"):
        Store(newer)


V1_COLUMNS = (
    "key TEXT PRIMARY KEY, protocol TEXT, dataset TEXT, split TEXT, alone INTEGER, files_digest TEXT, "
    "model TEXT, code_digest TEXT, config TEXT, seed INTEGER, split_digest TEXT, data_digest TEXT, "
    "metric TEXT, test_score REAL, val_score REAL, val_loss REAL, best_epoch INTEGER, epochs INTEGER, "
    "seconds REAL, finite INTEGER, history BLOB, versions TEXT, finished REAL"
)
V1_CONFIG = {
    "model": "pgnn", "hidden": 16, "p": 2.0, "mu": 0.1, "K": 4, "lr": 0.01, "weight_decay": 0.0005,
    "dropout": 0.5, "alpha": 0.1, "dprate": 0.0, "heads": 8, "layers": 3, "mlp_layers": 0, "residual": False,
    "seed": 0, "max_epochs": 1000, "patience": 200, "stop_by": "accuracy",
}  # fmt: skip


def write_version_1(path: Path, rows: list[tuple[str, str, dict[str, object], float]]) -> None:
    """A store as plap wrote it when every configuration had the fields of all models."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE runs ({V1_COLUMNS}) WITHOUT ROWID")
        connection.execute("CREATE INDEX runs_of_cell ON runs (protocol, dataset, split, alone, model)")
        for number, (model, code, changes, score) in enumerate(rows):
            config = V1_CONFIG | changes
            connection.execute(
                f"INSERT INTO runs VALUES ({', '.join('?' * 23)})",
                (
                    f"old key {number}", "sound", "texas", "dense", 0, "", model, code, json.dumps(config),
                    config["seed"], "a", "b", "accuracy", score, 0.25, 1.5, 3, 5, 0.125, 1,
                    pack_history(np.arange(15.0).reshape(3, 5)), '{"plap": "0"}', 1.0,
                ),
            )  # fmt: skip
        connection.execute("PRAGMA user_version = 1")


def test_an_older_store_keeps_its_results(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.sqlite", UserModelFile("mine.py", "def build(c, i, o): ...")
    load_model_file(file)
    deep = {"model": "deep-pgnn", "hidden": 256, "layers": 6, "residual": True}
    write_version_1(
        path,
        [
            ("pgnn-1.5", "", {"p": 1.5, "mu": 10.0, "seed": 3}, 0.1),
            ("mlp", "", {"model": "mlp", "max_epochs": 200}, 0.2),
            ("sgc", "", {"model": "sgc", "K": 2}, 0.3),
            ("sgc", "", {"model": "sgc", "K": 2, "hidden": 64}, 0.3),
            ("pgnn-2.0+residual-6+cs", "", deep, 0.4),
            ("mine", file.digest, {"model": file.registered_name, "hidden": 32}, 0.5),
            ("mine", file.digest, {"model": file.registered_name, "hidden": 32, "K": 9}, 0.6),
        ],
    )
    setting = Setting("sound", "texas", "dense")
    smoothed = replace(setting, correct_and_smooth=True)
    runs = [
        Run(setting, "pgnn-1.5", RunConfig(p=1.5, mu=10.0, seed=3)),
        Run(setting, "mlp", RunConfig("mlp", max_epochs=200)),
        Run(setting, "sgc", RunConfig("sgc", K=2)),
        Run(smoothed, "deep", RunConfig("deep-pgnn", hidden=256, layers=6, residual=True)),
        Run(setting, "mine", RunConfig(file.registered_name, hidden=32), file.digest),
    ]
    for _ in range(2):  # the second time it is no longer old
        with Store(path) as store:
            assert [r.test_score for r in store.records(runs)] == [0.1, 0.2, 0.3, 0.4, 0.5]
            assert store.missing(runs) == []
            kept = store._connection.execute("SELECT count(*) FROM runs").fetchone()[0]
            assert kept == 6  # the two of sgc were the same run
            assert store._connection.execute("PRAGMA user_version").fetchone()[0] == 2
            assert store.records(runs[:1])[0].run == runs[0]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    write_version_1(path, [("pgnn-1.5", "", {"p": 1.5}, 0.1), ("pgnn-1.5", "", {"p": 0.5}, 0.2)])
    with pytest.raises(InputError, match="p must be a number of at least 1"):
        Store(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 2
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 1


def _write_many(path: Path, first: int) -> None:
    with Store(path) as store:
        for seed in range(first, first + 150):
            store.add(record(seed))


def test_two_processes_write_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(path, first)) for first in (0, 75)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    with Store(path) as store:
        found = store.all_records()
        assert store._connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert sorted(r.run.config.seed for r in found) == list(range(225))


def test_stores_are_compared_without_their_times() -> None:
    assert equal_records([record()], [replace(record(), seconds=99.0)])
    assert not equal_records([record()], [record(score=0.6)])
    assert not equal_records([record()], [record(), record(1)])


def test_opening_waits_for_a_process_that_creates_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            other.execute("COMMIT")

    monkeypatch.setattr("plap.experiments.store.time.sleep", wait)
    monkeypatch.setattr(Store, "_check_version", lambda self: 0)
    monkeypatch.setattr(Store, "_version", lambda self: 0)
    monkeypatch.setattr("plap.experiments.store._BUSY_SECONDS", 0.0)
    monkeypatch.setattr("plap.experiments.store.time.monotonic", lambda: 0.0)
    Store(path).close()
    assert len(waits) == 3
    other.close()
