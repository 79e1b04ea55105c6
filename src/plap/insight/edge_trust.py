"""How far each edge is to be believed, by what a trained model made of its two ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.data.sampling import generator, rank_pairs, sample_absent_pairs, sample_distinct, unrank_pairs
from plap.errors import InputError
from plap.graph import Graph
from plap.insight.evidence import pair_evidence
from plap.insight.rivals import feature_cosine
from plap.insight.weights import reverse_entries
from plap.nn import PGNN
from plap.nn.linear import Features

_COMPARED = 20_000
"""Edges, and pairs without an edge, that the comparison is learned from at most."""
_KNOTS = 5
_FOLDS = 5


def edge_trust(
    members: Sequence[torch.nn.Module], x: Features, graph: Graph, *, folds: int = _FOLDS, seed: int = 0
) -> Tensor:
    """How many times likelier each edge is than one between two nodes drawn at random.

    The edges are shared out among ``folds`` parts, and each is judged by states that were propagated
    without its part: an edge pulls its own ends together, so with it in place even a random edge looks
    right. What the members say of a pair (:func:`plap.insight.pair_evidence`, averaged) and the
    cosine of its features go into a logistic regression that tells edges from pairs that no edge joins, of
    which there are plenty; its odds are the trust. Labels enter through the trained members alone, and
    whether like or unlike nodes are joined is found out, not assumed.

    Parameters
    ----------
    members : sequence of PGNN
        Such as :func:`plap.insight.load_members` gives; the more, the better.
    x : Tensor or sparse matrix, shape [N, F]
    graph : Graph
    folds : int, at least 2
    seed : int
        Of the parts and of the pairs.

    Returns
    -------
    Tensor, float64, shape [entries]
        Equal for both directions of an edge; about 1: it looks like chance; NaN for a kept self-loop.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.5, n=200, f=20, seed=1)
    >>> trust = edge_trust([plap.nn.PGNN(20, 8, 2)], data.x, data.graph)
    >>> trust.shape == data.graph.weight.shape
    True
    """
    if not members:
        raise InputError("edge trust needs a trained model, and there is none")
    for member in members:
        if not isinstance(member, PGNN):
            raise InputError(f"edge trust is made for PGNN, not for {type(member).__name__}")
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise InputError(f"folds must be an integer of 2 or more, not {folds!r}")
    if not can_be_judged(graph):
        raise InputError(
            "edge trust tells edges from pairs of nodes that none joins; the graph lacks one of these"
        )
    once = edges_once(graph)
    joined = graph.edge_index[:, once]
    rng = generator(seed)
    apart = _pairs_apart(graph, joined, rng)
    asked = torch.cat([joined, apart], dim=1)
    part = torch.from_numpy(rng.permutation(asked.shape[1]) % folds)
    evidence = np.column_stack([_judged(members, x, graph, once, asked, part), feature_cosine(x, asked)])
    odds = _odds(evidence, joined.shape[1], rng)
    trust = torch.full((graph.num_entries,), torch.nan, dtype=torch.float64)
    trust[once] = torch.from_numpy(odds)
    trust[reverse_entries(graph)[once]] = trust[once]
    return trust


def can_be_judged(graph: Graph) -> bool:
    """Whether the graph has both: an edge, and two nodes that none joins."""
    edges = edges_once(graph).shape[0]
    return 0 < edges < graph.num_nodes * (graph.num_nodes - 1) // 2


def edges_once(graph: Graph) -> Tensor:
    """The stored entries whose source is the lower of the two nodes: one an edge, self-loops left out.

    Examples
    --------
    >>> import plap
    >>> edges_once(plap.Graph.from_edges([(0, 1), (1, 2)]))
    tensor([1, 3])
    """
    return (graph.indices < graph.receivers()).nonzero().squeeze(1)


def _pairs_apart(graph: Graph, joined: Tensor, rng: np.random.Generator) -> Tensor:
    """As many pairs without an edge as there are edges, or as many as the comparison takes."""
    n, edges = graph.num_nodes, joined.shape[1]
    absent = n * (n - 1) // 2 - edges
    ranks = np.sort(rank_pairs(*joined.numpy()))
    drawn = sample_absent_pairs(rng, n, ranks, min(edges, absent, _COMPARED))
    return torch.from_numpy(np.stack(unrank_pairs(drawn)))


def _judged(
    members: Sequence[Any], x: Features, graph: Graph, once: Tensor, asked: Tensor, part: Tensor
) -> NDArray[np.float64]:
    """Mean evidence of the members for each pair, over the graph without the edges of the pair's part."""
    rows: NDArray[np.float64] | None = None
    for chosen, rest in _without_each_part(graph, once, part):
        each = [pair_evidence(member, x, rest, asked[:, chosen]) for member in members]
        mean = torch.stack(each).double().mean(0).numpy()
        rows = np.empty((asked.shape[1], mean.shape[1])) if rows is None else rows
        rows[chosen] = mean
    assert rows is not None
    return rows


def _without_each_part(graph: Graph, once: Tensor, part: Tensor) -> Iterator[tuple[NDArray[Any], Graph]]:
    """Which pairs are of each part, and the graph without their edges; self-loops stay."""
    edges, weight, reverse = graph.edge_index, graph.weight.detach(), reverse_entries(graph)
    for number in part.unique().tolist():
        kept = torch.ones(graph.num_entries, dtype=torch.bool)
        left_out = once[part[: once.shape[0]] == number]
        kept[left_out] = kept[reverse[left_out]] = False
        rest = Graph.from_edge_index(
            edges[:, kept], weight[kept], graph.num_nodes, symmetrize="error", self_loops="keep"
        )
        yield (part == number).numpy(), rest


def _odds(evidence: NDArray[np.float64], edges: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Odds that each of the first ``edges`` rows is an edge, were there as many edges as pairs apart."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import QuantileTransformer, SplineTransformer  # noqa: PLC0415

    some = sample_distinct(rng, edges, min(edges, _COMPARED))
    rows = np.concatenate([evidence[some], evidence[edges:]])
    is_edge = np.arange(rows.shape[0]) < some.size
    knots = np.tile(np.linspace(0, 1, _KNOTS)[:, None], rows.shape[1])
    comparison = make_pipeline(
        QuantileTransformer(n_quantiles=min(1000, rows.shape[0]), subsample=None),
        SplineTransformer(knots=knots, extrapolation="constant"),
        LogisticRegression(class_weight="balanced", max_iter=1000),
    ).fit(rows, is_edge)
    parts = [
        comparison.decision_function(evidence[start : min(start + _COMPARED, edges)])
        for start in range(0, edges, _COMPARED)
    ]
    odds: NDArray[np.float64] = np.exp(np.concatenate(parts))
    return odds
