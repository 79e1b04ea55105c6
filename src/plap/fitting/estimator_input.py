"""What an estimator takes as X: numbers as they are, or a table whose columns become features by name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse
import torch
from torch import Tensor

from plap.data.columns import ColumnTransform, infer_columns
from plap.data.tables.in_memory import as_frame
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.nn.linear import Features
from plap.sparse import compact


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
    """The features of a table whose columns are found by name; further ones are ignored with a warning."""
    matrix, notes = transform.apply(_frame(X, graph))
    for note in notes:
        if note.what == "extra":
            warnings.warn(f"X: {note}", UserWarning, stacklevel=5)
    return compact(torch.from_numpy(matrix))


def _frame(X: Any, graph: Graph) -> pl.DataFrame:
    check_graph(graph)
    if type(X).__module__.startswith("pandas"):
        X = X.reset_index(drop=True)  # rows are nodes in their order, whatever they are called
    frame = as_frame(X, "features X")
    if frame.height != graph.num_nodes:
        raise InputError(f"X must have one row for each of the {graph.num_nodes} nodes, not {frame.height}")
    return frame
