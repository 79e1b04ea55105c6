"""Where results are kept: an SQLite file with one row per run, safe against kill -9 and a second process."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any

from plap.errors import InputError
from plap.experiments.runs import KEY_VERSION, Record, Run, Setting, run_key
from plap.models import find_model
from plap.training import RunConfig

_BUSY_SECONDS = 60
_COLUMNS = {
    "key": "TEXT PRIMARY KEY",
    "protocol": "TEXT NOT NULL",
    "dataset": "TEXT NOT NULL",
    "split": "TEXT NOT NULL",
    "alone": "INTEGER NOT NULL",
    "files_digest": "TEXT NOT NULL",
    "correct_and_smooth": "INTEGER NOT NULL",
    "model": "TEXT NOT NULL",
    "code_digest": "TEXT NOT NULL",
    "config": "TEXT NOT NULL",
    "seed": "INTEGER NOT NULL",
    "split_digest": "TEXT NOT NULL",
    "data_digest": "TEXT NOT NULL",
    "metric": "TEXT NOT NULL",
    "test_score": "REAL",  # these three may be NaN, which SQLite keeps as NULL
    "val_score": "REAL",
    "val_loss": "REAL",
    "best_epoch": "INTEGER NOT NULL",
    "epochs": "INTEGER NOT NULL",
    "seconds": "REAL NOT NULL",
    "finite": "INTEGER NOT NULL",
    "history": "BLOB NOT NULL",
    "versions": "TEXT NOT NULL",
    "finished": "REAL NOT NULL",
}
_NAMES = ", ".join(_COLUMNS)
_OUTCOME = tuple(entry.name for entry in fields(Record) if entry.name not in ("run", "versions"))
_TABLE = f"CREATE TABLE runs ({', '.join(f'{name} {kind}' for name, kind in _COLUMNS.items())}) WITHOUT ROWID"
_INDEX = "CREATE INDEX runs_of_cell ON runs (protocol, dataset, split, alone, model)"
_INSERT = f"INSERT OR IGNORE INTO runs ({_NAMES}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)})"

_V1_COMMON = {
    "hidden": 16, "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-4, "seed": 0, "max_epochs": 1000,
    "patience": 200, "stop_by": "accuracy",
}  # fmt: skip
"""Fields of all runs in a store of version 1, with their defaults."""

_V1_OF_SOME_MODELS = {
    "p": 2.0, "mu": 0.1, "K": 4, "alpha": 0.1, "dprate": 0.0, "heads": 8, "layers": 3, "mlp_layers": 0,
    "residual": False,
}  # fmt: skip
"""Fields that every configuration of version 1 had as well, whether its model used them or not."""


class Store:
    """The results of all tables, in one file.

    Every run is written in a transaction of its own as soon as it ends. Two processes may write at the same
    time; a run that both have trained is kept once.

    Parameters
    ----------
    path : path, optional
        Created, with its folder, if it does not exist; None: results are kept in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = Path(":memory:") if path is None else Path(path)
        try:
            if path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._connection.row_factory = sqlite3.Row
            with _explained(self.path):
                self._prepare()
        except (OSError, sqlite3.OperationalError) as error:
            raise InputError(f"the store {self.path} cannot be opened ({error})") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was added is in it already."""
        self._connection.close()

    def _prepare(self) -> None:
        if self._version() == KEY_VERSION:
            self._connection.execute("PRAGMA synchronous = NORMAL")
            return
        self._check_version()
        self._write_ahead()
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            if self._check_version() != KEY_VERSION:  # another process may have been faster
                self._create_or_migrate()
                self._connection.execute(f"PRAGMA user_version = {KEY_VERSION}")
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def _write_ahead(self) -> None:
        """Let others read while this process writes.

        SQLite does not wait here for another process that does the same, so this does.
        """
        end = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)
            else:
                return

    def _version(self) -> int:
        version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        return version

    def _check_version(self) -> int:
        """The file's version, refused if this plap cannot read it; 0 is an empty file, or version 1."""
        version = self._version()
        if version not in (0, 1, KEY_VERSION):
            raise InputError(
                f"{self.path} was written by another version of plap (layout {version}): "
                "use that version, or another folder"
            )
        if version == 0 and self._tables() and "runs" not in self._tables():
            raise InputError(f"{self.path} is a database of something else")
        return version

    def _tables(self) -> set[str]:
        return {row[0] for row in self._connection.execute("SELECT name FROM sqlite_master")}

    def _create_or_migrate(self) -> None:
        """Create the table; rows of version 1 keep their results under their new keys."""
        old: list[sqlite3.Row] = []
        if "runs" in self._tables():
            old = self._connection.execute("SELECT * FROM runs ORDER BY key").fetchall()
            self._connection.execute("DROP TABLE runs")
        self._connection.execute(_TABLE)
        self._connection.execute(_INDEX)
        self._connection.executemany(_INSERT, [_from_version_1(dict(row)) for row in old])

    def add(self, record: Record) -> bool:
        """Keep a run; False if it was there already."""
        with _explained(self.path):
            cursor = self._connection.execute(_INSERT, _row(record))
        return cursor.rowcount == 1

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """Those that have no result yet, in order."""
        with _explained(self.path):
            found = {
                key
                for keys in _portions([run.key for run in runs])
                for (key,) in self._connection.execute(
                    f"SELECT key FROM runs WHERE key IN ({', '.join('?' * len(keys))})", keys
                )
            }
        return [run for run in runs if run.key not in found]

    def records(self, runs: Sequence[Run]) -> list[Record]:
        """The results of ``runs`` that are there, in their order."""
        with _explained(self.path):
            rows = {
                row["key"]: row
                for keys in _portions([run.key for run in runs])
                for row in self._connection.execute(
                    f"SELECT {_NAMES} FROM runs WHERE key IN ({', '.join('?' * len(keys))})", keys
                )
            }
        return [_record(rows[run.key]) for run in runs if run.key in rows]

    def all_records(self) -> list[Record]:
        """Everything, ordered by key; a user's models must have been registered."""
        with _explained(self.path):
            rows = self._connection.execute(f"SELECT {_NAMES} FROM runs ORDER BY key").fetchall()
        return [_record(row) for row in rows]


def _row(record: Record) -> dict[str, object]:
    run, setting = record.run, record.run.setting
    return {
        **asdict(setting),
        "key": run.key,
        "model": run.model,
        "code_digest": run.code_digest,
        "config": json.dumps(run.config.to_dict()),
        "seed": run.config.seed,
        "versions": json.dumps(dict(record.versions)),
        "finished": time.time(),
        **{name: getattr(record, name) for name in _OUTCOME},
    }


def _record(row: sqlite3.Row) -> Record:
    setting = Setting(
        row["protocol"], row["dataset"], row["split"], bool(row["alone"]), row["files_digest"],
        bool(row["correct_and_smooth"]),
    )  # fmt: skip
    config = RunConfig.from_dict(json.loads(row["config"]))
    outcome = {name: row[name] for name in _OUTCOME}
    outcome |= {name: _number(row[name]) for name in ("test_score", "val_score", "val_loss")}
    return Record(
        run=Run(setting, row["model"], config, row["code_digest"]),
        versions=tuple(sorted(json.loads(row["versions"]).items())),
        **(outcome | {"finite": bool(row["finite"])}),
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _portions(keys: Sequence[str], size: int = 500) -> Iterator[Sequence[str]]:
    """Parts of a query, in which SQLite allows a limited number of parameters."""
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What SQLite says, as a sentence about the user's file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InputError(f"the store {path} cannot be used ({error})") from None
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path} is not a store of plap ({error})") from None


def _from_version_1(row: dict[str, Any]) -> dict[str, Any]:
    """A row of version 1, in which every configuration had the fields of all models, as it is stored now.

    Fields that the model does not have are left out. Runs that differed in nothing else have the same result;
    the first of them is kept. A user's model may have used any field, so it keeps those that were set.
    """
    old = json.loads(row["config"])
    config, defaults = _v1_users_model(old) if row["code_digest"] else _v1_own_model(old)
    setting = Setting(
        row["protocol"], row["dataset"], row["split"], bool(row["alone"]), row["files_digest"],
        correct_and_smooth=row["model"].endswith("+cs"),
    )  # fmt: skip
    return row | {
        "key": run_key(setting, row["code_digest"], config, defaults),
        "config": json.dumps(config),
        "correct_and_smooth": setting.correct_and_smooth,
    }


def _v1_own_model(old: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration with the fields of its model, and that model's defaults."""
    foreign = {"hidden", "dropout", *_V1_OF_SOME_MODELS} - set(find_model(old["model"]).fields)
    every = {**_V1_COMMON, **_V1_OF_SOME_MODELS, **old}
    config = RunConfig.from_dict({name: value for name, value in every.items() if name not in foreign})
    return config.to_dict(), RunConfig(config.model).to_dict()


def _v1_users_model(old: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration with the fields that every run has and those that were set, and the defaults."""
    kept = {name: value for name, value in old.items() if _V1_OF_SOME_MODELS.get(name, ...) != value}
    return _V1_COMMON | kept, _V1_COMMON
