"""Graphs in: benchmarks, cSBM, a user's own tables, splits, noise, homophily."""

from plap.data.benchmarks import load
from plap.data.contextual_sbm import csbm
from plap.data.graph_data import FixedSplits, GraphData, Provenance
from plap.data.measures import homophily
from plap.data.noise import PerturbedGraph, perturb_edges
from plap.data.npz import load_npz
from plap.data.splits import Split, split
from plap.data.tables import load_folder, load_tables

__all__ = [
    "FixedSplits",
    "GraphData",
    "PerturbedGraph",
    "Provenance",
    "Split",
    "csbm",
    "homophily",
    "load",
    "load_folder",
    "load_npz",
    "load_tables",
    "perturb_edges",
    "split",
]
