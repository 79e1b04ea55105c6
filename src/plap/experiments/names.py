"""Datasets' names as a reader knows them; what a user named is shown as it is."""

from __future__ import annotations

from plap.data.dataset_name import DatasetName
from plap.experiments.protocol import PROTOCOLS
from plap.reporting.number_text import with_minus

_DATASETS = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "computers": "Computers",
    "photo": "Photo",
    "cs": "CS",
    "physics": "Physics",
    "chameleon": "Chameleon",
    "chameleon-filtered": "Chameleon (filtered)",
    "squirrel": "Squirrel",
    "squirrel-filtered": "Squirrel (filtered)",
    "actor": "Actor",
    "wisconsin": "Wisconsin",
    "texas": "Texas",
    "cornell": "Cornell",
    "cornell-2021": "Cornell (before July 2022)",
    "roman-empire": "Roman-empire",
    "amazon-ratings": "Amazon-ratings",
    "minesweeper": "Minesweeper",
    "tolokers": "Tolokers",
    "questions": "Questions",
    "ppi": "PPI",
    "ogbn-arxiv": "ogbn-arxiv",
    "csbm": "cSBM",
}
_LETTERS = {"phi": "φ", "epsilon": "ε"}


def dataset_name(dataset: str, protocol: str = "paper") -> str:
    """A column's name on one line.

    Examples
    --------
    >>> print(", ".join(map(dataset_name, ["cornell-2021", "csbm:phi=-0.5", "computers:r=0.25", "my/graph"])))
    Cornell (before July 2022), cSBM φ = −0.5, Computers r = 0.25, my/graph
    """
    return " ".join(filter(None, dataset_lines(dataset, protocol)))


def dataset_lines(dataset: str, protocol: str = "paper") -> tuple[str, str]:
    """A column's name and what stands below it: a parameter, or what sets it apart.

    A protocol may open another dataset than the one that the table names: then it is that one's name.

    Examples
    --------
    >>> dataset_lines("photo:r=1"), dataset_lines("cornell-2021"), dataset_lines("cornell-2021", "sound")
    (('Photo', 'r = 1'), ('Cornell', '(before July 2022)'), ('Cornell', ''))
    """
    asked = DatasetName.parse(dataset)
    base = PROTOCOLS[protocol].source(dataset) if protocol in PROTOCOLS else asked.base
    if base not in _DATASETS:
        return dataset.removeprefix("./"), ""
    name, bracket, remark = _DATASETS[base].partition(" (")
    details = [f"{_LETTERS.get(key, key)} = {with_minus(value)}" for key, value in asked.parameters]
    return name, " ".join(filter(None, [bracket.strip() + remark, ", ".join(details)]))


def parameter_name(parameter: str) -> str:
    """The letter of a parameter: ``phi`` is φ."""
    return _LETTERS.get(parameter, parameter)
