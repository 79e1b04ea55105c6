"""Graphs in: benchmarks, cSBM, a user's own tables, splits, noise, homophily."""

from plap.data.benchmarks.loading import load
from plap.data.dataset import FixedSplits, GraphData, Provenance
from plap.data.measures import homophily
from plap.data.metrics import METRICS, Metric
from plap.data.splits import Split, split
from plap.data.synthetic import PerturbedGraph, csbm, perturb_edges
from plap.data.tables.loading import load_folder, load_tables
from plap.data.tables.npz import load_npz
from plap.data.tasks import TASKS, Task

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
    "homophily",
    "load",
    "load_folder",
    "load_npz",
    "load_tables",
    "perturb_edges",
    "split",
]
