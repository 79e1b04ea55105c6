"""By which rules runs are compared: the paper's own, or sound ones. Explicit in every result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from plap.data import GraphData, Split, load, perturb_edges, split
from plap.data.components import largest_component
from plap.data.resolve import open_graph
from plap.errors import InputError
from plap.experiments.own_files import is_path

_PAPER_SEED = 2021


@dataclass(frozen=True)
class Protocol:
    """A way to turn the name of a dataset and the seed of a run into a graph and a split."""

    name: str
    rules: tuple[str, ...]
    """A sentence each, for the reader of a result."""
    kind: str
    """Of split, as :func:`plap.data.split` names it."""
    fixed_seed: int | None
    """What all runs draw their split, noise and cSBM with; None: each run its own seed."""
    largest_components: frozenset[str] = frozenset()
    renamed: tuple[tuple[str, str], ...] = ()

    def draw(self, seed: int) -> int:
        """The seed of the data that belongs to the run ``seed``."""
        return seed if self.fixed_seed is None else self.fixed_seed

    def open(self, dataset: str, seed: int) -> GraphData:
        """The graph of ``dataset``; ``:r=0.5`` behind its name makes half of its edges random.

        Examples
        --------
        >>> PROTOCOLS["sound"].open("csbm:phi=1,n=100,f=4,r=0.5", seed=0).graph.num_nodes
        100
        """
        return self.open_drawn(dataset, self.data_seed(dataset, seed))

    def data_seed(self, dataset: str, seed: int) -> int:
        """What the graph of the run ``seed`` is drawn with: equal for runs that have one graph."""
        return self.draw(seed) if _is_random(dataset) else 0

    def open_drawn(self, dataset: str, data_seed: int) -> GraphData:
        """The graph that :meth:`open` gives for every run of this data seed."""
        return _open(self.name, dataset, data_seed)

    def split(self, dataset: str, seed: int, preset: str) -> Split:
        """The split of the run ``seed``, of the graph that :meth:`open` gives for it."""
        data = self.open(dataset, seed)
        if preset == "public":
            public = data.splits.train.shape[1] if data.splits is not None else 1
            return split(data, "public", index=0 if self.fixed_seed is not None else seed % public)
        return split(data, self.kind, preset=preset, seed=self.draw(seed))

    def source(self, dataset: str) -> str:
        """The dataset's name as it is opened, without its noise: what must be there for it to run."""
        base, _ = split_parameters(dataset)
        return dict(self.renamed).get(base, base)


PROTOCOLS: dict[str, Protocol] = {
    "paper": Protocol(
        "paper",
        (
            "Protocol paper: one split for all runs, drawn as in the published code (seed 2021), which "
            "leaves out very small classes; runs differ only in their initialisation and dropout.",
            "Cornell has the features and labels of Texas, as published until July 2022; Computers and Photo "
            "are reduced to their largest components; graphs are made undirected, unlike in the paper.",
            "All runs use the same noisy graph and the same cSBM.",
        ),
        "paper",
        _PAPER_SEED,
        frozenset({"computers", "photo"}),
    ),
    "sound": Protocol(
        "sound",
        (
            "Protocol sound: a new stratified split for every run; no class is left out.",
            "Cornell as corrected in July 2022; whole, undirected graphs; new noise and a new cSBM for every "
            "run.",
        ),
        "stratified",
        None,
        renamed=(("cornell-2021", "cornell"),),
    ),
}


def find_protocol(name: str) -> Protocol:
    """``paper`` or ``sound``."""
    if name not in PROTOCOLS:
        raise InputError(f"protocol must be one of {', '.join(PROTOCOLS)}, not {name!r}")
    return PROTOCOLS[name]


@lru_cache(maxsize=2)
def _open(protocol_name: str, dataset: str, seed: int) -> GraphData:
    protocol = PROTOCOLS[protocol_name]
    _, parameters = split_parameters(dataset)
    rate = parameters.pop("r", None)
    data = _load(protocol_name, _with_seed(protocol.source(dataset), parameters, seed))
    if rate is None:
        return data
    return replace(data, graph=perturb_edges(data.graph, _rate(rate, dataset), seed).graph)


@lru_cache(maxsize=2)
def _load(protocol_name: str, name: str) -> GraphData:
    data = open_graph(name) if is_path(name) else load(name)
    return largest_component(data) if name in PROTOCOLS[protocol_name].largest_components else data


def _with_seed(base: str, parameters: dict[str, str], seed: int) -> str:
    if base == "csbm":
        parameters = {**parameters, "seed": parameters.get("seed", str(seed))}
    elif parameters:
        raise InputError(
            f"{base} has no parameter {next(iter(parameters))!r}: only r, the share of random edges"
        )
    return base + (
        ":" + ",".join(f"{key}={value}" for key, value in parameters.items()) if parameters else ""
    )


def _is_random(dataset: str) -> bool:
    base, parameters = split_parameters(dataset)
    return base == "csbm" or "r" in parameters


def split_parameters(dataset: str) -> tuple[str, dict[str, str]]:
    """What stands before the last colon, and the parameters behind it.

    Examples
    --------
    >>> split_parameters("csbm:phi=-0.5,n=100")
    ('csbm', {'phi': '-0.5', 'n': '100'})
    >>> split_parameters("a:folder/graph")
    ('a:folder/graph', {})
    """
    base, colon, arguments = dataset.rpartition(":")
    if not colon or "=" not in arguments:
        return dataset, {}
    pairs = (entry.partition("=") for entry in arguments.split(",") if entry)
    return base, {key.strip(): value.strip() for key, _, value in pairs}


def _rate(value: str, dataset: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{dataset}: r must be a number from 0 to 1, not {value!r}") from None
