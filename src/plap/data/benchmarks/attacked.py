"""Graphs whose edges an adversary changed before training, in the layout of Jin et al. (KDD 2020)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.data.benchmarks.benchmark import Benchmark, RawGraph
from plap.data.dataset import FixedSplits, largest_component_nodes
from plap.graph import Graph
from plap.sparse import csr_tensor


def read_attacked(
    benchmark: Benchmark, folder: Path, *, stem: str, matrix: str | None = None, targets: str | None = None
) -> RawGraph:
    """Read the clean graph's features and labels, and the edges that the attacker left.

    Matrices and splits count the nodes of the largest component of the clean graph, in its own order. The
    arrays of objects in the files are never touched, so nothing is unpickled.

    Parameters
    ----------
    stem : str
        What the names of the files begin with.
    matrix : str, optional
        File of the attacked adjacency matrix; by default the clean graph.
    targets : str, optional
        File of the nodes that were attacked: of the published test nodes only these are kept.
    """
    with np.load(folder / f"{stem}.npz", allow_pickle=False) as arrays:
        adjacency, x = _matrix(arrays, "adj"), _matrix(arrays, "attr")
        y = torch.from_numpy(arrays["labels"].astype(np.int64))
    nodes = largest_component_nodes(Graph.from_scipy(adjacency, symmetrize="max", self_loops="drop")).numpy()
    edges = adjacency[nodes][:, nodes] if matrix is None else scipy.sparse.load_npz(folder / matrix)
    if edges.shape != (nodes.size, nodes.size):
        raise ValueError(f"{matrix} has {edges.shape[0]} nodes and the clean graph {nodes.size}")
    x = scipy.sparse.csr_array(x[nodes]).astype(np.float32)
    return RawGraph(
        _edge_index(edges),
        csr_tensor(
            torch.from_numpy(x.indptr), torch.from_numpy(x.indices), torch.from_numpy(x.data), x.shape
        ),
        y[torch.from_numpy(nodes)],
        _splits(folder, stem, targets, nodes.size),
    )


def _matrix(arrays: Any, name: str) -> scipy.sparse.csr_array:
    parts = [arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape")]
    return scipy.sparse.csr_array(tuple(parts[:3]), shape=tuple(int(size) for size in parts[3]))


def _edge_index(adjacency: Any) -> Tensor:
    """Both directions of every edge: the attacker changes edges of an undirected graph."""
    entries = scipy.sparse.coo_array(adjacency)
    kept = (entries.data != 0) & (entries.row != entries.col)
    ends = torch.from_numpy(np.stack([entries.row[kept], entries.col[kept]]).astype(np.int64))
    both: Tensor = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    return both


def _splits(folder: Path, stem: str, targets: str | None, nodes: int) -> FixedSplits:
    with (folder / f"{stem}_prognn_splits.json").open(encoding="utf-8") as stream:
        parts = json.load(stream)
    train, val, test = (_mask(parts[f"idx_{name}"], nodes) for name in ("train", "val", "test"))
    if targets is not None:
        with (folder / targets).open(encoding="utf-8") as stream:
            test = _mask(json.load(stream)["attacked_test_nodes"], nodes) & ~train & ~val
    return FixedSplits(train, val, test, preferred=True)


def _mask(index: list[int], nodes: int) -> Tensor:
    mask = torch.zeros(nodes, 1, dtype=torch.bool)
    mask[torch.tensor(index, dtype=torch.int64)] = True
    return mask
