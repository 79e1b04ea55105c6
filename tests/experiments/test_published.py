"""The published numbers: all of them, each in its place, each with the digits of the paper."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from plap.data.benchmarks.registry import BENCHMARKS
from plap.errors import InputError
from plap.experiments import PublishedCell, PublishedTable, load_published, published_tables

PAPER = Path(__file__).resolve().parents[2].parent / "shared" / "paper" / "plaplacian-gnn.tex"

# name: cells, bold (underlined or not), underlined, out of memory
COUNTS = {
    "csbm-dense": (99, 28, 17, 0),
    "csbm-sparse": (99, 23, 14, 0),
    "datasets": (104, 0, 0, 0),
    "heterophilic": (66, 13, 7, 0),
    "hidden-64-heterophilic": (66, 11, 5, 0),
    "hidden-64-homophilic": (77, 16, 9, 1),
    "homophilic": (77, 17, 9, 1),
    "modern-heterophily": (49, 0, 0, 0),
    "noisy-heterophilic": (66, 7, 1, 0),
    "noisy-homophilic": (132, 17, 5, 3),
    "ogbn-arxiv": (13, 1, 0, 0),
    "plug-in-heterophilic": (60, 16, 4, 0),
    "plug-in-homophilic": (70, 23, 10, 0),
    "ppi": (10, 1, 0, 0),
    "robustness": (78, 0, 0, 0),
    "time-heterophilic": (66, 0, 0, 0),
    "time-homophilic": (77, 0, 0, 1),
}

# tables of benchmarks that are younger than the paper
NOT_IN_THE_PAPER = ("modern-heterophily", "robustness")

# table, row, column, mean, ±, marks: read off the paper by eye
SPOTS = [
    ("modern-heterophily", "gcn-tuned", "chameleon-filtered", "46.29", "3.40", ""),
    ("modern-heterophily", "gat-sep-published", "minesweeper", "93.91", "0.35", ""),
    ("modern-heterophily", "sage-tuned", "tolokers", None, None, ""),
    ("heterophilic", "mlp", "squirrel", "33.80", "1.05", "bold"),
    ("heterophilic", "gcn", "texas", "56.54", "17.02", ""),
    ("heterophilic", "pgnn-2.5", "chameleon", "48.80", "1.77", "bold underline"),
    ("heterophilic", "pgnn-1.0", "cornell-2021", "82.16", "8.62", "bold"),
    ("homophilic", "sgc", "citeseer", "64.10", "1.36", "bold"),
    ("homophilic", "appnp", "physics", "94.93", "0.06", "bold"),
    ("homophilic", "pgnn-1.5", "computers", "85.03", "0.90", "bold"),
    ("csbm-sparse", "pgnn-2.0", "csbm:phi=-1", "98.37", "0.78", "bold"),
    ("csbm-sparse", "pgnn-2.0", "csbm:phi=-0.5", "84.93", "0.39", "bold"),
    ("csbm-sparse", "pgnn-2.0", "csbm:phi=0.5", "88.55", "1.05", ""),
    ("csbm-sparse", "pgnn-2.0", "csbm:phi=1", "97.94", "0.39", "bold underline"),
    ("csbm-dense", "gprgnn", "csbm:phi=-0.25", "83.84", "0.69", "bold"),
    ("csbm-dense", "jknet", "csbm:phi=-1", "68.95", "9.05", ""),
    ("noisy-homophilic", "gcn", "computers:r=0.5", "62.16", "2.76", ""),
    ("noisy-homophilic", "pgnn-1.5", "computers:r=0.5", "78.12", "2.08", "bold"),
    ("noisy-homophilic", "pgnn-1.0", "photo:r=1", "41.17", "18.15", ""),
    ("noisy-homophilic", "mlp", "cs:r=1", "86.24", "1.43", "bold underline"),
    ("noisy-homophilic", "pgnn-2.5", "physics:r=1", "91.16", "0.47", ""),
    ("noisy-heterophilic", "gcn", "wisconsin:r=1", "64.21", "4.49", ""),
    ("noisy-heterophilic", "pgnn-1.0", "wisconsin:r=1", "95.97", "2.27", "bold"),
    ("noisy-heterophilic", "pgnn-2.0", "texas:r=0.25", "86.06", "5.17", "bold"),
    ("plug-in-homophilic", "gcn", "cora", "76.23", "0.79", "bold"),
    ("plug-in-homophilic", "gcn+pgnn-1.5", "physics", "94.70", "0.18", "bold"),
    ("plug-in-homophilic", "jknet+pgnn-2.5", "pubmed", "82.56", "1.04", ""),
    ("plug-in-heterophilic", "gcn+pgnn-2.0", "cornell-2021", "68.62", "6.55", "bold"),
    ("plug-in-heterophilic", "jknet+pgnn-1.0", "wisconsin", "95.23", "2.43", "bold"),
    ("hidden-64-heterophilic", "mlp", "texas", "87.51", "8.53", "bold underline"),
    ("hidden-64-heterophilic", "sgc", "cornell-2021", "29.44", "14.83", ""),
    ("hidden-64-homophilic", "pgnn-1.5", "pubmed", "83.97", "0.04", ""),
    ("hidden-64-homophilic", "pgnn-2.0", "physics", "95.05", "0.09", "bold"),
    ("ppi", "gat-1-head", "ppi", "0.917", "0.041", ""),
    ("ppi", "pgnn-2.0-512", "ppi", "0.981", "0.006", "bold"),
    ("ogbn-arxiv", "gcn+residual-8+cs-v2", "ogbn-arxiv", "73.13", "0.17", ""),
    ("ogbn-arxiv", "pgnn-3.0", "ogbn-arxiv", "72.58", "0.23", ""),
    ("ogbn-arxiv", "pgnn-3.0+residual-6+cs", "ogbn-arxiv", "73.23", "0.16", "bold"),
    ("robustness", "gcn", "cora-metattack:rate=0.25", "47.53", None, ""),
    ("robustness", "pro-gnn", "cora-metattack:rate=0.15", "76.40", None, ""),
    ("robustness", "asgnn", "cora-metattack:rate=0", "85.38", None, ""),
    ("datasets", "computers", "nodes", "13381", None, ""),
    ("datasets", "wisconsin", "features", "251", None, ""),
    ("datasets", "actor", "edges", "26659", None, ""),
    ("datasets", "cora", "training", "2.5", None, ""),
    ("datasets", "cornell-2021", "homophily", "0.386", None, ""),
]


def cells(table: PublishedTable) -> list[PublishedCell]:
    return [cell for row in table.cells for cell in row]


def text(number: Decimal | None) -> str | None:
    """Decimals compare by value; the digits are what is asked for."""
    return None if number is None else str(number)


def test_every_table_of_the_paper_is_here() -> None:
    assert published_tables() == tuple(sorted(COUNTS))


@pytest.mark.parametrize("name", COUNTS)
def test_number_of_cells(name: str) -> None:
    table = load_published(name)
    found = cells(table)
    kinds = (
        len(found),
        sum(cell.bold for cell in found),
        sum(cell.underline for cell in found),
        sum(cell.out_of_memory for cell in found),
    )
    assert kinds == COUNTS[name]
    assert len(found) == len(table.rows) * len(table.columns)
    assert len(set(table.rows)) == len(table.rows)
    assert len(set(table.columns)) == len(table.columns)
    assert [row for family in table.families for row in family] == list(table.rows)


@pytest.mark.parametrize("name", COUNTS)
def test_a_cell_is_whole(name: str) -> None:
    timed, plain = name.startswith("time-"), name in ("datasets", "robustness")
    for cell in cells(load_published(name)):
        if cell.out_of_memory:
            assert cell == PublishedCell(out_of_memory=True)
            continue
        if cell == PublishedCell():
            continue
        assert cell.mean is not None
        assert (cell.plus_minus is None) == (timed or plain)
        assert (cell.total is not None) == timed
        assert cell.bold or not cell.underline


@pytest.mark.parametrize(("name", "row", "column", "mean", "plus_minus", "marks"), SPOTS)
def test_spot_values(name: str, row: str, column: str, mean: str, plus_minus: str | None, marks: str) -> None:
    cell = load_published(name).cell(row, column)
    assert (text(cell.mean), text(cell.plus_minus)) == (mean, plus_minus)
    assert cell.bold == ("bold" in marks)
    assert cell.underline == ("underline" in marks)


def test_spot_times() -> None:
    cell = load_published("time-homophilic").cell("pgnn-1.5", "computers")
    assert (text(cell.mean), text(cell.total)) == ("140.3", "64.08")
    cell = load_published("time-heterophilic").cell("gat", "actor")
    assert (text(cell.mean), text(cell.total)) == ("420", "13.82")


def test_what_ran_out_of_memory() -> None:
    found = {
        (name, row, column)
        for name in published_tables()
        for row in load_published(name).rows
        for column in load_published(name).columns
        if load_published(name).cell(row, column).out_of_memory
    }
    physics = {("noisy-homophilic", "sgc", f"physics:r={rate}") for rate in ("0.25", "0.5", "1")}
    whole = {(name, "sgc", "physics") for name in ("homophilic", "hidden-64-homophilic", "time-homophilic")}
    assert found == physics | whole


@pytest.mark.parametrize("name", COUNTS)
def test_names_are_those_of_the_registry(name: str) -> None:
    table = load_published(name)
    datasets = table.rows if name == "datasets" else table.columns
    for dataset in datasets:
        base, _, rest = dataset.partition(":")
        assert base in BENCHMARKS or (base == "csbm" and re.fullmatch(r"phi=-?[01](\.\d+)?", rest)), dataset


def test_settings() -> None:
    assert load_published("heterophilic").runs == 100
    assert load_published("heterophilic").split == "dense"
    assert load_published("csbm-sparse").split == "sparse"
    assert load_published("hidden-64-homophilic").hidden_units == 64
    assert load_published("time-homophilic").runs is None
    assert [len(family) for family in load_published("plug-in-homophilic").families] == [5, 5]


def test_tables_are_read_once_and_cannot_be_changed() -> None:
    table = load_published("csbm-sparse")
    assert load_published("cSBM_sparse ") is table
    assert pickle.loads(pickle.dumps(table)) == table
    assert hash(table) == hash(dataclasses.replace(table))
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.runs = 3  # type: ignore[misc]


def test_unknown_names_suggest_the_closest() -> None:
    with pytest.raises(InputError, match=r"'heterophillic'.*did you mean heterophilic"):
        load_published("heterophillic")
    with pytest.raises(InputError, match=r"'42'.*there are csbm-dense, csbm-sparse"):
        load_published("42")
    with pytest.raises(InputError, match=r"row of the published table ppi.*pgnn-2.0-512"):
        load_published("ppi").cell("pgnn-2-512", "ppi")
    with pytest.raises(InputError, match=r"column of the published table heterophilic.*cornell-2021"):
        load_published("heterophilic").cell("mlp", "cornell")


def environment(table: PublishedTable) -> str:
    """The table in the paper's source: by its label, or by its caption if it has none."""
    if not PAPER.is_file():
        pytest.skip("the paper's source is not beside the repository (../shared/paper)")
    mark = (
        rf"\label{{{table.label}}}"
        if table.label
        else f"on {table.name[10:]} benchmark datasets for 64 hidden"
    )
    parts = PAPER.read_text(encoding="utf-8").split(r"\begin{table")[1:]
    (found,) = (part.split(r"\end{table")[0] for part in parts if mark in part)
    return found.split(r"\begin{tabular}")[1]


def printed(source: str) -> list[tuple[str, ...]]:
    """All "mean ± deviation" of a piece of LaTeX with their marks, and OOM, in the order of the source."""
    number = r"(\d+(?:\.\d+)?)"
    value = rf"(?:{number}|\\bm\{{{number}\}}|\\bm\{{\\underline\{{{number}\}}\}})"
    pattern = rf"\${value}\s*_?\{{?\s*\\pm\s*{number}\}}?\$|(OOM)"
    found: list[tuple[str, ...]] = []
    for plain, bold, both, deviation, memory in re.findall(pattern, source):
        marks = "bold underline" if both else "bold" if bold else ""
        found.append(("OOM",) if memory else (plain or bold or both, deviation, marks))
    assert source.count(r"\pm") == sum(len(item) == 3 for item in found)
    return found


def stored(table: PublishedTable) -> list[tuple[str, ...]]:
    """The same of the TOML; a wide table was printed as two, one below the other, of six columns each."""
    width = 6 if table.name == "noisy-homophilic" else len(table.columns)
    found: list[tuple[str, ...]] = []
    for first in range(0, len(table.columns), width):
        for cell in (cell for row in table.cells for cell in row[first : first + width]):
            marks = " ".join(mark for mark in ("bold", "underline") if getattr(cell, mark))
            found.append(("OOM",) if cell.out_of_memory else (str(cell.mean), str(cell.plus_minus), marks))
    return found


@pytest.mark.parametrize(
    "name", [name for name in COUNTS if not name.startswith(("time-", "datasets", *NOT_IN_THE_PAPER))]
)
def test_values_and_marks_are_those_of_the_paper(name: str) -> None:
    table = load_published(name)
    source = environment(table)
    assert Counter(stored(table)) == Counter(printed(source))
    assert stored(table) == printed(source)
    assert source.count(r"\bm") == COUNTS[name][1]
    assert source.count(r"\underline") == COUNTS[name][2]


@pytest.mark.parametrize("name", ["time-heterophilic", "time-homophilic"])
def test_times_are_those_of_the_paper(name: str) -> None:
    table = load_published(name)
    source = environment(table)
    found = re.findall(r"\$([\d.]+)\$ ms / \$([\d.]+)\$s", source)
    assert [(str(cell.mean), str(cell.total)) for cell in cells(table) if not cell.out_of_memory] == found
    assert source.count("OOM") == COUNTS[name][3]


def test_statistics_are_those_of_the_paper() -> None:
    table = load_published("datasets")
    found = re.findall(r"& ([\d.]+)", environment(table))
    assert [str(cell.mean) for cell in cells(table)] == found
