"""Label propagation by the p-Laplacian: a classifier for graphs without features, and without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from plap.checks import check_nodes
from plap.data.labels import Classes, Codes, codes_of, encode
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.solving import SolveInfo, solve


class PLaplacianLabelPropagation(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Spread the known labels over the edges: the minimiser of Eq. 8 with the labels as X.

    .. math:: F^* = \arg\min_F \; \mathcal{S}_p(F) + \mu \|F - X\|^2, \qquad
        X_{ic} = 1 \text{ if node } i \text{ is known to be of class } c, \text{ else } 0

    The rows of F*, divided by their sums, are the probabilities; p = 2 is the local and global consistency of
    Zhou et al. (2004). A node that no label reaches gets the shares of the classes among the known labels.

    Parameters
    ----------
    p : float, at least 1
    mu : float, positive
        Small spreads labels far, large keeps them near.
    tol : float
        As in :func:`plap.solve`.
    max_iter : int

    Attributes
    ----------
    classes_ : array of the classes in ascending order
    probabilities_ : float64 array, shape [N, classes]
    info_ : SolveInfo
        Among others whether the solver converged.

    Examples
    --------
    >>> import plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3)], num_nodes=5)
    >>> model = PLaplacianLabelPropagation().fit(path, ["a", None, None, "b", "b"])
    >>> model.predict()
    array(['a', 'a', 'b', 'b', 'b'], dtype='<U1')
    """

    classes_: Classes
    probabilities_: NDArray[np.float64]
    info_: SolveInfo

    def __init__(self, p: float = 1.5, mu: float = 1.0, tol: float = 1e-5, max_iter: int = 2000) -> None:
        self.p = p
        self.mu = mu
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, graph: Graph, y: Any) -> PLaplacianLabelPropagation:
        """Spread ``y``, one label per node; unknown is None, NaN or −1 (labels −1 and 1: two classes)."""
        check_graph(graph)
        classes, codes = encode(y)
        if codes.size != graph.num_nodes:
            raise InputError(f"y has {codes.size} labels but graph has {graph.num_nodes} nodes")
        one_hot = _one_hot(codes, classes.size).to(graph.device)
        solution, info = solve(one_hot, graph, self.p, self.mu, self.tol, max_iter=self.max_iter)
        self.probabilities_ = _normalised(solution.cpu().numpy(), codes)
        self.classes_, self.info_ = classes, info
        return self

    def predict_proba(self, nodes: Any = None) -> NDArray[np.float64]:
        """Probabilities of the classes, [nodes, classes]; of all nodes if none are named.

        Parameters
        ----------
        nodes : integers, or a boolean mask of shape [N], optional
        """
        check_is_fitted(self)
        if nodes is None:
            return self.probabilities_
        count, chosen = self.probabilities_.shape[0], np.asarray(nodes)
        if chosen.dtype == np.bool_ and chosen.shape == (count,):
            chosen = np.flatnonzero(chosen)
        return self.probabilities_[check_nodes(chosen, count)]

    def predict(self, nodes: Any = None) -> Classes:
        """The likeliest class of every node, or of those named."""
        winners = self.predict_proba(nodes).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def score(self, y: Any, nodes: Any = None) -> float:
        """Accuracy against true labels; where these are unknown, they do not count."""
        probabilities = self.predict_proba(nodes)
        codes = codes_of(y, self.classes_)
        if codes.size != probabilities.shape[0]:
            raise InputError(f"y has {codes.size} labels but there are {probabilities.shape[0]} predictions")
        known = codes >= 0
        if not known.any():
            raise InputError("y has no known label to score against")
        return float((probabilities[known].argmax(axis=1) == codes[known]).mean())


_STEPS = 10
"""How far :func:`spread` goes on a large graph."""


def spread(
    graph: Graph,
    y: torch.Tensor,
    mus: Sequence[float] = (1.0,),
    *,
    num_classes: int | None = None,
    few_steps: bool = False,
) -> list[torch.Tensor]:
    r"""Spread known labels, classes or numbers, over the edges with p = 2, once for each of ``mus``.

    With p = 2 the minimiser of Eq. 8 is a sum over walks of all lengths,

    .. math:: F^* = (1 - \alpha) \sum_{k \ge 0} \alpha^k (D^{-1/2} W D^{-1/2})^k X, \qquad
        \alpha = 1 / (1 + \mu)

    Numbers are spread beside an indicator of where a number is known, and divided by it: a node gets a mean
    of the known numbers, nearer ones counting more. Where none arrives, it is the mean of all.

    Parameters
    ----------
    graph : Graph
    y : Tensor, int64 [N], -1 where unknown; or float [N], NaN where unknown
    mus : sequence of positive float
    num_classes : int, optional
    few_steps : bool
        Only walks of up to ten steps, in single precision and for all ``mus`` together: for large graphs.

    Returns
    -------
    list of Tensor, each [N, classes] with rows that sum to 1, or [N] for numbers

    Examples
    --------
    >>> path = Graph.from_edges([(0, 1), (1, 2)], num_nodes=4)
    >>> (found,) = spread(path, torch.tensor([1.0, torch.nan, 3.0, torch.nan]))
    >>> [round(value, 3) for value in found.tolist()]
    [1.25, 2.0, 2.75, 2.0]
    """
    check_graph(graph)
    if not y.is_floating_point():
        shares = _one_hot(y.numpy(), num_classes or int(y.max()) + 1)
        prior = shares[y >= 0].mean(0)
        return [_rows(found, prior) for found in _minimisers(graph, shares, mus, few_steps)]
    known = ~y.isnan()
    mean, scale = y[known].double().mean(), y[known].double().std(correction=0)
    values = ((y.double() - mean) / scale.clamp(min=1e-300)).nan_to_num(0.0)
    pairs = torch.stack([values, known.double()], 1)
    return [_ratio(found) * scale + mean for found in _minimisers(graph, pairs, mus, few_steps)]


def _minimisers(graph: Graph, X: torch.Tensor, mus: Sequence[float], few_steps: bool) -> list[torch.Tensor]:
    if not few_steps:
        return [solve(X, graph, 2.0, mu, 1e-4, max_iter=200)[0] for mu in mus]
    matrix = graph.to_scipy(dtype=np.float32, copy=False)
    degree = graph.degree.detach().numpy()
    root = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0).astype(np.float32)[
        :, None
    ]
    walked = X.numpy().astype(np.float32)
    sums = [walked * np.float32(mu / (1 + mu)) for mu in mus]
    for step in range(1, _STEPS + 1):
        walked = root * (matrix @ (root * walked))
        for k, mu in enumerate(mus):
            sums[k] += np.float32(mu / (1 + mu) ** (step + 1)) * walked
    return [torch.from_numpy(total) for total in sums]


def _ratio(found: torch.Tensor) -> torch.Tensor:
    """The first column over the second; 0 where nothing arrived."""
    found = found.double()
    arrived = found[:, 1] > 1e-9
    return torch.where(arrived, found[:, 0] / torch.where(arrived, found[:, 1], 1), 0)


def _rows(found: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
    """Rows that sum to 1; ``prior`` where nothing arrived."""
    mass = found.clamp(min=0)
    total = mass.sum(1, keepdim=True)
    return torch.where(total > 1e-30, mass / total.clamp(min=1e-30), prior.to(mass.dtype))


def _one_hot(codes: Codes, classes: int) -> torch.Tensor:
    rows = torch.zeros(codes.size, classes, dtype=torch.float64)
    known = np.flatnonzero(codes >= 0)
    rows[torch.from_numpy(known), torch.from_numpy(codes[known])] = 1
    return rows


def _normalised(solution: NDArray[np.float64], codes: Codes) -> NDArray[np.float64]:
    """Rows that sum to 1; the shares of the known labels where nothing arrived."""
    mass = solution.clip(min=0)
    total = mass.sum(axis=1, keepdims=True)
    prior = np.bincount(codes[codes >= 0], minlength=mass.shape[1]) / (codes >= 0).sum()
    reached = total > np.finfo(np.float64).tiny
    return np.where(reached, mass / np.where(reached, total, 1), prior)
