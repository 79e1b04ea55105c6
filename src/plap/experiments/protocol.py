"""The rules by which runs are compared: the paper's, sound ones, or given masks; every result names them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from plap.checks import check_choice
from plap.data import GraphData, Split, load, perturb_edges, split
from plap.data.benchmarks.registry import BENCHMARKS
from plap.data.dataset import DatasetName, largest_component
from plap.data.resolve import open_graph
from plap.data.tasks import Task
from plap.errors import InputError

_PAPER_SEED = 2021


@dataclass(frozen=True)
class Protocol:
    """A way to turn the name of a dataset and the seed of a run into a graph and a split."""

    name: str
    rules: tuple[str, ...]
    """Sentences for the reader of a result."""
    kind: str
    """Kind of split, see :func:`plap.data.split`."""
    fixed_seed: int | None
    """Seed of the split, noise and cSBM of all runs; None: each run uses its own seed."""
    largest_components: frozenset[str] = frozenset()
    """Datasets that are reduced to their largest component."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Datasets that others are opened for."""
    two_class_metric: str | None = None
    """Metric of datasets with two classes; None: that of the task, which is accuracy."""

    def task(self, data: GraphData) -> Task:
        """What is predicted, with the metric that training and the result go by."""
        if self.two_class_metric is None or not data.task.one_class_per_node or data.num_classes != 2:
            return data.task
        return data.task.with_metric(self.two_class_metric)

    def draw(self, seed: int) -> int:
        """The seed for the data of the run ``seed``."""
        return seed if self.fixed_seed is None else self.fixed_seed

    def open(self, dataset: str, seed: int) -> GraphData:
        """The graph of ``dataset``; ``:r=0.5`` after its name makes half of its edges random.

        Examples
        --------
        >>> PROTOCOLS["sound"].open("csbm:phi=1,n=100,f=4,r=0.5", seed=0).graph.num_nodes
        100
        """
        return self.open_drawn(dataset, self.data_seed(dataset, seed))

    def data_seed(self, dataset: str, seed: int) -> int:
        """The seed of the graph of the run ``seed``: equal for runs on the same graph."""
        return self.draw(seed) if _is_random(dataset) else 0

    def open_drawn(self, dataset: str, data_seed: int) -> GraphData:
        """The graph that :meth:`open` returns for every run with this data seed."""
        return _open(self.name, dataset, data_seed)

    def split(self, dataset: str, seed: int, preset: str) -> Split:
        """The split of the run ``seed``, on the graph that :meth:`open` returns for it."""
        data = self.open(dataset, seed)
        if preset == "public":
            public = data.splits.train.shape[1] if data.splits is not None else 1
            return split(data, "public", index=0 if self.fixed_seed is not None else seed % public)
        return split(data, self.kind, preset=preset, seed=self.draw(seed))

    def rules_of(self, split: str) -> tuple[str, ...]:
        """The rules where this split is used: ``sparse``, ``dense`` or ``public``."""
        if split != "public" or self.fixed_seed is not None:
            return self.rules
        return (f"Protocol {self.name}: the splits that came with the data, in turn.", *self.rules[1:])

    def source(self, dataset: str) -> str:
        """Name of the dataset that is opened for ``dataset``, without its noise."""
        base = DatasetName.parse(dataset).base
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
    "masks": Protocol(
        "masks",
        (
            "Protocol masks: the masks that came with the data, one after another; where none did, a new "
            "stratified split for every run.",
            "ROC-AUC where there are two classes, otherwise accuracy, as the data's authors have it; whole, "
            "undirected graphs.",
        ),
        "stratified",
        None,
        two_class_metric="roc_auc",
    ),
}


def find_protocol(name: str) -> Protocol:
    """``paper``, ``sound`` or ``masks``."""
    return PROTOCOLS[check_choice("protocol", name, PROTOCOLS)]


@lru_cache(maxsize=2)
def _open(protocol_name: str, dataset: str, seed: int) -> GraphData:
    protocol, asked = PROTOCOLS[protocol_name], DatasetName.parse(dataset)
    rate = asked.value("r")
    source = asked.without("r").with_base(protocol.source(dataset))
    data = _load(protocol_name, str(_with_seed(source, seed)))
    if rate is None:
        return data
    return replace(data, graph=perturb_edges(data.graph, _rate(rate, dataset), seed).graph)


@lru_cache(maxsize=2)
def _load(protocol_name: str, name: str) -> GraphData:
    data = open_graph(name) if DatasetName.parse(name).is_path else load(name)
    return largest_component(data) if name in PROTOCOLS[protocol_name].largest_components else data


def _with_seed(name: DatasetName, seed: int) -> DatasetName:
    if name.is_csbm:
        drawn = () if name.value("seed") is not None else (("seed", str(seed)),)
        return DatasetName(name.base, (*name.parameters, *drawn))
    if name.base in BENCHMARKS and BENCHMARKS[name.base].rates:
        return name
    for key, _ in name.parameters:
        raise InputError(f"{name.base} has no parameter {key!r}: only r, the share of random edges")
    return name


def _is_random(dataset: str) -> bool:
    name = DatasetName.parse(dataset)
    return name.is_csbm or name.value("r") is not None


def _rate(value: str, dataset: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{dataset}: r must be a number from 0 to 1, not {value!r}") from None
