"""Graphs in: benchmarks, cSBM, a user's own tables, splits, noise, homophily."""

import importlib
from typing import TYPE_CHECKING, Any

from plap.data.benchmarks.loading import load
from plap.data.dataset import FixedSplits, GraphData, Provenance
from plap.data.measures import homophily
from plap.data.metrics import METRICS, Metric
from plap.data.splits import Split, folds, split
from plap.data.synthetic import PerturbedGraph, csbm, perturb_edges
from plap.data.tasks import TASKS, Task

if TYPE_CHECKING:
    from plap.data.tables import load_folder, load_npz, load_tables

__all__ = [
    "METRICS",
    "TASKS",
    "FixedSplits",
    "GraphData",
    "Metric",
    "PerturbedGraph",
    "Provenance",
    "Split",
    "Task",
    "csbm",
    "folds",
    "homophily",
    "load",
    "load_folder",
    "load_npz",
    "load_tables",
    "perturb_edges",
    "split",
]


def __getattr__(name: str) -> Any:
    """Import what reads tables, and with it Polars, only when it is asked for."""
    if name not in ("load_folder", "load_npz", "load_tables"):
        raise AttributeError(f"module 'plap.data' has no attribute {name!r}")
    return getattr(importlib.import_module("plap.data.tables"), name)
