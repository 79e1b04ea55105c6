"""A class for every node, by scikit-learn's conventions, and what all such estimators share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import polars as pl
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from plap.checks import check_flag
from plap.data.columns import ColumnTransform, drift, infer_columns
from plap.data.dataset import features_digest
from plap.data.labels import Classes, classes_named, codes_of, encode
from plap.data.splits import bagged, hold_out
from plap.data.tables.in_memory import as_frame, is_frame
from plap.data.tasks import ClassWeight, Multiclass, Task
from plap.errors import InputError
from plap.fitting.artifacts import SavedModel, load_model
from plap.fitting.decisions import settle
from plap.fitting.prediction import member_configs, member_probabilities
from plap.fitting.search import fit_model
from plap.fitting.settings import MODEL, FitSettings
from plap.graph import Graph, check_graph
from plap.memory import MemoryBudget
from plap.nn.linear import Features
from plap.sparse import compact
from plap.split_masks import HoldOut
from plap.training import RunConfig, Trial
from plap.training.ensemble import held_out
from plap.training.loop import ProgressCallback

_SEARCHED = ("p", "mu", "K", "lr", "dropout", "weight_decay", "penalty", "gamma")


class NodeEstimator(BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor have in common: fitting an ensemble, predicting with it."""

    config_: RunConfig
    trials_: tuple[Trial, ...]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    columns_: ColumnTransform | None
    validation_score_: float
    task_: Task
    _width: int
    _configs: list[RunConfig]
    _states: tuple[dict[str, Tensor], ...]
    _probabilities: Tensor | None
    _digests: tuple[str, str]

    def _fit(
        self, graph: Graph, X: Any, labels: Tensor, task: Task, train: Any, val: Any,
        progress: ProgressCallback | None,
    ) -> Self:  # fmt: skip
        if self.tune not in ("auto", None):
            raise InputError(f"tune must be 'auto' or None, not {self.tune!r}")
        features = None if is_frame(X) else as_features(X, graph)
        if labels.shape[0] != graph.num_nodes:
            raise InputError(f"y has {labels.shape[0]} labels but graph has {graph.num_nodes} nodes")
        sets = self._sets(labels, train, val)
        names: tuple[str, ...] | None = None
        columns = None
        if features is None:
            names, columns, features = fit_columns(X, graph, sets.train)
        if self.metric is not None:
            task = task.with_metric(self.metric)
        fixed = {name: getattr(self, name) for name in _SEARCHED if getattr(self, name) is not None}
        settings = FitSettings(
            fixed=fixed, models=(MODEL,), search=self.tune == "auto", budget=self.budget, seeds=self.seeds,
            hidden=self.hidden,
            max_epochs=self.max_epochs, patience=self.patience, stop_by=self.stop_by, seed=self.seed,
            memory_budget=self.memory_budget, time_limit=self.time_limit, device=self.device,
        )  # fmt: skip
        task = task.learned(labels[sets.train], getattr(self, "class_weight", None))
        if check_flag("bagging", getattr(self, "bagging", False)) and train is None and self.seeds > 1:
            sets = bagged(sets, labels, self.seed)
        fitted = fit_model(
            graph, features, labels, sets, settings, task=task, progress=progress,
            time_limit=settings.start_clock(),
        )  # fmt: skip
        self.config_, self.trials_ = fitted.config, fitted.trials
        self._remember(names, columns, features.shape[1])
        runs = fitted.members
        self.validation_score_ = task.metric.sign * float(np.mean([run.val_score for run in runs]))
        self._configs, self._states = [run.config for run in runs], tuple(run.state for run in runs)
        judged_by, judged = held_out(fitted.ensemble, sets)
        self.task_, self._probabilities = settle(
            fitted.ensemble.task, fitted.ensemble.probabilities, labels, judged, judged_by=judged_by
        )
        self._digests = (graph.digest, features_digest(features))
        return self

    def _outputs(self, graph: Graph | None, X: Any) -> Tensor:
        """Probabilities, or predicted numbers, [N, L] of the nodes of ``fit`` or of another graph."""
        check_is_fitted(self)
        if graph is None and X is None:
            if self._probabilities is None:
                raise InputError("a loaded model knows no nodes: give it a graph and X")
            return self._probabilities
        if graph is None or X is None:
            raise InputError("graph and X must be given together")
        if self.columns_ is not None and is_frame(X):
            features = apply_columns(X, graph, self.columns_)
        elif self.columns_ is not None and self._probabilities is not None:
            known = ", ".join(repr(name) for name in self.feature_names_in_[:8])
            raise InputError(f"the model was fitted on a table, so X must be one with its columns {known}")
        else:
            features = as_features(X, graph)
        if features.shape[1] != self._width:
            raise InputError(
                f"X has {features.shape[1]} features, but the model was fitted with {self._width}"
            )
        return member_probabilities(self._configs, self._states, graph, features, self.task_)

    def _remember(self, names: tuple[str, ...] | None, columns: ColumnTransform | None, width: int) -> None:
        """Note what X looked like; ``names`` are those of its columns, where it was a table."""
        self.columns_, self._width = columns, width
        self.n_features_in_ = width if names is None else len(names)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def to_saved_model(self, feature_names: tuple[str, ...] | None = None) -> SavedModel:
        """The model as ``plap fit`` writes it."""
        check_is_fitted(self)
        if self.columns_ is not None:
            feature_names = self.columns_.feature_names
        return SavedModel(
            config=self.config_.to_dict(),
            configs=[config.to_dict() for config in self._configs],
            states=self._states,
            task=self._named_task(),
            num_features=self._width,
            feature_names=feature_names,
            columns=self.columns_,
            graph_digest=self._digests[0],
            features_digest=self._digests[1],
            text_labels=getattr(self, "classes_", np.empty(0)).dtype.kind == "U",
        )

    def _named_task(self) -> Task:
        return self.task_

    @classmethod
    def _loaded(cls, file: SavedModel) -> Self:
        configs = member_configs(file)
        config = RunConfig.from_dict(dict(file.config))
        values = {name: value for name, value in config.to_dict().items() if name not in config.unused}
        kept = {name: values[name] for name in (*_SEARCHED, "hidden", "seed") if name in values}
        model = cls(**kept, tune=None)
        model.config_, model.trials_, model.task_ = config, (), file.task
        names = None
        if file.columns is not None:
            names = (*(column.name for column in file.columns.columns), *file.columns.unused)
        model._remember(names, file.columns, file.num_features)
        model._configs, model._states = configs, tuple(dict(state) for state in file.states)
        model._probabilities = None
        model._digests = (file.graph_digest, file.features_digest)
        return model

    def _sets(self, labels: Tensor, train: Any, val: Any) -> HoldOut:
        if train is None and val is None:
            return hold_out(labels, self.validation, self.seed)
        if train is None or val is None:
            raise InputError("train and val must be given together")
        masks = []
        for name, given in (("train", train), ("val", val)):
            mask = torch.as_tensor(np.array(given))
            if mask.dtype != torch.bool or mask.shape != labels.shape:
                raise InputError(f"{name} must be a boolean array of shape [{labels.shape[0]}]")
            masks.append(mask)
        if bool((masks[0] & masks[1]).any()):
            raise InputError("train and val must not share a node")
        return HoldOut(*masks)


class PGNNClassifier(ClassifierMixin, NodeEstimator):  # type: ignore[misc]
    """Predict the class of every node of a graph from its features, its edges and some known labels.

    Parameters
    ----------
    p, mu, K, lr, dropout, weight_decay : number, optional
        A value given here is kept; what is left open is searched (``tune="auto"``) or has its default.
    penalty : str, optional
        How edges are weighed by their length, such as "power", "mcp" or "huber" (:mod:`plap.penalties`).
    gamma : number, optional
        The parameter of every penalty but the power, in units of the median edge norm of the features. Like
        ``p`` of these penalties, it is refused where it would have no effect.
    hidden : int, optional
        Hidden units. By default 16, and a search tries its best once more with 64.
    tune : {"auto", None}
        Successive halving over the default search space of pGNN, judged by labels set aside for validation.
    budget : int or "auto"
        Epochs that the search may spend over all runs.
    seeds : int
        Members of the ensemble whose mean probabilities predict.
    validation : float
        Share of the known labels that is set aside, unless ``fit`` is given the sets.
    bagging : bool
        Whether every member sets other labels aside, so that the ensemble learns from all of them; not where
        ``fit`` is given the sets.
    metric : str, optional
        What the search and early stopping go by, see :data:`plap.data.METRICS`; accuracy by default.
    class_weight : {"balanced", None} or mapping
        Weights of classes in the training loss; "balanced" makes all classes count the same.
    unknown : str or number, optional
        Another mark of an unknown label, besides None, NaN and -1.
    time_limit : number of seconds, text such as "10m", None or "auto"
        Time limit for search and training; see :class:`plap.fitting.FitSettings`.
    max_epochs, patience, stop_by, seed, memory_budget, device :
        As for :class:`plap.training.RunConfig` and :func:`plap.training.train_runs`.

    Attributes
    ----------
    classes_ : array of the classes in ascending order
    config_ : RunConfig
        What was found.
    trials_ : tuple of Trial
        What the search tried.
    n_features_in_ : int
    feature_names_in_ : array of str
        The columns of X, where it was a table.
    columns_ : ColumnTransform or None
        What these columns become.
    validation_score_ : float
        Mean accuracy, or ``metric``, of the members on the labels that were set aside. It is optimistic,
        because the search chose by it; measure on labels that ``fit`` never saw.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=-0.75, n=300, f=20, d=8.0, seed=1)
    >>> model = plap.PGNNClassifier(p=2.5, tune=None, seeds=2, max_epochs=50)
    >>> known = data.y.clone()
    >>> known[200:] = -1
    >>> model.fit(data.graph, data.x, known).predict().shape
    (300,)
    """

    classes_: Classes

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
        class_weight: ClassWeight = None,
        penalty: str | None = None,
        gamma: float | None = None,
        unknown: Any = None,
        bagging: bool = True,
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
        self.metric, self.class_weight = metric, class_weight
        self.unknown, self.bagging = unknown, bagging

    def fit(
        self,
        graph: Graph,
        X: Any,
        y: Any,
        *,
        train: Any = None,
        val: Any = None,
        progress: ProgressCallback | None = None,
    ) -> PGNNClassifier:
        """Find and train a model.

        Parameters
        ----------
        graph : Graph
        X : array, tensor, sparse matrix or table, shape [N, F]
            Numbers are taken as they are. The columns of a pandas, Polars or Arrow table (numbers,
            categories, dates, text) become features as in :func:`plap.fit`, scaled by the training nodes, and
            ``predict`` finds them by name in any order.
        y : sequence, shape [N]
            Labels of any type; unknown is -1, NaN or None. Labels of exactly -1 and 1 are two classes.
        train, val : boolean arrays [N], optional
            Which known labels to learn from and which to judge by; by default all, shared out at random.
        progress : function of a Progress, optional
            Called after every epoch.
        """
        classes, codes = encode(y, self.unknown)
        task = Multiclass.of_width(max(2, classes.size))
        if isinstance(self.class_weight, Mapping):
            task = Multiclass((*classes.tolist(), *range(task.num_outputs - classes.size)))
        self._fit(graph, X, torch.from_numpy(codes), task, train, val, progress)
        self.classes_ = classes
        return self

    def predict_proba(self, graph: Graph | None = None, X: Any = None) -> NDArray[np.float64]:
        """Probabilities [N, classes] of the nodes of ``fit``, or of another graph with the same features."""
        probabilities = self._outputs(graph, X)[:, : self.classes_.size].double()
        result: NDArray[np.float64] = (probabilities / probabilities.sum(1, keepdim=True)).numpy()
        return result

    def predict(self, graph: Graph | None = None, X: Any = None) -> Classes:
        """The class of every node, as the labels of ``fit`` had it.

        It is the likeliest one; for two classes and a metric such as average precision, the rarer one from a
        threshold on that was chosen by the labels set aside.
        """
        codes = self._codes(graph, X)
        predicted: Classes = self.classes_[codes]
        return predicted

    def _codes(self, graph: Graph | None, X: Any) -> NDArray[np.int64]:
        probabilities = torch.from_numpy(self.predict_proba(graph, X))
        if self.classes_.size < self.task_.num_outputs:
            return probabilities.argmax(1).numpy()
        return self.task_.decode(probabilities).numpy()

    def score(self, y: Any, graph: Graph | None = None, X: Any = None) -> float:
        """Accuracy against true labels; where these are unknown, they do not count."""
        predicted = self._codes(graph, X)
        codes = codes_of(y, self.classes_, self.unknown)
        if codes.size != predicted.size:
            raise InputError(f"y has {codes.size} labels but there are {predicted.size} predictions")
        known = codes >= 0
        if not known.any():
            raise InputError("y has no known label to score against")
        return float((predicted[known] == codes[known]).mean())

    def _named_task(self) -> Task:
        return replace(self.task_, class_names=tuple(self.classes_.tolist()))

    @classmethod
    def load(cls, out: Path | str) -> PGNNClassifier:
        """The classifier of a folder that ``plap fit`` wrote; it predicts for graphs given to it.

        Classes whose names are all whole numbers are integers.
        """
        file = load_model(out)
        if not file.task.one_class_per_node:
            raise InputError(
                f"{out} holds a model for {file.task.name} data, not for classes; use plap predict"
            )
        model = cls._loaded(file)
        model.classes_ = np.asarray(file.classes) if file.text_labels else classes_named(file.classes)
        return model


def as_features(X: Any, graph: Graph) -> Features:
    """X as the models take it: a float32 tensor, or a sparse matrix as it is; one row per node."""
    check_graph(graph)
    if not isinstance(X, Tensor) and not scipy.sparse.issparse(X):
        try:
            X = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
        except (TypeError, ValueError):
            raise InputError("X must hold numbers, one row per node") from None
    if X.ndim != 2 or X.shape[0] != graph.num_nodes:
        raise InputError(f"X must have shape [{graph.num_nodes}, F], not {list(X.shape)}")
    return X.float() if isinstance(X, Tensor) else X


def fit_columns(X: Any, graph: Graph, train: Tensor) -> tuple[tuple[str, ...], ColumnTransform, Features]:
    """The names of a table's columns, what they become, fitted on the nodes ``train``, and the features."""
    frame = _frame(X, graph)
    rows = train.numpy()
    transform = ColumnTransform.fit(frame, rows, infer_columns(frame, rows))
    if not transform.feature_names:
        raise InputError("no column of X can be a feature: all are constant, empty or identifiers")
    return tuple(frame.columns), transform, compact(torch.from_numpy(transform.apply(frame).matrix))


def apply_columns(X: Any, graph: Graph, transform: ColumnTransform) -> Features:
    """The features of a table by name; warns of columns that are ignored or far from the training rows."""
    frame = _frame(X, graph)
    matrix, notes = transform.apply(frame)
    said = [str(note) for note in notes if note.what == "extra"]
    said += [f"drift in {column.sentence}" for column in drift(transform, frame) if column.notable]
    for sentence in said:
        warnings.warn(f"X: {sentence}", UserWarning, stacklevel=5)
    return compact(torch.from_numpy(matrix))


def _frame(X: Any, graph: Graph) -> pl.DataFrame:
    check_graph(graph)
    if type(X).__module__.startswith("pandas"):
        X = X.reset_index(drop=True)  # rows are nodes in their order, whatever they are called
    frame = as_frame(X, "features X")
    if frame.height != graph.num_nodes:
        raise InputError(f"X must have one row for each of the {graph.num_nodes} nodes, not {frame.height}")
    return frame
