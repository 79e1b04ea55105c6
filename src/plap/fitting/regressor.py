"""A number for every node, by scikit-learn's conventions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from plap.data.metrics import r2
from plap.data.tasks import Regression
from plap.data.tasks.regression import Loss
from plap.errors import InputError
from plap.fitting.artifacts import load_model
from plap.fitting.estimator import NodeEstimator
from plap.graph import Graph
from plap.memory import MemoryBudget
from plap.training.loop import ProgressCallback


class PGNNRegressor(RegressorMixin, NodeEstimator):  # type: ignore[misc]
    """Predict a number for every node of a graph from its features, its edges and some known numbers.

    Parameters
    ----------
    p, mu, K, lr, dropout, weight_decay, penalty, gamma, hidden, tune, budget, seeds, validation :
        As for :class:`plap.PGNNClassifier`.
    metric : {"r2", "mae", "rmse"}, optional
        What the search and early stopping go by; R² by default.
    loss : {"huber", "squared"}
        In units of the standard deviation of the training labels.
    time_limit : number of seconds, text such as "10m", None or "auto"
        Time limit for search and training; see :class:`plap.fitting.FitSettings`.
    max_epochs, patience, stop_by, seed, memory_budget, device :
        As for :class:`plap.training.RunConfig` and :func:`plap.training.train_runs`.

    Attributes
    ----------
    config_ : RunConfig
        What was found.
    trials_ : tuple of Trial
    n_features_in_ : int
    feature_names_in_ : array of str
        The columns of X, where it was a table.
    validation_score_ : float
        Mean R², or ``metric``, of the members on the labels that were set aside; optimistic.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.75, n=300, f=20, d=8.0, seed=1)
    >>> y = 10.0 * data.y.double()
    >>> y[200:] = torch.nan
    >>> model = plap.PGNNRegressor(p=2.0, tune=None, seeds=2, max_epochs=50)
    >>> model.fit(data.graph, data.x, y).predict().shape
    (300,)
    """

    def __init__(
        self,
        p: float | None = None,
        mu: float | None = None,
        K: int | None = None,
        lr: float | None = None,
        dropout: float | None = None,
        weight_decay: float | None = None,
        hidden: int | None = None,
        tune: Literal["auto"] | None = "auto",
        budget: Any = "auto",
        seeds: int = 8,
        validation: float = 0.25,
        max_epochs: int = 1000,
        patience: int = 200,
        stop_by: Any = "accuracy",
        seed: int = 0,
        memory_budget: MemoryBudget = None,
        time_limit: float | str | None = "auto",
        device: str = "auto",
        metric: str | None = None,
        loss: Loss = "huber",
        penalty: str | None = None,
        gamma: float | None = None,
    ) -> None:
        self.p, self.mu, self.K = p, mu, K
        self.lr, self.dropout, self.weight_decay = lr, dropout, weight_decay
        self.penalty, self.gamma = penalty, gamma
        self.hidden = hidden
        self.tune, self.budget, self.seeds = tune, budget, seeds
        self.validation = validation
        self.max_epochs, self.patience, self.stop_by = max_epochs, patience, stop_by
        self.seed = seed
        self.memory_budget, self.time_limit, self.device = memory_budget, time_limit, device
        self.metric, self.loss = metric, loss

    def fit(
        self,
        graph: Graph,
        X: Any,
        y: Any,
        *,
        train: Any = None,
        val: Any = None,
        progress: ProgressCallback | None = None,
    ) -> PGNNRegressor:
        """Find and train a model.

        Parameters
        ----------
        graph : Graph
        X : array, tensor, sparse matrix or table, shape [N, F]
            As for :meth:`plap.PGNNClassifier.fit`.
        y : sequence of numbers, shape [N]
            Unknown is NaN or None.
        train, val, progress :
            As for :meth:`plap.PGNNClassifier.fit`.
        """
        return self._fit(graph, X, _numbers(y), Regression(loss=self.loss), train, val, progress)

    def predict(self, graph: Graph | None = None, X: Any = None) -> NDArray[np.float64]:
        """The number of every node of ``fit``, or of another graph with the same features, [N]."""
        said = self._outputs(graph, X)
        return self.task_.decode(said).double().numpy()

    def predict_interval(self, graph: Graph | None = None, X: Any = None) -> NDArray[np.float64]:
        """Lower and upper ends [N, 2] between which 90 % of the numbers set aside lay."""
        said = self._outputs(graph, X)
        assert isinstance(self.task_, Regression)
        ends = self.task_.intervals(said)
        assert ends is not None
        return torch.stack(ends, 1).double().numpy()

    def score(self, y: Any, graph: Graph | None = None, X: Any = None) -> float:
        """R² against true numbers; where these are unknown, they do not count."""
        truth, said = _numbers(y), torch.from_numpy(self.predict(graph, X))
        if truth.shape != said.shape:
            raise InputError(f"y has {truth.shape[0]} labels but there are {said.shape[0]} predictions")
        known = ~truth.isnan()
        if not bool(known.any()):
            raise InputError("y has no known label to score against")
        return r2(truth[known], said[known])

    @classmethod
    def load(cls, out: Path | str) -> PGNNRegressor:
        """The regressor of a folder that ``plap fit`` wrote; it predicts for graphs given to it."""
        file = load_model(out)
        if not file.task.numeric:
            raise InputError(
                f"{out} holds a model for {file.task.name} data, not for numbers; use plap predict"
            )
        return cls._loaded(file)


def _numbers(y: Any) -> Tensor:
    """Labels as float64 [N], NaN where unknown."""
    try:
        values = np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("y must hold numbers, and None or NaN where unknown") from None
    if values.ndim != 1:
        raise InputError(f"y must have one number for each node, not shape {list(values.shape)}")
    if np.isinf(values).any():
        raise InputError(f"y[{int(np.isinf(values).argmax())}] is not finite")
    if np.isnan(values).all():
        raise InputError("y has no known number: all are None or NaN")
    return torch.from_numpy(values.copy())
