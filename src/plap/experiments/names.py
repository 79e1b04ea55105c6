"""Names as a reader knows them; what a user named is shown as it is."""

from __future__ import annotations

import re

from plap.experiments.protocol import PROTOCOLS, split_parameters
from plap.reporting.number_text import with_minus

_MODELS = {
    "mlp": "MLP",
    "gcn": "GCN",
    "sgc": "SGC",
    "gat": "GAT",
    "jknet": "JKNet",
    "appnp": "APPNP",
    "gprgnn": "GPRGNN",
    "deepgcn": "DeepGCN",
    "pgnn": "pGNN",
    "cs": "C&S",
    "cs-v2": "C&S v2",
}
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
_WITH_NUMBERS = re.compile(r"(?P<base>pgnn|gat|residual)-(?P<first>\d+(?:\.\d+)?)(?:-(?P<second>\w+))?")


def model_name(model: str) -> str:
    """A row's name.

    Examples
    --------
    >>> print(", ".join(map(model_name, ["mlp", "pgnn-1.5", "gcn+pgnn-1.0", "my-model"])))
    MLP, pGNN p = 1.5, GCN + pGNN 1.0, my-model
    >>> print(", ".join(map(model_name, ["gat-4-heads", "pgnn-2.0+residual-6+cs"])))
    GAT 4 heads, pGNN 2.0 + residual 6 + C&S
    """
    parts = model.split("+")
    names = [_part(part, alone=len(parts) == 1) for part in parts]
    return model if None in names else " + ".join(filter(None, names))


def _part(part: str, *, alone: bool) -> str | None:
    if part in _MODELS:
        return _MODELS[part]
    found = _WITH_NUMBERS.fullmatch(part)
    if found is None:
        return None
    base, first, second = found["base"], found["first"], found["second"]
    if base == "pgnn":
        power = f"p = {first}" if alone else first
        return f"pGNN {power}, {second} units" if second else f"pGNN {power}"
    return " ".join(filter(None, [_MODELS.get(base, base), first, second]))


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
    base, parameters = split_parameters(dataset)
    if protocol in PROTOCOLS:
        base = dict(PROTOCOLS[protocol].renamed).get(base, base)
    if base not in _DATASETS:
        return dataset.removeprefix("./"), ""
    name, bracket, remark = _DATASETS[base].partition(" (")
    details = [f"{_LETTERS.get(key, key)} = {with_minus(value)}" for key, value in parameters.items()]
    return name, " ".join(filter(None, [bracket.strip() + remark, ", ".join(details)]))


def parameter_name(parameter: str) -> str:
    """The letter of a parameter: ``phi`` is φ."""
    return _LETTERS.get(parameter, parameter)
