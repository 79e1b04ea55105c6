"""Benchmark files of a few nodes, one writer a format; the numbers are checked in test_benchmarks.py."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from plap.data.benchmarks.benchmark import Benchmark
from plap.data.benchmarks.registry import find

GEOM_GCN_LABELS = [0, 1, 1, 0]
_GEOM_GCN_EDGES = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 3)]


def without_sums(name: str, root: Path) -> Benchmark:
    """The registry's row for files of the test's own making: their own sums if pickled, else none."""

    def own_sum(path: str) -> str:
        return hashlib.sha256((root / path).read_bytes()).hexdigest()

    row = find(name)
    files = [replace(file, sha256=own_sum(file.path) if row.pickled else None) for file in row.files]
    return replace(row, statistics=None, files=tuple(files))


def _raw(root: Path, name: str) -> Path:
    folder = (root / find(name).files[0].path).parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_planetoid(root: Path) -> None:
    """520 nodes on a path (PyG takes 500 of them for validation); the last ten, reversed, are the tests."""
    folder = _raw(root, "cora")
    features = csr_matrix(np.eye(6)[np.arange(520) % 6])
    labels = np.eye(2)[np.arange(520) % 2]
    test = np.arange(510, 520)[::-1]
    parts = {
        "x": features[:4],
        "allx": features[:510],
        "tx": features[test],
        "y": labels[:4],
        "ally": labels[:510],
        "ty": labels[test],
        "graph": {k: [j for j in (k - 1, k + 1) if 0 <= j < 520] for k in range(520)},
    }
    for part, value in parts.items():
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(value))
    (folder / "ind.cora.test.index").write_text("\n".join(map(str, test)) + "\n")


def _write_shchur(name: str) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        """A path 0-1-2 with a self-loop, and an isolated node."""
        adjacency = csr_matrix(np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
        attributes = csr_matrix(np.array([[2.0, 0, 0], [0, 1, 0], [0, 0, 7], [0, 0, 0]], dtype=np.float32))
        arrays: dict[str, Any] = {
            f"{prefix}_{part}": np.asarray(getattr(matrix, part))
            for prefix, matrix in (("adj", adjacency), ("attr", attributes))
            for part in ("data", "indices", "indptr", "shape")
        }
        _raw(root, name)
        np.savez(root / find(name).files[0].path, labels=np.array([0, 1, 0, 1]), **arrays)

    return write


def _write_geom_gcn(name: str) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        """Four nodes; in split k, node k % 4 is for training, the next for validation, then one test."""
        folder = _raw(root, name)
        lists = ["1", "0", "2", "0,2"]
        vectors = ["0,1,0", "1,0,0", "0,0,1", "1,0,1"]
        rows = [
            f"{k}\t{feature}\t{label}"
            for k, (feature, label) in enumerate(
                zip(lists if name == "actor" else vectors, GEOM_GCN_LABELS, strict=True)
            )
        ]
        (folder / "out1_node_feature_label.txt").write_text("\n".join(["id\tfeature\tlabel", *rows]) + "\n")
        edges = [f"{source}\t{target}" for source, target in _GEOM_GCN_EDGES]
        (folder / "out1_graph_edges.txt").write_text("\n".join(["source\ttarget", *edges]) + "\n")
        for k, file in enumerate(find(name).files[2:]):
            masks = np.roll(np.eye(4, dtype=np.uint8), k, axis=1)
            np.savez(root / file.path, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])

    return write


def _write_heterophilous(name: str) -> Callable[..., None]:
    def write(root: Path, label: int = 0) -> None:
        """A path 0-1-2 in one direction, and two splits; ``label`` is node 0's."""
        _raw(root, name)
        np.savez(
            root / find(name).files[0].path,
            node_features=np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=np.float32),
            node_labels=np.array([label, 1, 1]),
            edges=np.array([[0, 1], [1, 2]]),
            train_masks=np.array([[1, 0, 0], [0, 0, 1]], dtype=bool),
            val_masks=np.array([[0, 1, 0], [0, 1, 0]], dtype=bool),
            test_masks=np.array([[0, 0, 1], [1, 0, 0]], dtype=bool),
        )

    return write


def write_ppi(root: Path) -> None:
    """Two graphs of two nodes for training, one of three each for the rest, whose first node is isolated."""
    folder = _raw(root, "ppi")
    parts: dict[str, tuple[list[int], list[tuple[int, int]]]] = {
        "train": ([1, 1, 2, 2], [(0, 1), (2, 3), (3, 3)]),
        "valid": ([21, 21, 21], [(1, 2)]),
        "test": ([23, 23, 23], [(1, 2)]),
    }
    for name, (graph, edges) in parts.items():
        links = [{"source": source, "target": target} for source, target in edges]
        nodes = [{"id": k} for k in range(len(graph))]
        text = json.dumps({"directed": False, "multigraph": False, "nodes": nodes, "links": links})
        (folder / f"{name}_graph.json").write_text(text)
        np.save(folder / f"{name}_feats.npy", np.arange(2.0 * len(graph)).reshape(-1, 2))
        np.save(folder / f"{name}_labels.npy", np.eye(4, dtype=np.int64)[: len(graph)])
        np.save(folder / f"{name}_graph_id.npy", np.array(graph))


def write_ogb(root: Path) -> None:
    """Three papers, two citations."""
    tables = {
        "raw/edge": "0,1\n2,1\n",
        "raw/node-feat": "0.5,-1\n2,3.25\n0,1\n",
        "raw/node-label": "2\n0\n1\n",
        "split/time/train": "2\n",
        "split/time/valid": "0\n",
        "split/time/test": "1\n",
    }
    for name, text in tables.items():
        path = root / "OGB/ogbn_arxiv" / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))


WRITERS: dict[str, Callable[..., None]] = {
    "cora": write_planetoid,
    **{name: _write_shchur(name) for name in ("computers", "cs")},
    **{name: _write_geom_gcn(name) for name in ("texas", "chameleon", "actor", "cornell-2021")},
    **{name: _write_heterophilous(name) for name in ("roman-empire", "minesweeper", "squirrel-filtered")},
    "ppi": write_ppi,
    "ogbn-arxiv": write_ogb,
}
