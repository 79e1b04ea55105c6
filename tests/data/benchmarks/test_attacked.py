"""Graphs under attack: names with a rate, the published split, files without pickles."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import plap.data
from plap.data import GraphData
from plap.data.benchmarks import find, load_benchmark
from plap.errors import InputError
from plap.experiments.protocol import find_protocol
from plap.fitting import choose_split

Real = Callable[..., GraphData]


def write_attacked(root: Path, stem: str = "citeseer") -> Path:
    """Seven nodes: a path of five in one direction with a self-loop, and apart from it the pair 1, 4."""
    folder = root / "Adversarial" / stem
    folder.mkdir(parents=True)
    adjacency = scipy.sparse.csr_array(
        (np.ones(6, dtype=np.float32), ([0, 2, 3, 5, 1, 6], [2, 3, 5, 6, 4, 6])), shape=(7, 7)
    )
    attributes = scipy.sparse.csr_array(np.eye(7, 3, dtype=np.int64))
    arrays: dict[str, Any] = {
        f"{name}_{part}": np.asarray(getattr(matrix, part))
        for name, matrix in (("adj", adjacency), ("attr", attributes))
        for part in ("data", "indices", "indptr", "shape")
    }
    names = np.array(["a", None], dtype=object)
    np.savez(
        folder / f"{stem}.npz", labels=np.array([0, 1, 0, 1, 1, 0, 1], np.int8), idx_to_node=names, **arrays
    )
    ends = np.array([[0, 1], [1, 2], [2, 3], [0, 4]])
    attacked = scipy.sparse.coo_matrix((np.ones(4), ends.T), shape=(5, 5)).tocsr()
    for file in (f"{stem}_meta_adj_0.1.npz", f"{stem}_nettack_adj_2.0.npz"):
        scipy.sparse.save_npz(folder / file, attacked + attacked.T)
    parts = {"idx_train": [0, 1], "idx_val": [2], "idx_test": [3, 4]}
    (folder / f"{stem}_prognn_splits.json").write_text(json.dumps(parts))
    (folder / f"{stem}_nettacked_nodes.json").write_text(json.dumps({"attacked_test_nodes": [4, 0]}))
    return root


def edges(data: GraphData) -> list[tuple[int, int]]:
    return sorted((i, j) for i, j in data.graph.edge_index.T.tolist() if i < j)


def test_the_attacked_edges_on_the_largest_component(tmp_path: Path) -> None:
    data = plap.data.load("CiteSeer-Metattack:rate=0.10", write_attacked(tmp_path))
    assert data.name == "citeseer-metattack:rate=0.1"
    assert edges(data) == [(0, 1), (0, 4), (1, 2), (2, 3)]
    assert data.y.tolist() == [0, 0, 1, 0, 1]
    assert data.x.to_dense()[:, 0].tolist() == [1, 0, 0, 0, 0]
    assert data.splits is not None
    assert data.splits.preferred
    assert plap.data.split(data, "public").sizes == (2, 1, 2)


def test_rate_0_is_the_clean_graph_and_needs_no_matrix(tmp_path: Path) -> None:
    data = plap.data.load("citeseer-metattack:rate=0", write_attacked(tmp_path))
    assert edges(data) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_nettack_is_tested_at_its_targets(tmp_path: Path) -> None:
    data = plap.data.load("citeseer-nettack:rate=2", write_attacked(tmp_path))
    split = plap.data.split(data, "public")
    assert split.test.tolist() == [False, False, False, False, True]  # node 0 is a training node
    assert edges(data) == [(0, 1), (0, 4), (1, 2), (2, 3)]


def test_the_published_split_is_the_default_of_a_fit(tmp_path: Path) -> None:
    data = plap.data.load("citeseer-metattack:rate=0.1", write_attacked(tmp_path))
    assert choose_split(data).kind == "public"
    free = replace(data, splits=replace(data.splits, preferred=False))  # type: ignore[type-var]
    assert choose_split(free).kind == "stratified"
    assert choose_split(data, preset="dense").kind == "stratified"


def test_the_largest_component_of_one_keeps_its_split_binding(tmp_path: Path) -> None:
    root = write_attacked(tmp_path)
    folder = root / "Adversarial" / "citeseer"
    alone = scipy.sparse.csr_matrix(([1.0, 1.0], ([0, 1], [1, 0])), shape=(5, 5))
    scipy.sparse.save_npz(folder / "citeseer_meta_adj_0.2.npz", alone)
    data = plap.data.load("citeseer-metattack:rate=0.2", root, largest_component=True)
    assert data.splits is not None
    assert data.splits.preferred
    assert data.graph.num_nodes == 2


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("citeseer-metattack", "citeseer-metattack needs the rate of its attack, .*:rate=0.25"),
        ("citeseer-metattack:rate=0.3", "rate must be one of 0, 0.05, 0.1, 0.15, 0.2, 0.25, not '0.3'"),
        ("citeseer-metattack:rate=much", "rate must be one of .* not 'much'"),
        ("citeseer-metattack:rate=-1", "rate must be one of .* not '-1'"),
        ("citeseer-metattack:rate=0.1,rate=0.2", "rate must be one of"),
        ("citeseer-metattack:r=0.1", "has no parameter 'r': only rate"),
        ("citeseer-nettack:rate=0.25", "rate must be one of 0, 1, 2, 3, 4, 5, not '0.25'"),
        ("citeseer:rate=0.1", "no benchmark named 'citeseer:rate=0.1'"),
        ("citeseer-metatack:rate=0.1", "did you mean citeseer-metattack"),
        ("citeseer-metattack:rate=0.25", "citeseer_meta_adj_0.25.npz is in none of the data folders"),
    ],
)
def test_a_bad_name_is_one_sentence(name: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        plap.data.load(name, write_attacked(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_matrix_of_another_graph_is_one_sentence(tmp_path: Path) -> None:
    root = write_attacked(tmp_path)
    file = root / "Adversarial" / "citeseer" / "citeseer_meta_adj_0.2.npz"
    scipy.sparse.save_npz(file, scipy.sparse.csr_matrix((4, 4)))
    with pytest.raises(InputError, match=r"citeseer_meta_adj_0\.2\.npz has 4 nodes and the clean graph 5"):
        plap.data.load("citeseer-metattack:rate=0.2", root)


def test_objects_in_a_matrix_are_not_unpickled(tmp_path: Path) -> None:
    root = write_attacked(tmp_path)
    file = root / "Adversarial" / "citeseer" / "citeseer_meta_adj_0.2.npz"
    np.savez(file, format=np.array(["csr"], dtype=object))
    with pytest.raises(InputError, match="cannot be read"):
        plap.data.load("citeseer-metattack:rate=0.2", root)


def test_tables_may_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAP_DATA", str(write_attacked(tmp_path)))
    protocol = find_protocol("sound")
    assert protocol.open("citeseer-metattack:rate=0.1", 3).graph.num_edges == 4
    assert protocol.split("citeseer-metattack:rate=0.1", 3, "public").sizes == (2, 1, 2)
    with pytest.raises(InputError, match="no parameter 'phi'"):
        protocol.open("citeseer-metattack:phi=0.1", 3)


@pytest.mark.parametrize(
    ("rate", "num_edges"), [("0", 5069), ("0.05", 5322), ("0.1", 5567), ("0.2", 6040), ("0.25", 6246)]
)
def test_real_cora(rate: str, num_edges: int, real: Real) -> None:
    data = real(f"cora-metattack:rate={rate}")
    assert (data.graph.num_nodes, data.graph.num_edges) == (2485, num_edges)
    assert plap.data.split(data, "public").sizes == (247, 249, 1988)
    assert data.provenance.files == {file.path: file.sha256 for file in find(data.name).files}
    assert torch.equal(data.y, real("cora-metattack:rate=0").y)


def test_the_row_itself_is_the_clean_graph(tmp_path: Path) -> None:
    root = write_attacked(tmp_path)
    row = replace(find("citeseer-metattack"), files=find("citeseer-metattack:rate=0").files)
    assert load_benchmark(row, root).graph.num_edges == 4
