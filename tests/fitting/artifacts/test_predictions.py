from __future__ import annotations

import errno
import io
from pathlib import Path

import numpy as np
import polars
import pytest
import scipy.sparse
import torch

from plap.data.dataset import features_digest
from plap.data.tasks import Multiclass, Multilabel
from plap.errors import InputError
from plap.fitting.artifacts import Predictions


def table() -> Predictions:
    return Predictions(
        node_ids=["n,1", 'n"2', "näh\n3"],
        task=Multiclass(("cat", "dog")),
        probabilities=np.array([[0.75, 0.25], [0.125, 0.875], [0.5, 0.5]], dtype=np.float32),
        roles=["train", "test", "unlabelled"],
        known=np.array([0, 0, -1]),
    )


def test_csv_and_parquet_hold_the_same_table(tmp_path: Path) -> None:
    csv, parquet = io.BytesIO(), io.BytesIO()
    table().write_csv(csv)
    table().write_parquet(parquet)
    frame = polars.read_parquet(io.BytesIO(parquet.getvalue()))
    assert frame.columns == [
        "node",
        "role",
        "known",
        "predicted",
        "probability",
        "probability_cat",
        "probability_dog",
    ]
    assert frame["node"].to_list() == ["n,1", 'n"2', "näh\n3"]
    assert frame["known"].to_list() == ["cat", "cat", None]
    assert frame["predicted"].to_list() == ["cat", "dog", "cat"]
    assert frame["probability"].to_list() == [0.75, 0.875, 0.5]
    again = polars.read_csv(io.BytesIO(csv.getvalue()))
    assert again["node"].to_list() == frame["node"].to_list()
    assert again["probability_dog"].to_list() == [0.25, 0.875, 0.5]


def test_integer_nodes_and_no_known_labels() -> None:
    frame = Predictions([5, 6], Multiclass((0, 1)), np.eye(2), ["unlabelled"] * 2).frame()
    assert frame["node"].dtype == polars.Int64
    assert frame["known"].to_list() == [None, None]
    assert frame["predicted"].to_list() == ["0", "1"]


def test_several_labels_per_node() -> None:
    predictions = Predictions(
        [0, 1],
        Multilabel(("x", "y", "z")),
        np.array([[0.9, 0.6, 0.1], [0.2, 0.1, 0.3]]),
        ["test", "unlabelled"],
        known=np.array([[1.0, 0.0, 1.0], [np.nan] * 3]),
    )
    frame = predictions.frame()
    assert frame["predicted"].to_list() == ["x; y", ""]
    assert frame["known"].to_list() == ["x; z", None]
    assert "probability" not in frame.columns


def test_refuses_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="shape"):
        Predictions([1], Multiclass(("a", "b")), np.ones((1, 3)), ["test"])
    with pytest.raises(InputError, match="2 roles for 1 nodes"):
        Predictions([1], Multiclass(("a",)), np.ones((1, 1)), ["test", "test"])
    with pytest.raises(InputError, match="'best' is none of"):
        Predictions([1], Multiclass(("a",)), np.ones((1, 1)), ["best"])
    with pytest.raises(InputError, match="finite"):
        Predictions([1], Multiclass(("a",)), np.full((1, 1), np.nan), ["test"])


def test_a_full_disk_is_known_as_such() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    many = Predictions(list(range(50_000)), Multiclass(("a",)), np.ones((50_000, 1)), ["test"] * 50_000)
    for write in (many.write_csv, many.write_parquet):
        with Path("/dev/full").open("wb", buffering=0) as stream:
            with pytest.raises(OSError, match="No space left") as caught:
                write(stream)
            assert caught.value.errno == errno.ENOSPC


def test_features_digest() -> None:
    x = torch.zeros(5000, 7)
    x[::3, 2] = 1.5
    x[-1, 6] = -2
    digest = features_digest(x)
    assert digest == features_digest(x.to_sparse_csr())
    assert digest == features_digest(x.to_sparse_coo())
    assert digest == features_digest(scipy.sparse.csc_array(x.numpy()))
    assert digest == features_digest(x.double())
    other = x.clone()
    other[4999, 6] = 2
    assert len({digest, features_digest(other), features_digest(x[:-1]), features_digest(x.T)}) == 4
