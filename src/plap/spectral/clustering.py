"""Clusters by the second p-eigenvector, whose best threshold nears the best Cheeger cut as p → 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plap.checks import check_integer
from plap.errors import InputError
from plap.graph import Graph
from plap.spectral.operator import EdgeOperator, check_p
from plap.spectral.second import best_threshold, second_eigenpair


@dataclass(frozen=True)
class Clustering:
    """Clusters, and how good the cuts between them are."""

    labels: NDArray[np.int64]
    """The cluster of every node, shape [N], numbered from 0 in the order of their first nodes."""
    cuts: tuple[float, ...]
    """The Cheeger cut of every bisection, each within the part that it divided; 0 where the part was
    not connected."""


def spectral_clustering(
    graph: Graph, clusters: int = 2, *, p: float = 1.2, starts: int = 1, max_iter: int = 100
) -> Clustering:
    r"""Divide a graph by the second p-eigenvector u of its p-Laplacian, again and again.

    A bisection takes the nodes where u_i/√D_i lies above a threshold, of all thresholds the one with the
    smallest Cheeger cut (:func:`plap.spectral.cheeger_cut`), which is what λ₂ becomes at p = 1. For p → 1 the
    cut nears the best there is if u is the true minimum, which more ``starts`` make likelier; p = 2 is
    ordinary spectral clustering. Of the parts that there are, the one that can be cut best is divided next.

    Parameters
    ----------
    graph : Graph
        Of no more components than clusters. A part that is not connected is divided first, at no cost.
    clusters : int
    p : float, above 1
    starts, max_iter
        As in :func:`plap.spectral.second_eigenpair`.

    Returns
    -------
    Clustering

    Examples
    --------
    >>> import plap
    >>> triangles = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]
    >>> plap.spectral.spectral_clustering(plap.Graph.from_edges(triangles)).labels
    array([0, 0, 0, 1, 1, 1])
    """
    check_p(p, above_one=True)
    operator = EdgeOperator(graph)
    n, components = operator.num_nodes, int(operator.components.max(initial=-1)) + 1
    if check_integer("clusters", clusters, 1) > n:
        raise InputError(f"clusters must be at most the {n} nodes of the graph, not {clusters}")
    if components > clusters:
        raise InputError(f"graph has {components} components, more than the {clusters} clusters asked for")
    parts = [_Part(graph.to("cpu"), np.arange(n), p, starts, max_iter)]
    cuts = []
    while len(parts) < clusters:
        best = min((part for part in parts if part.nodes.size > 1), key=lambda part: part.division.cut)
        parts.remove(best)
        parts += [replace(best, nodes=best.nodes[side]) for side in best.division.sides]
        cuts.append(best.division.cut)
    return Clustering(_labels(n, [part.nodes for part in parts]), tuple(cuts))


class _Division(NamedTuple):
    """The two sides of a cut, each as a mask, and how good it is."""

    sides: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    cut: float


@dataclass(frozen=True, eq=False)
class _Part:
    """Nodes of the graph that stay together, unless they are asked how to divide them."""

    graph: Graph
    nodes: NDArray[np.int64]
    p: float
    starts: int
    max_iter: int

    @cached_property
    def division(self) -> _Division:
        part = self.graph.subgraph(self.nodes)
        operator = EdgeOperator(part)
        if operator.components.any():
            inside, cut = operator.components == np.bincount(operator.components).argmin(), 0.0
        else:
            u = second_eigenpair(part, self.p, starts=self.starts, max_iter=self.max_iter).vector
            inside, cut = best_threshold(operator, u / np.sqrt(operator.degree))
        return _Division((inside, ~inside), cut)


def _labels(n: int, parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    labels = np.empty(n, dtype=np.int64)
    for label, nodes in enumerate(sorted(parts, key=lambda nodes: int(nodes.min()))):
        labels[nodes] = label
    return labels
