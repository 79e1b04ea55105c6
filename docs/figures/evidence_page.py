"""What is made of published evidence: a page with every table, and the configurations that won."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plap.experiments.evidence import evidence_tables, read_evidence
from plap.experiments.reproduction import Outcome, reproduce
from plap.experiments.tables import load_table
from plap.experiments.winners import Winners
from plap.reporting.number_text import counted
from plap.reporting.table_files import markdown
from plap.training import RunConfig

_INTRODUCTION = """\
# Reproduced tables

<!-- Written by `make evidence` from the files in results/: change those, not this page. -->

Every number on this page comes from runs that are published in the folder `results/` of the repository: one
Parquet file per table with the configuration, seed, digests of split and data, scores, epochs, seconds and
software of each run. Anyone can check a number without training: `plap reproduce TABLE --from results/` shows
a table, and `plap.experiments.best(table, dataset, model)` is the configuration of a cell's final runs.

In every cell our number stands above the published one. What was searched and how long runs could take is
said below each table; for most cells it is less than the paper's effort. What differs, and
why, is in [Reproducing the paper](reproduction.md)."""


def evidence_page(
    folder: str | os.PathLike[str],
    own: Mapping[str, str] | None = None,
    root: str | os.PathLike[str] = ".",
) -> str:
    """The tables of a folder of published evidence as one Markdown page.

    Parameters
    ----------
    folder : path
    own : mapping of str to str, optional
        Other tables that follow: the path of each TOML file, and the folder of its evidence.
    root : path
        Where the commands that the page names are to be called.

    Returns
    -------
    str
        It shows ``figures/NAME-curve.png`` for each table with curves, see :func:`curves`.
    """
    tables = {name: os.fspath(folder) for name in evidence_tables(folder)} | dict(own or {})
    outcomes = {table: reproduce(table, evidence=place) for table, place in tables.items()}
    sections = [
        _section(outcome, _command(table, tables[table], root)) for table, outcome in outcomes.items()
    ]
    return "\n\n".join([_INTRODUCTION, _counts(list(outcomes.values())), *sections]) + "\n"


def curves(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """The pictures of the tables that have curves, as PNG, by the names of their files."""
    files = (reproduce(name, evidence=folder).files for name in evidence_tables(folder))
    return {name: content for found in files for name, content in found.items() if name.endswith(".png")}


def _counts(outcomes: list[Outcome]) -> str:
    """How many runs the page stands on, and how the cells compare."""
    records = [record for outcome in outcomes for runs in outcome.cells for record in runs.every]
    diverged = sum(not record.finite for record in records)
    hours = sum(record.seconds for record in records) / 3600
    agreements = [cell.agreement for outcome in outcomes for cell in outcome.report.cells]
    compared = sum(agreement != "unknown" for agreement in agreements)
    differing = [cell for outcome in outcomes for cell in outcome.report.cells if cell.cause]
    explained = sum(cell.cause != "not explained" for cell in differing)
    same, above, below = (agreements.count(each) for each in ("agrees", "above", "below"))
    return (
        f"{len(records):,} runs in {counted(len(outcomes), 'table')} ({hours:.1f} hours of training, on "
        f"cores that other work shared); {diverged or 'none'} of them ended in NaN or infinity. Of "
        f"{compared} cells with a published number, {same} agree with it, {above} are above and {below} "
        f"below it; of the {len(differing)} that differ, {explained} have a named cause."
    )


def _command(table: str, folder: str, root: str | os.PathLike[str]) -> str:
    """How to show a table from its evidence."""
    name = Path(os.path.relpath(table, root)).as_posix() if table.endswith(".toml") else table
    return f"plap reproduce {name} --from {Path(os.path.relpath(folder, root)).as_posix()}"


def _section(outcome: Outcome, command: str) -> str:
    report = outcome.report
    picture = f"figures/{report.name}-curve.png" if report.panels else None
    text = markdown(report, picture).strip()
    lowered = re.sub(r"^#", "##", text, flags=re.MULTILINE)
    first, rest = lowered.split("\n", 1)
    return f"{first}\n\n`{command}`\n{rest}"


def best_json(folder: str | os.PathLike[str]) -> str:
    """The configurations behind published evidence, as the package ships them in ``best.json``."""
    found: Winners = {}
    for name in evidence_tables(folder):
        for runs in read_evidence(folder, load_table(name)):
            config = runs.chosen
            if config is not None:
                cells = found.setdefault(name, {}).setdefault(runs.plan.dataset, {})
                cells[runs.plan.model] = _values(config.with_values(seed=0))
    return _one_cell_per_line(found)


def _values(config: RunConfig) -> dict[str, Any]:
    defaults = RunConfig(config.model).to_dict()
    given = config.to_dict()
    return {key: value for key, value in given.items() if key == "model" or value != defaults[key]}


def _one_cell_per_line(found: Winners) -> str:
    """JSON in which a changed cell is a changed line."""
    tables = []
    for table, datasets in found.items():
        columns = []
        for dataset, models in datasets.items():
            cells = ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in models.items())
            columns.append(f"  {json.dumps(dataset)}: {{\n{cells}\n  }}")
        tables.append(f" {json.dumps(table)}: {{\n" + ",\n".join(columns) + "\n }")
    return "{\n" + ",\n".join(tables) + "\n}\n"
