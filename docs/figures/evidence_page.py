"""What is made of published evidence: a page with every table, parts of another, and the winners."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from plap.experiments.evidence import evidence_tables, read_evidence
from plap.experiments.reproduction import Outcome, reproduce
from plap.experiments.tables import load_table
from plap.experiments.winners import Winners
from plap.reporting.number_text import counted, with_minus
from plap.reporting.table_content import Agreement, ResultCell, TableReport
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
_BEST_OF = ("heterophilic", "homophilic")
"""Tables whose best pGNN is shown beside the paper's."""
_KINDS = {
    "noisy": "random edges",
    "directed": "directed",
    "csbm-dense": "dense splits",
    "csbm-sparse": "sparse splits",
}
"""What a dataset is called after in a table whose name begins like this."""


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
    tables = _tables(folder, own)
    outcomes = {table: _shown(table, place) for table, place in tables.items()}
    sections = [
        _section(outcome, _command(table, tables[table], root)) for table, outcome in outcomes.items()
    ]
    return "\n\n".join([_INTRODUCTION, _counts(list(outcomes.values())), *sections]) + "\n"


def with_evidence(page: str, folder: str | os.PathLike[str], own: Mapping[str, str] | None = None) -> str:
    """A page with its generated parts as the evidence has them.

    They stand between ``<!-- written by `make evidence`: NAME -->`` and ``<!-- end -->``; their names are
    ``agreement`` (of all cells), ``best`` (the best pGNN of each benchmark) and ``differences`` (by dataset).
    """
    reports = [_shown(table, place).report for table, place in _tables(folder, own).items()]
    parts = {
        "agreement": _agreement([cell for report in reports for cell in report.cells]),
        "best": _best(reports),
        "differences": _differences(reports),
    }
    return re.sub(
        r"(<!-- written by `make evidence`: (\w+) -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}\n{parts[found[2]]}\n\n{found[3]}",
        page,
        flags=re.DOTALL,
    )


def _tables(folder: str | os.PathLike[str], own: Mapping[str, str] | None) -> dict[str, str]:
    """Every table with the folder of its evidence."""
    return {name: os.fspath(folder) for name in evidence_tables(folder)} | dict(own or {})


@cache
def _shown(table: str, folder: str) -> Outcome:
    return reproduce(table, evidence=folder)


def curves(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """The pictures of the tables that have curves, as PNG, by the names of their files."""
    files = (_shown(name, os.fspath(folder)).files for name in evidence_tables(folder))
    return {name: content for found in files for name, content in found.items() if name.endswith(".png")}


def _counts(outcomes: list[Outcome]) -> str:
    """How many runs the page stands on, and how the cells compare."""
    records = [record for outcome in outcomes for runs in outcome.cells for record in runs.every]
    diverged = sum(not record.finite for record in records)
    hours = sum(record.seconds for record in records) / 3600
    return (
        f"{len(records):,} runs in {counted(len(outcomes), 'table')} ({hours:.1f} hours of training, on "
        f"cores that other work shared); {diverged or 'none'} of them ended in NaN or infinity. "
        + _agreement([cell for outcome in outcomes for cell in outcome.report.cells])
    )


def _agreement(cells: Sequence[ResultCell]) -> str:
    agreements = [cell.agreement for cell in cells]
    compared = sum(agreement != "unknown" for agreement in agreements)
    differing = [cell for cell in cells if cell.cause]
    explained = sum(cell.cause != "not explained" for cell in differing)
    same, above, below = (agreements.count(each) for each in ("agrees", "above", "below"))
    return (
        f"Of {compared} cells with a published number, {same} agree with it, {above} are above and {below} "
        f"below it; of the {len(differing)} that differ, {explained} have a named cause."
    )


def _best(reports: Sequence[TableReport]) -> str:
    """The best of the four pGNNs on every benchmark, ours and the paper's."""
    lines = ["| | ours | paper |", "|---|---|---|"]
    for report in (report for report in reports if report.name in _BEST_OF):
        for column in report.datasets:
            ours, theirs = dict[str, float](), dict[str, float]()
            for cell in report.cells:
                if cell.dataset != column.key or not cell.model.startswith("pgnn-"):
                    continue
                p = cell.model.removeprefix("pgnn-").removesuffix(".0")
                if cell.mean is not None:
                    ours[p] = cell.mean
                if cell.published and cell.published.mean is not None:
                    theirs[p] = float(cell.published.mean)
            shown = (f"{max(of.values()):.1f} (p = {max(of, key=lambda p: of[p])})" for of in (ours, theirs))
            lines.append(f"| {column.name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _differences(reports: Sequence[TableReport]) -> str:
    """How many cells of each dataset differ from the published ones, by how much, and why."""
    rows: dict[str, list[tuple[ResultCell, str]]] = {}
    for report in reports:
        columns = {column.key: column for column in report.datasets}
        labels = {row.key: row.label for row in report.models}
        units = ", 64 units" if report.name.startswith("hidden-64") else ""
        kind = next((kind for start, kind in _KINDS.items() if report.name.startswith(start)), "")
        for cell in (cell for cell in report.cells if cell.agreement != "unknown"):
            column = columns[cell.dataset]
            place = f" at {column.detail}" if "=" in column.detail else ""
            label = f"{labels[cell.model]}{units}{place}"
            rows.setdefault(", ".join(filter(None, [column.name, kind])), []).append((cell, label))
    lines = [
        "| | cells | agree | above (the furthest) | below (the furthest) | causes |",
        "|---|---|---|---|---|---|",
    ]
    for name, cells in sorted(rows.items(), key=lambda row: ", " in row[0]):
        same = sum(cell.agreement == "agrees" for cell, _ in cells)
        causes = Counter(cell.cause for cell, _ in cells if cell.cause).most_common()
        told = ", ".join(f"{cause} ({count})" for cause, count in causes)
        sides = " | ".join(_side(cells, side) for side in ("above", "below"))
        lines.append(f"| {name} | {len(cells)} | {same} | {sides} | {told} |")
    return "\n".join(lines)


def _side(cells: Sequence[tuple[ResultCell, str]], side: Agreement) -> str:
    """How many cells are above or below, and the one that is furthest from the published number."""
    found = [(cell.difference or 0.0, label) for cell, label in cells if cell.agreement == side]
    if not found:
        return "0"
    most, label = max(found, key=lambda entry: abs(entry[0]))
    return f"{len(found)} ({label}: {with_minus(f'{most:+.1f}')})"


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
