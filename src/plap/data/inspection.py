"""What a graph is like and whether its edges can help, as numbers: what ``plap inspect`` shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from plap.data.dataset import GraphData, components
from plap.data.measures import MEASURES, gradient_norms, homophily
from plap.errors import InputError

MEANINGS = {
    "edge": "share of edges that join two nodes of the same class",
    "node": "share of a node's neighbours with its own class, averaged over nodes",
    "class_insensitive": "how much classes connect to themselves beyond their size; 0: not at all, 1: fully",
    "adjusted": "edge homophily corrected for chance; 0: like random edges, below 0: classes repel",
    "label_informativeness": "how much a neighbour's class tells about a node's class; 0: none, 1: all",
    "paper": "like node, but along the published, directed edges",
}
_HISTOGRAM_BINS = 30


@dataclass(frozen=True)
class Distribution:
    """Many numbers in a few."""

    minimum: float
    quarter: float
    median: float
    mean: float
    three_quarters: float
    maximum: float
    bin_edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """One measure of homophily; ``value`` is None where it is undefined, and ``meaning`` says why."""

    value: float | None
    meaning: str


@dataclass(frozen=True)
class Inspection:
    """All that ``plap inspect`` says."""

    name: str
    source: str
    nodes: int
    edges: int
    weighted: bool
    isolated: int
    components: int
    largest_component: int
    degrees: Distribution | None
    """Numbers of neighbours."""
    features: int
    features_filled: float
    """Share of the feature matrix that is not 0."""
    features_sparse: bool
    gradient_norms: Distribution | None
    """‖∇f(i)‖ (Eq. 1) of the features, over nodes with edges."""
    labelled: int
    class_sizes: dict[str, int]
    homophily: dict[str, Measure]
    verdict: str
    changes: tuple[str, ...]
    """What was symmetrised, dropped, merged or made up."""
    columns: list[dict[str, Any]]
    """The data dictionary: what each column of a table became, and why; empty for other data."""

    def to_json(self) -> dict[str, Any]:
        """Return only what JSON has: no NaN, no infinity."""
        return asdict(self)


def inspect_graph(data: GraphData) -> Inspection:
    """Compute what ``plap inspect`` shows.

    Examples
    --------
    >>> import plap.data
    >>> found = inspect_graph(plap.data.csbm(n=200, f=8, phi=0.9, seed=0))
    >>> found.nodes, found.class_sizes
    (200, {'0': 100, '1': 100})
    """
    graph = data.graph
    dictionary = None if data.columns is None else data.columns.dictionary
    entries = np.diff(graph.indptr.numpy())
    component_sizes = np.bincount(components(graph))
    measures = _homophily(data)
    filled = int(torch.count_nonzero(data.x if data.x.layout == torch.strided else data.x.values()))
    return Inspection(
        name=data.name,
        source=data.provenance.source,
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        weighted=graph.is_weighted,
        isolated=int((entries == 0).sum()),
        components=component_sizes.size,
        largest_component=int(component_sizes.max(initial=0)),
        degrees=_distribution(entries, whole=True),
        features=data.x.shape[1],
        features_filled=filled / max(data.x.numel(), 1),
        features_sparse=data.x.layout != torch.strided,
        gradient_norms=_distribution(gradient_norms(data.x, graph)[entries > 0]),
        labelled=int(data.known.sum()),
        class_sizes=data.task.class_sizes(data.y),
        homophily=measures,
        verdict=_NUMBERS if data.task.numeric else _verdict(measures),
        changes=data.notes,
        columns=[] if dictionary is None else dictionary.to_json(),
    )


def _distribution(values: NDArray[Any], *, whole: bool = False) -> Distribution | None:
    """Quantiles and a histogram; bins of degrees are whole numbers that grow by a constant factor."""
    if values.size == 0:
        return None
    low, quarter, median, upper, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    if whole and high <= _HISTOGRAM_BINS:
        bins: NDArray[np.float64] = np.arange(high + 2)
    elif whole:
        grid = np.geomspace(1, high + 1, _HISTOGRAM_BINS).round()
        bins = np.unique([0.0, *grid.tolist()])
    else:
        bins = np.linspace(low, high if high > low else low + 1, _HISTOGRAM_BINS + 1)
    counts, _ = np.histogram(values, bins)
    return Distribution(
        low,
        quarter,
        median,
        float(values.mean()),
        upper,
        high,
        tuple(bins.tolist()),
        tuple(counts.tolist()),
    )


def _homophily(data: GraphData) -> dict[str, Measure]:
    found = {}
    for name in MEASURES:
        try:
            found[name] = Measure(homophily(data, measure=name), MEANINGS[name])
        except InputError as error:
            found[name] = Measure(None, str(error))
    return found


_NUMBERS = (
    "Labels are numbers, for which homophily is not defined: compare a model with edges and one without."
)


def _verdict(measures: dict[str, Measure]) -> str:
    """One sentence on whether the edges can help."""
    adjusted, informative = measures["adjusted"].value, measures["label_informativeness"].value
    if adjusted is None or informative is None:
        return "Whether the edges can help is unknown: too few of them join nodes with known labels."
    if adjusted >= 0.3:
        return (
            "The edges can help: they join nodes of the same class far more often than chance, "
            "so averaging over neighbours (p = 2) is a good start."
        )
    if informative >= 0.1:
        return (
            "The edges can help, but not by plain averaging: classes connect in a pattern of their own, "
            "so try several values of p and compare with a model without edges."
        )
    if adjusted >= 0.1:
        return (
            "The edges can help a little: they join nodes of the same class somewhat more often than chance, "
            "so try p below 2, which trusts fewer of them."
        )
    return (
        "The edges hardly help: a neighbour's class says almost nothing about a node's own, "
        "so a model without edges is the one to beat."
    )
