"""What a trained model says of two nodes, whether an edge joins them or not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from plap.graph import Graph
from plap.insight.members import evaluating
from plap.nn import PGNN
from plap.nn.linear import Features
from plap.propagation import propagate

_PAIRS = 1 << 16
"""Pairs whose states are held at a time."""


def pair_evidence(member: PGNN, x: Features, graph: Graph, pairs: Tensor) -> Tensor:
    """How alike the states of two nodes are, before and after propagation.

    After 0, 1, 2 and K steps: the cosine of the two states, the cosine of their differences from the mean
    state, and −log ‖∇F‖ of the edge that would join them, which is what its aggregation weight is a power
    of (Eq. 12). Then the probability that both are of one class, by the module's own answers.

    Parameters
    ----------
    member : PGNN
    x : Tensor or sparse matrix, shape [N, F]
    graph : Graph
        What is propagated over; it should not have the edges that are asked about.
    pairs : Tensor, shape [2, P]

    Returns
    -------
    Tensor, shape [P, columns]
    """
    with evaluating(member):
        start, conv = member.embed(x), member.conv
        root = torch.where(graph.degree > 0, graph.degree, 1).rsqrt().to(start.dtype)
        columns: list[Tensor] = []
        state = start
        for steps in sorted({0, 1, 2, conv.K}):
            if steps > 0:
                state = propagate(
                    start, graph, mu=conv.mu, K=steps, penalty=conv.penalty, omega=conv.omega, eps=conv.eps
                )
            direction = normalize(state)
            centred = direction - direction.mean(0)
            columns += [
                _of_pairs(_product, direction, pairs),
                _of_pairs(cosine_similarity, centred, pairs),
                _of_pairs(_closeness, root[:, None] * state, pairs),
            ]
        columns.append(_of_pairs(_product, conv.lin(state).softmax(1), pairs))
    return torch.stack(columns, dim=1)


def _product(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(1)


def _closeness(a: Tensor, b: Tensor) -> Tensor:
    """−log of the distance, held within the range of the numbers."""
    distance: Tensor = (a - b).norm(dim=1)
    return -distance.clamp(min=torch.finfo(distance.dtype).tiny).log()


def _of_pairs(measure: Callable[[Tensor, Tensor], Tensor], rows: Tensor, pairs: Tensor) -> Tensor:
    """``measure`` of the two rows of each pair, some at a time: no array of pairs × channels is made."""
    result = rows.new_empty(pairs.shape[1])
    for start in range(0, pairs.shape[1], _PAIRS):
        first, second = pairs[:, start : start + _PAIRS]
        result[start : start + _PAIRS] = measure(rows[first], rows[second])
    return result
