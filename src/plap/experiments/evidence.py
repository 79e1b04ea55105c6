"""Published evidence: every run behind a table in one Parquet file, from which the table can be shown again.

A folder holds a file per table, ``NAME.parquet``. A row is a run: the cell (dataset, model), whether it was
part of the search or is one of the final runs, its configuration and seed, digests of the split and of the
data, its scores, epochs and seconds, and the software. The histories of epochs stay in the store.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars

from plap.errors import InputError
from plap.experiments.cell_runs import CellRuns
from plap.experiments.plan import CellPlan, Effort, Selection, make_cells
from plap.experiments.runs import Record, Run
from plap.experiments.tables import TableDefinition
from plap.reporting.picture import check_folder, write_files
from plap.training import RunConfig

_COLUMNS = {
    "dataset": polars.String,
    "model": polars.String,
    "stage": polars.String,  # search, finalist or final
    "protocol": polars.String,
    "split": polars.String,
    "grid": polars.String,  # full or small
    "quick": polars.Boolean,
    "search_epochs": polars.Int64,  # most epochs of a run of the search
    "config": polars.String,  # JSON
    "seed": polars.Int64,
    "split_digest": polars.String,
    "data_digest": polars.String,
    "code_digest": polars.String,
    "metric": polars.String,
    "test_score": polars.Float64,
    "val_score": polars.Float64,
    "val_loss": polars.Float64,
    "best_epoch": polars.Int64,
    "epochs": polars.Int64,
    "seconds": polars.Float64,
    "finite": polars.Boolean,
    "versions": polars.String,  # JSON
}
_OUTCOME = (
    "split_digest", "data_digest", "metric", "test_score", "val_score", "val_loss", "best_epoch", "epochs",
    "seconds", "finite",
)  # fmt: skip
"""Columns that are fields of a record."""


def evidence_tables(folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """Names of the tables of which a folder holds evidence, in alphabetical order."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"there is no folder {place} with published runs")
    names = tuple(sorted(path.stem for path in place.glob("*.parquet")))
    if not names:
        raise InputError(f"the folder {place} holds no published runs (NAME.parquet)")
    return names


def write_evidence(folder: str | os.PathLike[str], table: TableDefinition, cells: Sequence[CellRuns]) -> Path:
    """Write the runs of cells; cells that the file already has are replaced, its others stay.

    Returns
    -------
    Path
        The file that was written.
    """
    path = _path(folder, table)
    ready = [runs for runs in cells if runs.final]
    if not ready:
        raise InputError(f"table {table.name} has no finished cell to publish")
    frame = polars.DataFrame([row for runs in ready for row in _rows(runs)], schema=_COLUMNS)
    if path.exists():
        frame = _merge(_read(path), frame, path)
    content = io.BytesIO()
    _ordered(frame, table).write_parquet(content, compression="zstd")
    check_folder(path.parent)
    write_files(path.parent, {path.name: content.getvalue()})
    return path


def read_evidence(
    folder: str | os.PathLike[str], table: TableDefinition, selection: Selection | None = None
) -> list[CellRuns]:
    """The runs of the wanted cells that a folder holds, dataset by dataset."""
    path = _path(folder, table)
    if not path.is_file():
        raise InputError(f"there are no published runs of table {table.name}: {path} is missing")
    frame = _read(path)
    protocol = str(frame["protocol"][0])
    plans = make_cells(table, protocol, Effort.of(table), selection or Selection())
    groups = {
        (str(dataset), str(model)): list(rows.iter_rows(named=True))
        for (dataset, model), rows in frame.group_by(["dataset", "model"], maintain_order=True)
    }
    unknown = [key for key in groups if key[0] not in table.datasets or key[1] not in table.models]
    if unknown:
        dataset, model = unknown[0]
        raise InputError(f"{path} has runs of {model} on {dataset}, which is no cell of table {table.name}")
    return [_cell_runs(plan, groups[plan.key]) for plan in plans if plan.key in groups]


def _path(folder: str | os.PathLike[str], table: TableDefinition) -> Path:
    return Path(folder) / f"{table.name}.parquet"


def _read(path: Path) -> polars.DataFrame:
    try:
        frame = polars.read_parquet(path)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise InputError(f"{path} is not a Parquet file ({str(error).splitlines()[0]})") from None
    if dict(frame.schema) != {name: kind() for name, kind in _COLUMNS.items()} or frame.is_empty():
        raise InputError(f"{path} does not have the columns of published runs: {', '.join(_COLUMNS)}")
    return frame


def _merge(old: polars.DataFrame, new: polars.DataFrame, path: Path) -> polars.DataFrame:
    if old["protocol"][0] != new["protocol"][0]:
        raise InputError(
            f"{path} has runs of protocol {old['protocol'][0]}, which cannot be mixed with those of protocol "
            f"{new['protocol'][0]}: publish them in another folder"
        )
    return polars.concat([old.join(new, on=["dataset", "model"], how="anti"), new])


def _ordered(frame: polars.DataFrame, table: TableDefinition) -> polars.DataFrame:
    """In the order of the table's columns and rows; the runs of a cell keep theirs."""
    places = {"dataset": table.datasets, "model": table.models}
    keys = [
        polars.col(name).replace_strict({value: k for k, value in enumerate(values)}, default=len(values))
        for name, values in places.items()
    ]
    return frame.sort(*keys, maintain_order=True)


def _rows(runs: CellRuns) -> Iterator[dict[str, Any]]:
    for stage, records in (("search", runs.search), ("finalist", runs.finalists), ("final", runs.final)):
        for record in records:
            setting, config = record.run.setting, record.run.config
            yield {
                "dataset": runs.plan.dataset,
                "model": runs.plan.model,
                "stage": stage,
                "protocol": setting.protocol,
                "split": setting.split,
                "grid": runs.effort.grid,
                "quick": runs.effort.quick,
                "search_epochs": runs.effort.search_epochs,
                "config": json.dumps(config.to_dict()),
                "seed": config.seed,
                "code_digest": record.run.code_digest,
                "versions": json.dumps(dict(record.versions)),
                **{name: getattr(record, name) for name in _OUTCOME},
            }


def _cell_runs(plan: CellPlan, rows: Sequence[dict[str, Any]]) -> CellRuns:
    search, finalists, final = (
        tuple(_record(plan, row) for row in rows if row["stage"] == stage)
        for stage in ("search", "finalist", "final")
    )
    last = final[-1].run.config
    competing = len({record.run.config.with_values(seed=0) for record in finalists})
    effort = Effort(
        runs=len(final),
        grid=rows[0]["grid"],
        search_epochs=rows[0]["search_epochs"],
        max_epochs=last.max_epochs,
        patience=last.patience,
        quick=rows[0]["quick"],
        finalists=max(competing, 1),
        **({"finalist_seeds": len(finalists) // competing} if competing else {}),
        stopping=last.stopping,
    )
    return CellRuns(replace(plan, effort=effort), search, finalists, final)


def _record(plan: CellPlan, row: dict[str, Any]) -> Record:
    config = RunConfig.from_dict(json.loads(row["config"]))
    return Record(
        run=Run(plan.setting, plan.model, config, row["code_digest"]),
        history=b"",
        versions=tuple(sorted(json.loads(row["versions"]).items())),
        **{name: row[name] for name in _OUTCOME},
    )
