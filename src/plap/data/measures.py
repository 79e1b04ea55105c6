"""What edges say about labels and features, one measure at a time and as ``plap inspect`` shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.data.dataset import GraphData, components
from plap.errors import InputError
from plap.graph import Graph
from plap.sparse import scipy_from_tensor


def homophily(data: GraphData | Graph, y: Tensor | None = None, *, measure: str = "edge") -> float:
    r"""Measure how far the edges join nodes of the same class.

    With E undirected edges, classes k = 1..C of :math:`n_k` nodes, :math:`D_k` the sum of the degrees in
    class k, :math:`\bar p_k = D_k / 2E` and :math:`p_{kl}` the share of edge ends in k whose other end is
    in l:

    ======================== ==============================================================================
    edge                     :math:`h = \sum_k p_{kk}`, the share of edges that join equals
    node                     mean over nodes with neighbours of the share of neighbours with the own label
    class_insensitive        :math:`\frac{1}{C-1} \sum_k \max(0, p_{kk} / \bar p_k - n_k / N)` (Lim et al.)
    adjusted                 :math:`(h - \sum_k \bar p_k^2) / (1 - \sum_k \bar p_k^2)` (Platonov et al.)
    label_informativeness    :math:`I(y_i; y_j) / H(y_i)` for a random edge ij (Platonov et al.)
    paper                    as ``node``, but over out-neighbours in the directed graph as published
    ======================== ==============================================================================

    Edges count once whatever their weight, self-loops do not count, and a node with an unknown label (-1)
    counts as absent. All but ``paper`` look at the undirected graph; ``paper`` looks at
    ``data.directed_edge_index`` where there is one, and gives the values of the paper's table
    "Statistics of datasets".

    Parameters
    ----------
    data : GraphData or Graph
    y : Tensor, shape [N], integer
        Labels if ``data`` is a ``Graph``; -1 where unknown.
    measure : str
        One of the names above.

    Examples
    --------
    >>> import plap, torch
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> homophily(path, torch.tensor([0, 0, 1, 1]))
    0.6666666666666666
    >>> homophily(path, torch.tensor([0, 1, 0, 1]), measure="adjusted")
    -1.0
    """
    if measure not in _MEASURES:
        raise InputError(f"measure must be one of {', '.join(_MEASURES)}, not {measure!r}")
    edge_index, labels = _edges_and_labels(data, y, directed=measure == "paper")
    node, neighbour = edge_index
    known = (node != neighbour) & (labels[node] >= 0) & (labels[neighbour] >= 0)
    node, neighbour = node[known], neighbour[known]
    if node.numel() == 0:
        raise InputError(f"{measure} homophily is undefined: no edge joins two nodes with known labels")
    return _MEASURES[measure](node, neighbour, labels)


def _edges_and_labels(data: GraphData | Graph, y: Tensor | None, *, directed: bool) -> tuple[Tensor, Tensor]:
    """Edges as rows (node, neighbour) and labels, checked."""
    graph = data.graph if isinstance(data, GraphData) else data
    if not isinstance(graph, Graph):
        raise InputError(f"data must be a plap.Graph or a GraphData, not {type(data).__name__}")
    labels = data.y if isinstance(data, GraphData) and y is None else y
    if labels is None:
        raise InputError("homophily of a Graph needs its labels y")
    if not isinstance(labels, Tensor):
        raise InputError(f"y must be a tensor, not {type(labels).__name__}")
    if labels.shape != (graph.num_nodes,) or labels.dtype.is_floating_point:
        raise InputError(
            f"homophily needs one class per node: integer labels of shape [{graph.num_nodes}], "
            f"not {labels.dtype} of shape {list(labels.shape)}"
        )
    edges = graph.edge_index.flip(0)
    if directed and isinstance(data, GraphData) and data.directed_edge_index is not None:
        edges = data.directed_edge_index
    return edges.to(labels.device), labels.long()


def _edge(node: Tensor, neighbour: Tensor, y: Tensor) -> float:
    return float((y[node] == y[neighbour]).double().mean())


def _node(node: Tensor, neighbour: Tensor, y: Tensor) -> float:
    total = torch.bincount(node, minlength=y.shape[0])
    equal = torch.bincount(node[y[node] == y[neighbour]], minlength=y.shape[0])
    has_any = total > 0
    return float((equal[has_any].double() / total[has_any]).mean())


def _class_insensitive(node: Tensor, neighbour: Tensor, y: Tensor) -> float:
    joint = _joint(node, neighbour, y)
    share = torch.bincount(y[y >= 0], minlength=joint.shape[0]).double()
    share /= share.sum()
    ends = joint.sum(1)
    own = torch.where(ends > 0, joint.diagonal() / ends.clamp(min=1e-300), 0.0)
    return float((own - share).clamp(min=0).sum() / (_at_least_two(share) - 1))


def _adjusted(node: Tensor, neighbour: Tensor, y: Tensor) -> float:
    joint = _joint(node, neighbour, y)
    _at_least_two(joint.sum(1))
    expected = joint.sum(1).square().sum()
    return float((joint.trace() - expected) / (1 - expected))


def _label_informativeness(node: Tensor, neighbour: Tensor, y: Tensor) -> float:
    joint = _joint(node, neighbour, y)
    _at_least_two(joint.sum(1))
    return float(2 - _entropy(joint) / _entropy(joint.sum(1)))


def _joint(node: Tensor, neighbour: Tensor, y: Tensor) -> Tensor:
    """p_kl: share of the directed edges from class k to class l, float64 [C, C]."""
    classes = int(y.max()) + 1
    counts = torch.bincount(y[node] * classes + y[neighbour], minlength=classes * classes)
    return counts.reshape(classes, classes).double() / node.numel()


def _entropy(probability: Tensor) -> Tensor:
    positive = probability[probability > 0]
    return -(positive * positive.log()).sum()


def _at_least_two(share: Tensor) -> int:
    """Number of classes that occur, refused if there is only one."""
    classes = int((share > 0).sum())
    if classes < 2:
        raise InputError("this measure is undefined: all labelled nodes with edges are of one class")
    return classes


_MEASURES: dict[str, Callable[[Tensor, Tensor, Tensor], float]] = {
    "edge": _edge,
    "node": _node,
    "class_insensitive": _class_insensitive,
    "adjusted": _adjusted,
    "label_informativeness": _label_informativeness,
    "paper": _node,
}
MEASURES = tuple(_MEASURES)
"""Names that :func:`homophily` takes as ``measure``."""


_CELLS = 1 << 22
"""Numbers that one step may hold beside the features."""


def gradient_norms(x: Tensor, graph: Graph) -> NDArray[np.float64]:
    r"""Return ‖∇f(i)‖ of every node, float64 [N], for f given by the rows of dense or CSR ``x`` [N, F].

    .. math::
        \|\nabla f(i)\|^2 = \sum_j \Bigl\| \sqrt{W_{ij}/D_j}\, f(j) - \sqrt{W_{ij}/D_i}\, f(i) \Bigr\|^2
        = (W s)_i + D_i s_i - 2\, g_i \cdot (W g)_i, \qquad g_i = f(i)/\sqrt{D_i},\; s_i = \|g_i\|^2

    The last form needs no array of edges × features, and no dense one of sparse features. What is left of
    its cancellation, 1e-7 of the two terms' root, is rounded to 0.

    Examples
    --------
    >>> import plap
    >>> gradient_norms(torch.tensor([[0.0], [2.0], [2.0]]), plap.Graph.from_edges([(0, 1), (1, 2)]))
    array([1.41421356, 1.53073373, 0.58578644])
    """
    n = graph.num_nodes
    degree = graph.degree.detach().double().numpy()
    scale = np.divide(1, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    g = _rows(x, scale)
    matrix = graph.to_scipy(copy=False)
    square = _row_sums(g * g)
    terms = matrix @ square + degree * square
    norms: NDArray[np.float64] = np.zeros(n)
    for start, stop in _blocks(matrix, g):
        own, around = g[start:stop], matrix[start:stop] @ g
        norms[start:stop] = terms[start:stop] - 2 * _row_sums(own * around)
    norms[norms <= 1e-14 * terms] = 0
    return np.sqrt(norms)


def _rows(x: Tensor, scale: NDArray[np.float64]) -> Any:
    """Features as float64, each row times its scale, sparse if ``x`` is."""
    if x.layout == torch.strided:
        return x.detach().double().numpy() * scale[:, None]
    matrix = scipy_from_tensor(x).astype(np.float64)
    matrix.data *= np.repeat(scale, np.diff(matrix.indptr))
    return matrix


def _row_sums(matrix: Any) -> NDArray[np.float64]:
    return np.asarray(matrix.sum(axis=1)).ravel()


def _blocks(matrix: scipy.sparse.csr_array, g: Any) -> list[tuple[int, int]]:
    """Ranges of rows whose product with ``g`` stays small."""
    n = matrix.shape[0]
    entries = np.diff(matrix.indptr).astype(np.int64)
    width = g.shape[1]
    if scipy.sparse.issparse(g):
        filled = g.nnz / max(n, 1)
        cost = np.minimum(width, 1 + entries * filled)
    else:
        cost = np.full(n, float(width))
    part = (np.cumsum(cost) // _CELLS).astype(np.int64)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True)) if n else []


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
        verdict=_verdict(data, measures),
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


def _verdict(data: GraphData, measures: dict[str, Measure]) -> str:
    """One sentence on whether the edges can help."""
    if not data.graph.num_edges:
        return "There are no edges that could help."
    if not data.task.one_class_per_node:
        labels = "Labels are numbers" if data.task.numeric else "A node may have several labels"
        return f"{labels}, for which homophily is not defined: compare a model with edges and one without."
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
