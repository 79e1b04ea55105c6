"""Sparse matrices against dense ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
import torch

from plap.sparse import csr_rows, csr_tensor, entries_of, scipy_from_tensor, tensor_from_scipy

DENSE = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0], [4.0, 5.0, 6.0]])


def test_entries_of_rows_in_any_order() -> None:
    indptr = torch.tensor([0, 1, 1, 3, 6], dtype=torch.int32)
    position, row = entries_of(indptr, torch.tensor([3, 1, 0]))
    assert position.tolist() == [3, 4, 5, 0]
    assert row.tolist() == [0, 0, 0, 2]
    assert [part.numel() for part in entries_of(indptr, torch.zeros(0, dtype=torch.int64))] == [0, 0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [3, 0], [1], [2, 2]])
def test_rows_of_a_csr_tensor(dtype: torch.dtype, rows: list[int]) -> None:
    whole = csr_tensor(
        torch.tensor([0, 1, 1, 3, 6], dtype=dtype),
        torch.tensor([1, 0, 2, 0, 1, 2], dtype=dtype),
        torch.tensor([2.0, 1.0, 3.0, 4.0, 5.0, 6.0]),
        (4, 3),
    )
    chosen = csr_rows(whole, torch.tensor(rows))
    assert chosen.layout == torch.sparse_csr
    assert chosen.crow_indices().dtype == dtype
    assert torch.equal(chosen.to_dense(), DENSE[rows])


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_there_and_back(layout: torch.layout) -> None:
    given = DENSE if layout == torch.strided else DENSE.to_sparse(layout=layout)
    matrix = scipy_from_tensor(given)
    np.testing.assert_array_equal(matrix.toarray(), DENSE.numpy())
    back = tensor_from_scipy(matrix, torch.float64)
    assert back.dtype == torch.float64
    assert back.col_indices().dtype == torch.int32
    assert torch.equal(back.to_dense(), DENSE.double())


def test_pytorch_says_nothing_about_beta() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = tensor_from_scipy(scipy.sparse.csr_array(DENSE.numpy()), torch.float32)
        csr_rows(tensor, torch.tensor([0]))
        scipy_from_tensor(DENSE)
