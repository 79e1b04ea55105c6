"""A synthetic customer graph as analysts have it: raw columns, and edges between mostly unlike classes."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("id", "age", "income", "country", "signup", "comment", "label")
COUNTRIES = ("DE", "FR", "US", "IT", "PL", "SE", "PT", "GR")
COMMENTS = {
    "private": ("bought once and never came back", "asked about delivery times", "likes the newsletter"),
    "business": ("wants an invoice with tax number", "asked about volume discounts", "pays late in summer"),
    "both": ("called the hotline", "complained about the colour", "moved to a new address", "no remarks"),
}
CLASSES = ("private", "business")


@dataclass(frozen=True)
class Style:
    """How the files are written."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    quoting: Literal["minimal", "all"] = "minimal"
    columns: Sequence[str] = COLUMNS


def write_customer_graph(
    folder: Path,
    *,
    nodes: int = 600,
    edges: int = 2475,
    seed: int = 0,
    missing: float = 0.0,
    unknown: float = 0.0,
    shuffled: int | None = None,
    style: Style = Style(),  # noqa: B008 - frozen
) -> NDArray[np.str_]:
    """Write ``nodes.csv`` and ``edges.csv`` and return the true class of each node, in the order of the file.

    About 70 % of the customers are private. Age and country differ a little between the classes, income (a
    log-normal number) more, and 85 % of the edges join unlike classes, so that the columns alone tell about
    nine of ten customers and the neighbours most of the others.

    Parameters
    ----------
    missing
        Share of the cells of age, income, country, signup and comment that are empty or "NA".
    unknown
        Share of the labels that are empty.
    shuffled
        Seed of an order of the rows of both files, which says the same graph in other words.
    """
    random = np.random.default_rng(seed)
    kind = (random.random(nodes) < 0.3).astype(int)
    table = _rows(random, kind)
    for name in ("age", "income", "country", "signup", "comment"):
        for row in np.flatnonzero(random.random(nodes) < missing):
            table[name][row] = ("", "NA")[row % 2]
    for row in np.flatnonzero(random.random(nodes) < unknown):
        table["label"][row] = ""
    pairs = _pairs(random, kind, edges)
    order, edge_order = np.arange(nodes), np.arange(len(pairs))
    if shuffled is not None:
        order, edge_order = (np.random.default_rng(shuffled).permutation(n) for n in (nodes, len(pairs)))
    if style.decimal != ".":
        table["income"] = [cell.replace(".", style.decimal) for cell in table["income"]]
    folder.mkdir(parents=True, exist_ok=True)
    rows = [[table[name][row] for name in style.columns] for row in order]
    _write(folder / "nodes.csv", style, [list(style.columns), *rows])
    joined = [[table["id"][a], table["id"][b]] for a, b in pairs[edge_order]]
    _write(folder / "edges.csv", style, [["source", "target"], *joined])
    return np.array([CLASSES[k] for k in kind[order]])


def _rows(random: np.random.Generator, kind: NDArray[np.int_]) -> dict[str, list[str]]:
    age = np.clip(random.normal(np.where(kind == 1, 47, 38), 11), 18, 90).round().astype(int)
    income = np.exp(random.normal(np.where(kind == 1, 11.6, 10.2), 0.65))
    home = np.where(random.random(kind.size) < 0.35, kind * 4, random.integers(0, 4, kind.size) + kind * 2)
    first = datetime.date(2015, 1, 1)
    days = random.integers(0, 3500, kind.size)
    comments = []
    for k in kind:
        own = CLASSES[k] if random.random() < 0.4 else "both"
        comment = str(random.choice(COMMENTS[own]))
        comments.append(
            f"{comment}, {random.choice(['café', 'phone', 'web', 'Zürich'])} {random.integers(900)}"
        )
    return {
        "id": [f"c{100000 + 7 * k}" for k in range(kind.size)],
        "age": [str(value) for value in age],
        "income": [f"{value:.2f}" for value in income],
        "country": [COUNTRIES[k] for k in home],
        "signup": [str(first + datetime.timedelta(days=int(d))) for d in days],
        "comment": comments,
        "label": [CLASSES[k] for k in kind],
    }


def _pairs(random: np.random.Generator, kind: NDArray[np.int_], edges: int) -> NDArray[np.int_]:
    """Distinct pairs, 85 % of them between classes."""
    ones, zeros = np.flatnonzero(kind == 1), np.flatnonzero(kind == 0)
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < edges:
        if random.random() < 0.85:
            a, b = int(random.choice(ones)), int(random.choice(zeros))
        else:
            group = ones if random.random() < 0.3 else zeros
            a, b = (int(node) for node in random.choice(group, 2, replace=False))
        if (b, a) not in pairs:
            pairs.add((a, b))
    return np.array(sorted(pairs))


def _write(path: Path, style: Style, rows: list[list[str]]) -> None:
    stream = io.StringIO(newline="")
    every = csv.writer(stream, delimiter=style.separator, quoting=csv.QUOTE_ALL, lineterminator="\n")
    needed = csv.writer(stream, delimiter=style.separator, lineterminator="\n")
    (every if style.quoting == "all" else needed).writerows(rows)
    path.write_bytes(stream.getvalue().encode(style.encoding))
