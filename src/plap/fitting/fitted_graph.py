"""The graph that a saved model was fitted on, and what part each of its nodes had in the fit."""

from __future__ import annotations

from pathlib import Path

import polars
import torch
from torch import Tensor

from plap.data.dataset import GraphData
from plap.data.resolve import open_graph
from plap.data.tables.options import TableOptions
from plap.errors import InputError
from plap.fitting.artifacts import SavedModel, load_metrics
from plap.fitting.prediction import as_fitted, like, nodes_of_fit


def open_fitted(
    out: Path,
    model: SavedModel,
    graph: str | None = None,
    *,
    nodes: Path | None = None,
    root: Path | None = None,
) -> GraphData:
    """The graph that was named, or the one that the model was fitted on if it can be found by name."""
    tables = like(model, TableOptions())
    if graph is not None:
        return as_fitted(model, open_graph(graph, tables, nodes=nodes, root=root))
    name = str(load_metrics(out).get("graph", ""))
    try:
        return as_fitted(model, open_graph(name, tables, root=root))
    except InputError as error:
        raise InputError(f"{out} was fitted on {name!r}: say with --graph where that is ({error})") from None


def in_role(out: Path, wanted: str) -> Tensor:
    """The nodes with this role in a fit, [N]: "train", "val", "test" or none of them."""
    path = out / "predictions.parquet"
    try:
        role = polars.read_parquet(path, columns=["role"])["role"]
    except (OSError, polars.exceptions.PolarsError):
        raise InputError(f"{path} cannot be read: it is missing or damaged") from None
    return torch.from_numpy((role == wanted).to_numpy().copy())


def fitted_nodes(out: Path | str) -> dict[str, tuple[str, str | float | None]] | None:
    """Role in the fit and label of each node by its name; None where the fit's predictions are gone."""
    try:
        found = polars.read_parquet(Path(out) / "predictions.parquet", columns=["node", "role", "known"])
    except (OSError, polars.exceptions.PolarsError):
        return None
    return nodes_of_fit(found)


def check_one_class(model: SavedModel, wish: str) -> None:
    """Refuse a model for numbers or of several labels per node; ``wish`` is such as "inspected"."""
    if model.task.one_class_per_node:
        return
    kind = "for numbers" if model.task.numeric else "of several labels per node"
    where = "this is" if model.path is None else f"{model.path} holds"
    raise InputError(f"{where} a model {kind}; only a model of one class per node can be {wish}")
