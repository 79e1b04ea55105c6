from __future__ import annotations

import multiprocessing
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plap.errors import InputError
from plap.experiments.runs import Record, Run, Setting, pack_history, unpack_history
from plap.experiments.store import Store, equal_records
from plap.training import RunConfig


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
