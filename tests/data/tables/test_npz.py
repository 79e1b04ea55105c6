"""NPZ files of named arrays, on files this writes."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from plap import Graph, InputError
from plap.data import load_npz
from plap.data.tables.options import TableOptions

PAIRS = np.array([[0, 1], [1, 2], [2, 2]])


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("name", ["edges", "edge_index"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.uint64])
def test_edges(tmp_path: Path, name: str, dtype: type) -> None:
    array: np.ndarray = np.asarray(PAIRS, dtype=dtype)
    data = load_npz(save(tmp_path / "g.npz", **{name: array if name == "edges" else array.T}))
    assert data.graph.digest == Graph.from_edges(PAIRS).digest
    assert data.name == "g"
    assert data.feature_names is not None
    assert data.feature_names[0] == "log_degree"
    assert "Self-loops dropped: 1." in data.notes
    assert list(data.provenance.files) == ["g.npz"]


@pytest.mark.parametrize("name", ["weight", "weights", "edge_weight"])
def test_weights(tmp_path: Path, name: str) -> None:
    data = load_npz(save(tmp_path / "g.npz", edges=PAIRS, **{name: [2, 3, 4]}))
    assert data.graph.weight.tolist() == [2, 2, 3, 3]


@pytest.mark.parametrize("name", ["x", "features", "node_features"])
def test_features_dense_and_by_parts(tmp_path: Path, name: str) -> None:
    dense = np.array([[0, 1.5], [0, 0], [2, 0], [0, 0]])
    assert load_npz(save(tmp_path / "a.npz", edges=PAIRS, **{name: dense})).x.tolist() == dense.tolist()
    csr = scipy.sparse.csr_array(dense)
    parts = {f"{name}_{part}": getattr(csr, part) for part in ("data", "indices", "indptr", "shape")}
    sparse = load_npz(save(tmp_path / "b.npz", edges=PAIRS, **parts))
    assert sparse.x.layout == torch.sparse_csr
    assert sparse.x.to_dense().tolist() == dense.tolist()
    assert sparse.graph.num_nodes == 4


@pytest.mark.parametrize(
    ("labels", "y", "names"),
    [
        ([5, 7, -1, 5, 7], [0, 1, -1, 0, 1], ("5", "7")),
        ([0.0, np.nan, 1.0, 1.0, 0.0], [0, -1, 1, 1, 0], ("0", "1")),
        (["b", "a", "", "a", "b"], [1, 0, -1, 0, 1], ("a", "b")),
        (np.array([1, 1, 0, 0, 0], dtype=np.uint8), [1, 1, 0, 0, 0], ("0", "1")),
    ],
)
def test_labels(tmp_path: Path, labels: Any, y: list[int], names: tuple[str, ...]) -> None:
    data = load_npz(save(tmp_path / "g.npz", edges=PAIRS, y=np.asarray(labels)))
    assert data.y.tolist() == y
    assert data.class_names == names


def test_ids_are_names_only(tmp_path: Path) -> None:
    assert load_npz(save(tmp_path / "g.npz", edges=PAIRS, ids=["u", "v", "w"])).node_ids == ("u", "v", "w")
    assert load_npz(save(tmp_path / "g.npz", edges=PAIRS, ids=[9, 8, 7])).node_ids == (9, 8, 7)


def test_no_edges_but_nodes(tmp_path: Path) -> None:
    data = load_npz(save(tmp_path / "g.npz", edges=np.zeros((0, 2)), x=np.ones((3, 1))))
    assert (data.graph.num_nodes, data.graph.num_edges) == (3, 0)


def test_fractions_are_numbers_to_predict(tmp_path: Path) -> None:
    prices = [0.5, 1.25, np.nan, 2.5, 3.5, 7.25]
    path = save(tmp_path / "g.npz", edges=PAIRS, y=prices, colour=np.ones(3))
    data = load_npz(path)
    assert data.task.numeric
    np.testing.assert_array_equal(data.y.numpy(), prices)
    assert "so a number is predicted for each node" in data.notes[0]
    assert data.notes[1] == "g.npz: arrays that are not used: 'colour'."
    whole = save(tmp_path / "whole.npz", edges=PAIRS, y=[10, 20, 30])
    assert load_npz(whole, TableOptions(task="numbers")).y.tolist() == [10.0, 20.0, 30.0]


def test_marks_of_unknown_labels(tmp_path: Path) -> None:
    signs = load_npz(save(tmp_path / "g.npz", edges=PAIRS, y=[-1, 1, -1, 1]))
    assert (signs.y.tolist(), signs.class_names) == ([0, 1, 0, 1], ("-1", "1"))
    assert "-1 and 1 in 'y' are two classes" in signs.notes[0]
    gaps = load_npz(save(tmp_path / "n.npz", edges=PAIRS, y=[1.0, -1.0, np.nan, 1.0, -1.0]))
    assert (gaps.y.tolist(), gaps.class_names) == ([1, 0, -1, 1, 0], ("-1", "1"))
    marked = load_npz(save(tmp_path / "h.npz", edges=PAIRS, y=[*"aa?bb"]), TableOptions(unknown="?"))
    assert marked.y.tolist() == [0, 0, -1, 1, 1]
    numbers = save(tmp_path / "i.npz", edges=PAIRS, y=[-1, 2, 9, 9, -1, 2])
    assert load_npz(numbers).class_names == ("2", "9")
    other = load_npz(numbers, TableOptions(unknown="9"))
    assert (other.y.tolist(), other.class_names) == ([0, 1, -1, -1, 0, 1], ("-1", "2"))


def test_a_file_of_arrays_has_no_columns(tmp_path: Path) -> None:
    path = save(tmp_path / "g.npz", edges=PAIRS, y=[0, 0, 0])
    with pytest.raises(InputError, match=r"g.npz: the file has arrays and no columns, so label = churn does"):
        load_npz(path, TableOptions(label="churn"))


class Bomb:
    """Unpickling it would leave a mark."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import pathlib; pathlib.Path('exploded').touch()",)


def test_nothing_is_ever_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("g.npz", edges=PAIRS, y=np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="'y': holds Python objects, which are never loaded"):
        load_npz("g.npz")
    with zipfile.ZipFile("raw.npz", "w") as archive:
        archive.writestr("edges.npy", pickle.dumps(Bomb()))
    with pytest.raises(InputError, match="'edges': "):
        load_npz("raw.npz")
    assert not Path("exploded").exists()
