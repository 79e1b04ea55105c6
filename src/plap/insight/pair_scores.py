"""Scores of pairs of nodes: what a trained model says about a pair, and simple scores to compare it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from plap.calculus import over_root_degree
from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import evaluating
from plap.insight.weights import learned_weights
from plap.models import model_of, models_with
from plap.nn.linear import Features
from plap.sparse import scipy_from_tensor

_ROWS_AT_A_TIME = 1 << 14
"""Pairs whose features are in memory at a time."""
_STATES_AT_A_TIME = 1 << 16
"""Pairs whose states are in memory at a time."""


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
    with evaluating(member):
        found = kind.pair_states(member, x, graph)
        columns: list[Tensor] = []
        for state in found.states:
            direction = normalize(state)
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
    rows = _rows(x)
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
    common = _row_products(graph.to_scipy(weighted=False, copy=False), pairs)
    count = np.diff(graph.indptr.numpy())
    either = count[pairs[0]] + count[pairs[1]] - common
    return _quotients(common, either)


def attention_trust(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """GAT's attention relative to uniform attention, averaged over heads and both directions; [entries].

    Examples
    --------
    >>> import plap
    >>> graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> attention_trust(plap.nn.baselines.GAT(3, 4, 2, heads=2), torch.ones(3, 3), graph)
    tensor([1., 1., 1., 1.])
    """
    attention = learned_weights(module, x, graph).mean(1)
    neighbours = torch.bincount(graph.receivers(), minlength=graph.num_nodes)
    relative = attention * (neighbours + 1)[graph.receivers()]  # a node also attends to itself
    return (relative + relative[graph.reverse_entries()]) / 2


def _rows(x: Features) -> Any:
    """The features as an array with fast row access: NumPy, or SciPy's CSR."""
    if not isinstance(x, Tensor):
        return scipy.sparse.csr_array(x)
    return x.detach().numpy() if x.layout == torch.strided else scipy_from_tensor(x)


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
    distance: Tensor = (a - b).norm(dim=1)
    return -distance.clamp(min=torch.finfo(distance.dtype).tiny).log()


def _per_pair(measure: Callable[[Tensor, Tensor], Tensor], rows: Tensor, pairs: Tensor) -> Tensor:
    """``measure`` of the two rows of each pair, some at a time: no array of pairs × channels is needed."""
    result = rows.new_empty(pairs.shape[1])
    for start in range(0, pairs.shape[1], _STATES_AT_A_TIME):
        first, second = pairs[:, start : start + _STATES_AT_A_TIME]
        result[start : start + _STATES_AT_A_TIME] = measure(rows[first], rows[second])
    return result
