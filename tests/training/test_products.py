from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from plap.training.native import SparseMatrix, stacked_product


@pytest.mark.parametrize("channels", [1, 7, 8, 16, 24, 33])
@pytest.mark.parametrize("runs", [1, 3])
def test_against_the_dense_product(channels: int, runs: int) -> None:
    sparse = scipy.sparse.csr_array(
        scipy.sparse.random(20, 13, 0.2, format="csr", rng=np.random.default_rng(0))
    )
    matrix = SparseMatrix.from_scipy(sparse, torch.float64)
    dense = torch.randn(runs, 13, channels, dtype=torch.float64, requires_grad=True)
    expected = torch.einsum("mn,rnc->rmc", torch.from_numpy(sparse.toarray()), dense)
    result = stacked_product(matrix, dense)
    torch.testing.assert_close(result, expected)
    cotangent = torch.randn_like(result)
    (gradient,) = torch.autograd.grad(result, dense, cotangent)
    (expected_gradient,) = torch.autograd.grad(expected, dense, cotangent)
    torch.testing.assert_close(gradient, expected_gradient)


def test_a_matrix_without_entries() -> None:
    matrix = SparseMatrix.from_scipy(scipy.sparse.csr_array((4, 3)), torch.float32)
    assert torch.equal(stacked_product(matrix, torch.ones(2, 3, 5)), torch.zeros(2, 4, 5))


def test_several_threads_give_the_same() -> None:
    sparse = scipy.sparse.csr_array(
        scipy.sparse.random(900, 900, 0.1, format="csr", rng=np.random.default_rng(0))
    )
    matrix = SparseMatrix.from_scipy(sparse, torch.float32)
    dense = torch.randn(3, 900, 16)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = stacked_product(matrix, dense)
        torch.set_num_threads(4)
        four = stacked_product(matrix, dense)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, four)
