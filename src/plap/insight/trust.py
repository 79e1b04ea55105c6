"""How far each edge can be trusted, judged by a trained model; and simple scores of pairs to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, SplineTransformer
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from plap.calculus import over_root_degree
from plap.checks import check_integer
from plap.data.sampling import generator, rank_pairs, sample_absent_pairs, sample_distinct, unrank_pairs
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.insight.members import as_members, check_features, evaluating, learned_weights, relative_weights
from plap.models import model_of, models_with
from plap.nn.linear import Features, node_count, wide
from plap.sparse import scipy_from_tensor

if TYPE_CHECKING:
    from torch_geometric.explain import Explanation

_COMPARED = 20_000
"""Maximum number of edges, and of pairs without an edge, that the comparison is learned from."""
_KNOTS = 5
_LEAST_BELIEF = 1e-6
_FOLDS = 5


def edge_trust(
    members: Sequence[torch.nn.Module] | torch.nn.Module,
    x: Features,
    graph: Graph,
    *,
    folds: int = _FOLDS,
    seed: int = 0,
    sample: int | None = None,
) -> Tensor:
    """The odds that each edge is an edge rather than a random pair of nodes without one.

    The edges are divided into ``folds`` parts, and each is judged by states that were propagated without its
    part: an edge pulls its own ends together, so that with it in place even a random edge would look right.
    The members' evidence about a pair (:func:`plap.insight.pair_evidence`, averaged), the cosine of its
    features and the Jaccard index of its neighbours, without the two nodes themselves and self-loops, go into
    a logistic regression that separates edges from pairs of nodes without an edge, both classes with equal
    weight; its odds are the trust. Labels enter only through the trained members, and whether similar or
    dissimilar nodes are joined is learned, not assumed.

    Where many edges are false, they would be examples of an edge as well. Members whose penalty leaves out
    edges that are too long (MCP, for instance) say which: an edge then counts as an example as far as it
    counts for the members on average, at most once. For members with other penalties every edge counts.

    Parameters
    ----------
    members : sequence of PGNN, or one PGNN
        As returned by :func:`plap.insight.load_members`; more members give better scores.
    x : Tensor or sparse matrix, shape [N, F]
    graph : Graph
    folds : int, at least 2
    seed : int
        Random seed for the parts and the pairs.
    sample : int, at least 1, optional
        Judge so many edges drawn at random, all in one part: for graphs with millions of edges.

    Returns
    -------
    Tensor, float64, shape [entries]
        Equal for both directions of an edge; 1 is chance; NaN for a kept self-loop and for an edge that was
        not drawn.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=200, f=20, seed=1)
    >>> trust = edge_trust([plap.nn.PGNN(20, 8, 2)], data.x, data.graph)
    >>> trust.shape == data.graph.weight.shape
    True
    """
    members = as_members(members)
    check_features(x, graph)
    folds = check_integer("folds", folds, 2)
    sample = None if sample is None else check_integer("sample", sample, 1)
    once = graph.edges_once()
    if not _has_both(graph, once.shape[0]):
        raise InputError(
            "edge trust compares edges with pairs of nodes without an edge; the graph must have both"
        )
    rng = generator(seed)
    joined, reverse = graph.edge_index[:, once], graph.reverse_entries()
    apart = _pairs_apart(graph, joined, rng)
    if sample is not None and sample < once.shape[0]:
        drawn = torch.from_numpy(sample_distinct(rng, once.shape[0], sample))
        once, joined, folds = once[drawn], joined[:, drawn], 1
    asked = torch.cat([joined, apart], dim=1)
    part = torch.from_numpy(rng.permutation(asked.shape[1]) % folds)
    rests = _without_each_part(graph, once, reverse[once], part)
    evidence = np.column_stack(
        [
            _judged(members, x, rests, asked),
            feature_cosine(x, asked),
            _others_jaccard(graph, asked, joined.shape[1]),
        ]
    )
    odds = _odds(evidence, _belief(members, x, graph)[once].numpy(), rng)
    trust = torch.full((graph.num_entries,), torch.nan, dtype=torch.float64)
    trust[once] = torch.from_numpy(odds)
    trust[reverse[once]] = trust[once]
    return trust


def can_be_judged(graph: Graph) -> bool:
    """Whether the graph has both an edge and a pair of nodes without one."""
    return _has_both(graph, graph.edges_once().shape[0])


def _has_both(graph: Graph, edges: int) -> bool:
    return 0 < edges < graph.num_nodes * (graph.num_nodes - 1) // 2


def _pairs_apart(graph: Graph, joined: Tensor, rng: np.random.Generator) -> Tensor:
    """As many pairs without an edge as there are edges, but no more than the comparison uses."""
    n, edges = graph.num_nodes, joined.shape[1]
    absent = n * (n - 1) // 2 - edges
    ranks = np.sort(rank_pairs(*joined.numpy()))
    drawn = sample_absent_pairs(rng, n, ranks, min(edges, absent, _COMPARED))
    return torch.from_numpy(np.stack(unrank_pairs(drawn)))


def _judged(
    members: Sequence[Any], x: Features, rests: Iterable[tuple[NDArray[Any], Graph]], asked: Tensor
) -> NDArray[np.float64]:
    """Evidence about each pair, on the graph without its part's edges: the mean of members of each kind."""
    rows: NDArray[np.float64] | None = None
    for chosen, rest in rests:
        alike: dict[tuple[type, int], list[Tensor]] = {}
        for member in members:
            evidence = pair_evidence(member, x, rest, asked[:, chosen])
            alike.setdefault((type(member), evidence.shape[1]), []).append(evidence)
        mean = np.hstack([torch.stack(each).double().mean(0).numpy() for each in alike.values()])
        rows = np.empty((asked.shape[1], mean.shape[1])) if rows is None else rows
        rows[chosen] = mean
    assert rows is not None
    return rows


def _without_each_part(
    graph: Graph, once: Tensor, reverse: Tensor, part: Tensor
) -> Iterator[tuple[NDArray[Any], Graph]]:
    """Which pairs belong to each part, and the graph without their edges; self-loops stay.

    ``once`` and ``reverse`` are the two entries of each edge.
    """
    for number in part.unique().tolist():
        kept = torch.ones(graph.num_entries, dtype=torch.bool)
        mine = part[: once.shape[0]] == number
        kept[once[mine]] = kept[reverse[mine]] = False
        before = torch.zeros(graph.num_entries + 1, dtype=graph.indptr.dtype)
        torch.cumsum(kept, 0, out=before[1:])
        rest = Graph(
            before[graph.indptr.long()], graph.indices[kept], graph.weight.detach()[kept], graph.info
        )
        yield (part == number).numpy(), rest


def _belief(members: Sequence[torch.nn.Module], x: Features, graph: Graph) -> Tensor:
    """How far each entry is an example of an edge, from 0 to 1: wholly for members that leave none out."""
    doubting = [member for member in members if _leaves_edges_out(member)]
    total = torch.full((graph.num_entries,), float(len(members) - len(doubting)), dtype=torch.float64)
    for member in doubting:
        total += relative_weights(learned_weights(member, x, graph), graph)
    return (total / len(members)).clamp(_LEAST_BELIEF, 1)


def _leaves_edges_out(member: torch.nn.Module) -> bool:
    kind = model_of(member)
    return kind is not None and kind.leaves_edges_out is not None and kind.leaves_edges_out(member)


def _odds(
    evidence: NDArray[np.float64], belief: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Odds that each of the first rows, one per entry of ``belief``, is an edge.

    The edges, each weighed by its belief, and the other pairs count the same in total.
    """
    edges = belief.size
    some = sample_distinct(rng, edges, min(edges, _COMPARED))
    rows = np.concatenate([evidence[some], evidence[edges:]])
    is_edge = np.arange(rows.shape[0]) < some.size
    knots = np.tile(np.linspace(0, 1, _KNOTS)[:, None], rows.shape[1])
    comparison = make_pipeline(
        QuantileTransformer(n_quantiles=min(1000, rows.shape[0]), subsample=None),
        SplineTransformer(knots=knots, extrapolation="constant"),
        LogisticRegression(solver="newton-cholesky"),
    ).fit(rows, is_edge, logisticregression__sample_weight=_balanced(belief[some], rows.shape[0]))
    parts = [
        comparison.decision_function(evidence[start : min(start + _COMPARED, edges)])
        for start in range(0, edges, _COMPARED)
    ]
    odds: NDArray[np.float64] = np.exp(np.concatenate(parts))
    return odds


def _balanced(belief: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Weights of all rows: those of the edges, which come first, sum to those of the other pairs."""
    others = np.ones(rows - belief.size)
    weights = [part * (rows / 2 / part.sum()) for part in (belief, others)]
    return np.concatenate(weights)


def trust_explanation(
    members: Sequence[torch.nn.Module] | torch.nn.Module, x: Features, graph: Graph, **options: Any
) -> Explanation:
    """Edge trust as a ``torch_geometric.explain.Explanation``.

    Its ``edge_mask`` is t / (1 + t) of the odds t of :func:`plap.insight.edge_trust`: 1 is an edge beyond
    doubt, and 0.5 is chance, which edges that were not judged have too. ``trust`` holds the odds themselves,
    and ``x`` and ``edge_index`` the graph, so that PyG's ``threshold``, ``get_explanation_subgraph`` and
    ``visualize_graph`` work as usual.

    Parameters
    ----------
    members, x, graph, options :
        As for :func:`plap.insight.edge_trust`.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=60, f=8, d=5.0, seed=1)
    >>> found = trust_explanation([plap.nn.PGNN(8, 8, 2)], data.x, data.graph)
    >>> found.edge_mask.shape[0] == found.edge_index.shape[1]
    True
    """
    from torch_geometric.explain import Explanation  # noqa: PLC0415  (slow to import)

    trust = edge_trust(members, x, graph, **options)
    share = torch.where(trust.isnan(), 0.5, trust / (1 + trust)).nan_to_num(1.0)
    explanation = Explanation(
        x=x, edge_index=graph.edge_index, edge_mask=share.float(), trust=trust, num_nodes=graph.num_nodes
    )
    explanation.validate(raise_on_error=True)
    return explanation


_ROWS_AT_A_TIME = 1 << 14
"""Pairs whose features are in memory at a time."""
_STATES_AT_A_TIME = 1 << 16
"""Pairs whose states are in memory at a time."""
_LEAST_NORM = 1e-300


def pair_evidence(member: torch.nn.Module, x: Features, graph: Graph, pairs: Tensor) -> Tensor:
    """How similar the states of two nodes are before and after propagation, with or without an edge.

    For each of the model's states (pGNN: after 0, 1, 2 and K steps): the cosine of the two states, the cosine
    of their differences from the mean state, and −log ‖∇F‖ of an edge that would join them; the aggregation
    weight of that edge is a power of ‖∇F‖ (Eq. 12). Finally the probability that both nodes have the same
    class, by the module's predictions.

    Parameters
    ----------
    member : PGNN, or the module of a model with :attr:`plap.models.ModelKind.pair_states`
    x : Tensor or sparse matrix, shape [N, F]
    graph : Graph
        The graph to propagate on; it should not contain the edges that are being judged.
    pairs : Tensor, shape [2, P]

    Returns
    -------
    Tensor, shape [P, columns]

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> pair_evidence(plap.nn.PGNN(3, 4, 2), torch.eye(3), path, torch.tensor([[0], [2]])).shape
    torch.Size([1, 13])
    """
    kind = model_of(member)
    if kind is None or kind.pair_states is None:
        raise InputError(
            f"edge trust is defined for {models_with('pair_states')}, not for {type(member).__name__}"
        )
    check_features(x, graph)
    pairs = _checked_pairs(pairs, graph.num_nodes)
    with evaluating(member):
        found = kind.pair_states(member, x, graph)
        columns: list[Tensor] = []
        for state in found.states:
            # squares of float32 overflow from 1e19 on
            direction = normalize(state.double(), eps=_LEAST_NORM).to(state.dtype)
            centred = direction - direction.mean(0)
            columns += [
                _per_pair(_product, direction, pairs),
                _per_pair(cosine_similarity, centred, pairs),
                _per_pair(_closeness, over_root_degree(state, graph), pairs),
            ]
        columns.append(_per_pair(_product, found.probabilities, pairs))
    return torch.stack(columns, dim=1)


def feature_cosine(x: Features, pairs: Tensor) -> NDArray[np.float64]:
    """Cosine between the features of the two nodes of each pair; 0 where a node has only zeros.

    Parameters
    ----------
    x : Tensor or sparse matrix, shape [N, F]
    pairs : Tensor, shape [2, P]

    Examples
    --------
    >>> feature_cosine(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), torch.tensor([[0, 0], [1, 2]]))
    array([0.70710678, 0.        ])
    """
    pairs = _checked_pairs(pairs, node_count(x))
    rows = _scaled(_rows(x))
    square = np.asarray((rows * rows).sum(axis=1), dtype=np.float64).ravel()
    norm = np.sqrt(square[pairs[0]] * square[pairs[1]])
    return _quotients(_row_products(rows, pairs), norm)


def neighbour_jaccard(graph: Graph, pairs: Tensor) -> NDArray[np.float64]:
    """Jaccard index of the neighbours of the two nodes of each pair: shared over all; weights are ignored.

    Parameters
    ----------
    graph : Graph
    pairs : Tensor, shape [2, P]

    Examples
    --------
    >>> import plap
    >>> square = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    >>> neighbour_jaccard(square, torch.tensor([[0, 0], [1, 2]]))
    array([0.25, 0.5 ])
    """
    pairs = _checked_pairs(pairs, check_graph(graph).num_nodes)
    return _jaccard(graph.to_scipy(weighted=False, copy=False), pairs)


def _others_jaccard(graph: Graph, pairs: Tensor, joined: int) -> NDArray[np.float64]:
    """:func:`neighbour_jaccard` without self-loops and the two nodes themselves, so blind to their own edge.

    The first ``joined`` pairs are edges, the others are not. Without loops neither node is a common
    neighbour, and each end of an edge is in the neighbourhood of the other.
    """
    rows = graph.to_scipy(weighted=False, copy=False)
    if graph.num_self_loops:
        rows = rows.copy()
        rows.setdiag(0)
        rows.eliminate_zeros()
    return _jaccard(rows, pairs, left_out=2 * (np.arange(pairs.shape[1]) < joined))


def _jaccard(rows: Any, pairs: Tensor, left_out: NDArray[Any] | int = 0) -> NDArray[np.float64]:
    """Stored entries that two rows share, over those of either; ``left_out`` of each union do not count."""
    common, count = _row_products(rows, pairs), np.diff(rows.indptr)
    return _quotients(common, count[pairs[0]] + count[pairs[1]] - common - left_out)


def attention_trust(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """GAT's attention relative to uniform attention, averaged over heads and both directions; [entries].

    Examples
    --------
    >>> import plap
    >>> graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> attention_trust(plap.nn.baselines.GAT(3, 4, 2, heads=2), torch.ones(3, 3), graph)
    tensor([1., 1., 1., 1.])
    """
    attention = learned_weights(module, x, graph)
    if attention.ndim != 2:
        raise InputError(f"attention is defined for GAT, not for {type(module).__name__}")
    attention = attention.mean(1)
    neighbours = torch.bincount(graph.receivers(), minlength=graph.num_nodes)
    relative = attention * (neighbours + 1)[graph.receivers()]  # a node also attends to itself
    return (relative + relative[graph.reverse_entries()]) / 2


def _rows(x: Features) -> Any:
    """The features as an array of floats with fast row access: NumPy, or SciPy's CSR."""
    if isinstance(x, Tensor):
        x = wide(x.detach())
        rows = x.numpy() if x.layout == torch.strided else scipy_from_tensor(x)
    else:
        rows = scipy.sparse.csr_array(x)
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _scaled(rows: Any) -> Any:
    """Each row times a power of 2 that makes its largest number about 1: exact, and no square overflows."""
    if scipy.sparse.issparse(rows):
        largest = np.zeros(rows.shape[0], dtype=rows.dtype)
        receivers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        np.maximum.at(largest, receivers, np.abs(rows.data))
        data = np.ldexp(rows.data, -np.frexp(largest)[1][receivers])
        return scipy.sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    largest = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))
    return np.ldexp(rows, -np.frexp(largest)[1][:, None])


def _checked_pairs(pairs: Any, nodes: int) -> Tensor:
    """The pairs [2, P] if they are numbers of these nodes."""
    if not isinstance(pairs, Tensor) or pairs.dtype != torch.int64 or pairs.ndim != 2 or pairs.shape[0] != 2:
        kind = type(pairs).__name__
        if isinstance(pairs, Tensor):
            kind = f"{str(pairs.dtype).removeprefix('torch.')} of shape {list(pairs.shape)}"
        raise InputError(f"pairs must be an int64 tensor of shape [2, P], not {kind}")
    outside = pairs[(pairs < 0) | (pairs >= nodes)]
    if outside.numel():
        raise InputError(f"pairs has {int(outside[0])}, but there are only the nodes 0 to {nodes - 1}")
    return pairs


def _quotients(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quotients; 0 where the divisor is 0."""
    result: NDArray[np.float64] = np.divide(above, below, out=np.zeros(below.size), where=below > 0)
    return result


def _row_products(rows: Any, pairs: Tensor) -> NDArray[np.float64]:
    """Inner products of the two rows of each pair, some at a time."""
    first, second = pairs.numpy()
    result = np.empty(first.size)
    for start in range(0, first.size, _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        result[part] = np.asarray((rows[first[part]] * rows[second[part]]).sum(axis=1)).ravel()
    return result


def _product(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(1)


def _closeness(a: Tensor, b: Tensor) -> Tensor:
    """−log of the distance, clipped so that it stays finite."""
    distance: Tensor = (a - b).norm(dim=1, dtype=torch.float64)
    return -distance.clamp(min=torch.finfo(a.dtype).tiny).log()


def _per_pair(measure: Callable[[Tensor, Tensor], Tensor], rows: Tensor, pairs: Tensor) -> Tensor:
    """``measure`` of the two rows of each pair, some at a time: no array of pairs × channels is needed."""
    result = rows.new_empty(pairs.shape[1])
    for start in range(0, pairs.shape[1], _STATES_AT_A_TIME):
        first, second = pairs[:, start : start + _STATES_AT_A_TIME]
        result[start : start + _STATES_AT_A_TIME] = measure(rows[first], rows[second])
    return result
