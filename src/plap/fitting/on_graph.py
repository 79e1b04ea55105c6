"""An estimator bound to a graph: its samples are nodes, so that scikit-learn's tools can share them out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from plap.checks import check_nodes
from plap.errors import InputError
from plap.graph import Graph


class OnGraph(BaseEstimator):  # type: ignore[misc]
    """A classifier or regressor whose samples are the nodes of one graph, by number.

    ``fit(nodes, y)`` learns from the labels of these nodes and the whole graph, ``predict(nodes)`` answers
    for any of its nodes. So ``cross_val_predict``, ``cross_val_score`` and ``GridSearchCV`` of scikit-learn
    work, with their own splitters or with :func:`plap.data.folds`.

    Parameters
    ----------
    estimator : PGNNClassifier or PGNNRegressor
        What is fitted; parameters of it are called ``estimator__p`` and so on.
    graph : Graph
    X : array, tensor, sparse matrix or table, shape [N, F]
        Features of all nodes.

    Attributes
    ----------
    estimator_ : the fitted estimator

    Examples
    --------
    >>> import plap
    >>> from sklearn.model_selection import cross_val_predict
    >>> data = plap.data.csbm(phi=0.75, n=300, f=20, d=8.0, seed=1)
    >>> model = plap.PGNNClassifier(p=2.0, tune=None, seeds=1, max_epochs=50)
    >>> nodes, y = np.arange(300), data.y.numpy()
    >>> said = cross_val_predict(
    ...     plap.OnGraph(model, data.graph, data.x), nodes, y, cv=plap.data.folds(y, 3)
    ... )
    >>> said.shape
    (300,)
    """

    estimator_: Any

    def __init__(self, estimator: Any, graph: Graph, X: Any) -> None:
        self.estimator, self.graph, self.X = estimator, graph, X

    def fit(self, nodes: Any, y: Any) -> Self:
        """Learn from the labels ``y`` of ``nodes``; all other nodes count as unknown."""
        nodes = self._numbers(nodes)
        known = list(y)
        if len(known) != nodes.size:
            raise InputError(f"y has {len(known)} labels for {nodes.size} nodes")
        labels = np.full(self.graph.num_nodes, None, dtype=object)
        labels[nodes] = known
        first: dict[int, Any] = {}
        for node, label in zip(nodes.tolist(), known, strict=True):
            other = first.setdefault(node, label)
            if label != other and str(label) != str(other):  # NaN is unequal to itself
                raise InputError(f"y has two labels for node {node}: {other!r} and {label!r}")
        self.estimator_ = clone(self.estimator).fit(self.graph, self.X, labels)
        return self

    def predict(self, nodes: Any) -> NDArray[Any]:
        """What is predicted for ``nodes``."""
        check_is_fitted(self)
        said: NDArray[Any] = self.estimator_.predict()[self._numbers(nodes)]
        return said

    def predict_proba(self, nodes: Any) -> NDArray[np.float64]:
        """Probabilities [nodes, classes]."""
        check_is_fitted(self)
        said: NDArray[np.float64] = self.estimator_.predict_proba()[self._numbers(nodes)]
        return said

    def score(self, nodes: Any, y: Any) -> float:
        """Accuracy, or R², of the predictions for ``nodes``."""
        check_is_fitted(self)
        labels = np.full(self.graph.num_nodes, None, dtype=object)
        labels[self._numbers(nodes)] = list(y)
        return float(self.estimator_.score(labels))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes in the order of the columns of ``predict_proba``."""
        classes: NDArray[Any] = self.estimator_.classes_
        return classes

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Tags:
        """Whether this is a classifier or a regressor, as the estimator is."""
        tags = super().__sklearn_tags__()
        kind = self.estimator.__sklearn_tags__()
        tags.estimator_type = kind.estimator_type
        tags.classifier_tags, tags.regressor_tags = kind.classifier_tags, kind.regressor_tags
        return tags

    def _numbers(self, nodes: Any) -> NDArray[np.intp]:
        return check_nodes(nodes, self.graph.num_nodes)
