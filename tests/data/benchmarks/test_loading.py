from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch_geometric.data import Data
from torch_geometric.transforms import LargestConnectedComponents

from plap.data import GraphData, load
from plap.data.benchmarks.benchmark import Statistics
from plap.data.benchmarks.loading import load_benchmark
from plap.data.benchmarks.registry import BENCHMARKS, find
from plap.errors import InputError
from tiny_benchmarks import GEOM_GCN_LABELS, WRITERS, without_sums, write_planetoid

Real = Callable[..., GraphData]


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(autouse=True)
def only_given_roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PLAP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class TestTinyFiles:
    """Each format, on a file of that format that the test writes."""

    @pytest.mark.parametrize("name", WRITERS)
    def test_loads_and_leaves_the_folder_alone(self, name: str, tmp_path: Path) -> None:
        WRITERS[name](tmp_path)
        before = contents(tmp_path)
        data = load_benchmark(without_sums(name, tmp_path), tmp_path)
        assert contents(tmp_path) == before
        assert data.name == name
        assert data.provenance.files == before
        assert data.x.dtype == torch.float32
        assert data.x.shape[0] == data.graph.num_nodes == data.y.shape[0]
        assert data.graph.num_self_loops == 0

    def test_planetoid(self, tmp_path: Path) -> None:
        write_planetoid(tmp_path)
        data = load_benchmark(without_sums("cora", tmp_path), tmp_path)
        assert data.y.bincount().tolist() == [260, 260]
        assert data.graph.num_edges == 519
        assert data.splits is not None
        assert [int(mask.sum()) for mask in data.splits.masks] == [4, 500, 10]
        # Row i has one entry, i % 6: the test rows are stored in another order and must be put back.
        assert data.x.to_dense().argmax(1).tolist() == [i % 6 for i in range(520)]

    @pytest.mark.parametrize("name", ["computers", "cs"])
    def test_shchur(self, name: str, tmp_path: Path) -> None:
        WRITERS[name](tmp_path)
        data = load_benchmark(without_sums(name, tmp_path), tmp_path)
        assert data.x.to_dense().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
        assert data.y.tolist() == [0, 1, 0, 1]
        assert (data.graph.num_edges, data.splits) == (2, None)
        assert load_benchmark(without_sums(name, tmp_path), tmp_path, largest_component=True).node_ids == (
            0,
            1,
            2,
        )

    @pytest.mark.parametrize("name", ["texas", "chameleon", "actor", "cornell-2021"])
    def test_geom_gcn(self, name: str, tmp_path: Path) -> None:
        WRITERS[name](tmp_path)
        data = load_benchmark(without_sums(name, tmp_path), tmp_path)
        assert data.y.tolist() == GEOM_GCN_LABELS
        assert data.x.to_dense()[0].tolist() == [0, 1, 0]
        assert data.graph.num_edges == 3
        assert data.directed_edge_index is not None
        assert sorted(data.directed_edge_index.T.tolist()) == [[0, 1], [1, 0], [1, 2], [2, 3], [3, 3]]
        assert data.splits is not None
        assert data.splits.train.shape == (4, 10)
        assert data.splits.train[:, 3].tolist() == [False, False, False, True]

    @pytest.mark.parametrize("name", ["roman-empire", "squirrel-filtered"])
    def test_heterophilous(self, name: str, tmp_path: Path) -> None:
        WRITERS[name](tmp_path)
        data = load_benchmark(without_sums(name, tmp_path), tmp_path)
        assert data.y.tolist() == [0, 1, 1]
        assert data.graph.num_edges == 2
        assert data.directed_edge_index is None
        assert data.splits is not None
        assert data.splits.test.tolist() == [[False, True], [False, False], [True, False]]

    def test_ppi_is_a_disjoint_union(self, tmp_path: Path) -> None:
        WRITERS["ppi"](tmp_path)
        data = load_benchmark(without_sums("ppi", tmp_path), tmp_path)
        assert data.graph_of_node is not None
        assert data.graph_of_node.tolist() == [0, 0, 1, 1, 2, 2, 2, 3, 3, 3]
        source, target = data.graph.edge_index
        assert (data.graph_of_node[source] == data.graph_of_node[target]).all()
        assert data.graph.edge_index[:, source < target].T.tolist() == [[0, 1], [2, 3], [5, 6], [8, 9]]
        assert (data.y.shape, data.y.dtype, data.num_classes) == ((10, 4), torch.float32, 4)
        assert data.splits is not None
        assert data.splits.train[:, 0].nonzero().flatten().tolist() == [0, 1, 2, 3]
        assert data.splits.test[:, 0].nonzero().flatten().tolist() == [7, 8, 9]

    def test_ogb(self, tmp_path: Path) -> None:
        WRITERS["ogbn-arxiv"](tmp_path)
        data = load_benchmark(without_sums("ogbn-arxiv", tmp_path), tmp_path)
        assert data.y.tolist() == [2, 0, 1]
        assert data.x.tolist() == [[0.5, -1.0], [2.0, 3.25], [0.0, 1.0]]
        assert data.directed_edge_index is not None
        assert data.directed_edge_index.T.tolist() == [[0, 1], [2, 1]]
        assert data.splits is not None
        assert [mask.flatten().tolist().index(True) for mask in data.splits.masks] == [2, 0, 1]


class TestNames:
    @pytest.mark.parametrize("name", ["Cora", " CORA ", "cornell_2021", "Roman_Empire"])
    def test_case_and_underscores_do_not_matter(self, name: str) -> None:
        assert find(name).name == name.strip().lower().replace("_", "-")

    @pytest.mark.parametrize(
        ("name", "hint"), [("crnell", "cornell"), ("texsa", "texas"), ("xyz", "plap data list")]
    )
    def test_an_unknown_name_suggests_the_closest(self, name: str, hint: str) -> None:
        with pytest.raises(InputError, match=hint):
            load(name)

    def test_a_csbm_string(self) -> None:
        data = load("CSBM:phi=-0.5, n=40,f=3,seed=2")
        assert (data.graph.num_nodes, data.x.shape[1]) == (40, 3)
        assert load(data.name).graph.digest == data.graph.digest

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            ("csbm", "csbm needs phi"),
            ("csbm:n=10", "csbm needs phi"),
            ("csbm:phi=x", "phi must be a number, not 'x'"),
            ("csbm:phi=nan", "phi must be a finite number"),
            ("csbm:phi=0,n=1e3", "n must be an integer, not '1e3'"),
            ("csbm:phi", "phi must be a number, not ''"),
            ("csbm:phi=2", r"phi must be in \[-1, 1\]"),
            ("csbm:phi=0,epsilom=1", "did you mean epsilon"),
            ("csbm:phi=0,phi=1", "phi is given twice"),
            ("csbm:phi=0,n=7", "n must be even"),
            ("csbm:phi=0,seed=-1", "seed must be an integer of 0 or more"),
            ("csbm:phi=1,d=1", "probability"),
        ],
    )
    def test_a_bad_csbm_string_is_one_sentence(self, name: str, sentence: str) -> None:
        with pytest.raises(InputError, match=sentence):
            load(name)


class TestRealFiles:
    @pytest.mark.parametrize(
        "name", [row.name for row in BENCHMARKS.values() if row.files[0].sha256 and not row.rates]
    )
    def test_statistics_and_sums(self, name: str, real: Real) -> None:
        data = real(name)
        row = BENCHMARKS[name]
        found = Statistics(data.graph.num_nodes, data.graph.num_edges, data.x.shape[1], data.num_classes)
        assert found == row.statistics
        assert data.provenance.files == {file.path: file.sha256 for file in row.files}

    @pytest.mark.parametrize(
        ("name", "nodes", "edges"), [("computers", 13381, 245778), ("photo", 7487, 119043)]
    )
    def test_largest_component(self, name: str, nodes: int, edges: int, real: Real) -> None:
        whole, data = real(name), real(name, largest_component=True)
        assert (data.graph.num_nodes, data.graph.num_edges) == (nodes, edges)
        assert data.x.shape[0] == data.y.shape[0] == nodes
        by_pyg = LargestConnectedComponents()(
            Data(x=whole.x.to_dense(), y=whole.y, edge_index=whole.graph.edge_index)
        )
        assert torch.equal(by_pyg.y, data.y)
        assert torch.equal(by_pyg.x, data.x.to_dense())

    @pytest.mark.parametrize("name", ["texas", "actor", "squirrel", "cornell-2021"])
    def test_ten_public_splits(self, name: str, real: Real) -> None:
        splits = real(name).splits
        assert splits is not None
        nodes = splits.train.shape[0]
        for train, val, test in zip(splits.train.T, splits.val.T, splits.test.T, strict=True):
            assert not (train & val).any()
            assert not (train & test).any()
            assert not (val & test).any()
            assert float(train.sum()) / nodes == pytest.approx(0.48, abs=0.01)
        assert splits.train.shape[1] == 10

    def test_the_two_cornells(self, real: Real) -> None:
        texas, old, new = real("texas"), real("cornell-2021"), real("cornell")
        assert torch.equal(texas.y, old.y)
        assert not torch.equal(old.y, new.y)
        assert new.y.bincount().tolist() == [38, 16, 30, 82, 17]

    @pytest.mark.parametrize(("name", "edges", "loops"), [("chameleon", 36101, 50), ("texas", 325, 16)])
    def test_directed_edges_are_kept(self, name: str, edges: int, loops: int, real: Real) -> None:
        directed = real(name).directed_edge_index
        assert directed is not None
        assert directed.shape[1] == edges
        assert int((directed[0] == directed[1]).sum()) == loops


def test_sparse_features_match_the_source(tmp_path: Path) -> None:
    WRITERS["cs"](tmp_path)
    attributes = csr_matrix(np.eye(4, 300))
    path = tmp_path / find("cs").files[0].path
    arrays = dict(np.load(path))
    arrays |= {
        "attr_data": attributes.data,
        "attr_indices": attributes.indices,
        "attr_indptr": attributes.indptr,
        "attr_shape": np.array(attributes.shape),
    }
    np.savez(path, **arrays)
    data = load_benchmark(without_sums("cs", tmp_path), tmp_path)
    assert data.x.layout == torch.sparse_csr
    assert np.array_equal(data.x.to_dense().numpy(), attributes.toarray())
    part = load_benchmark(without_sums("cs", tmp_path), tmp_path, largest_component=True)
    assert np.array_equal(part.x.to_dense().numpy(), attributes.toarray()[:3])
