"""Sparse products and dropout masks of many runs at once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from plap.training.native import SparseMatrix, dropout_masks, stacked_product


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


SEEDS = np.array([3, 11, 2**62], dtype=np.uint64)
SIZE = 40_001


def test_rates_and_scales() -> None:
    rates = torch.tensor([0.0, 0.5, 0.8], dtype=torch.float64)
    masks = dropout_masks(SEEDS, 4, 0, rates, SIZE)
    assert torch.equal(masks[0], torch.ones(SIZE, dtype=torch.float64))
    for mask, rate in zip(masks, rates.tolist(), strict=True):
        values = set(mask.unique().tolist())
        assert values <= {0.0, 1 / (1 - rate)}
        assert float((mask == 0).double().mean()) == pytest.approx(rate, abs=4 * (0.25 / SIZE) ** 0.5)
        assert float(mask.mean()) == pytest.approx(1, abs=0.05)


def test_a_mask_does_not_depend_on_the_batch() -> None:
    rates = torch.tensor([0.3, 0.5, 0.5])
    together = dropout_masks(SEEDS, 9, 1, rates, SIZE)
    for run in range(3):
        alone = dropout_masks(SEEDS[run : run + 1], 9, 1, rates[run : run + 1], SIZE)
        assert torch.equal(alone[0], together[run])


@pytest.mark.parametrize(("seed", "epoch", "layer"), [(4, 9, 0), (3, 10, 0), (3, 9, 1)])
def test_other_seed_epoch_or_layer_is_another_independent_mask(seed: int, epoch: int, layer: int) -> None:
    rate = torch.tensor([0.5])
    one = dropout_masks(np.array([3], dtype=np.uint64), 9, 0, rate, SIZE)
    other = dropout_masks(np.array([seed], dtype=np.uint64), epoch, layer, rate, SIZE)
    assert float((one == other).double().mean()) == pytest.approx(0.5, abs=0.011)


def test_neighbouring_elements_are_independent() -> None:
    mask = dropout_masks(SEEDS[:1], 0, 0, torch.tensor([0.5]), SIZE)[0] > 0
    for lag in (1, 2, 3, 4, 16):
        assert float((mask[lag:] == mask[:-lag]).double().mean()) == pytest.approx(0.5, abs=0.011)


def test_numbers_of_another_length_are_refused() -> None:
    matrix = SparseMatrix.from_scipy(scipy.sparse.csr_array(np.eye(4)), torch.float32)
    with pytest.raises(
        TypeError, match=r"a matrix of torch\.float32 cannot be multiplied with torch\.bfloat16"
    ):
        stacked_product(matrix, torch.ones(1, 4, 8, dtype=torch.bfloat16))
