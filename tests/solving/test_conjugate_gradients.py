from __future__ import annotations

import math

import pytest
import torch

import problems
from plap.solving.methods import conjugate_gradients


def test_solves_what_a_dense_solver_solves() -> None:
    root = problems.features(30, 30, seed=1)
    matrix, target = root @ root.T + torch.eye(30).double(), problems.features(30, 2, seed=2)
    metric = matrix.diagonal()[:, None]
    z, residual = conjugate_gradients(lambda v: matrix @ v, target, metric, 1e-11, 500)
    torch.testing.assert_close(z, torch.linalg.solve(matrix, target), rtol=0, atol=1e-9)
    assert residual <= 1e-11
    true_residual = float((target - matrix @ z).norm() / target.norm())
    assert true_residual == pytest.approx(0, abs=1e-10)


def test_takes_as_many_products_as_there_are_eigenvalues() -> None:
    diagonal = torch.tensor([1.0, 1.0, 3.0, 3.0, 7.0], dtype=torch.float64)
    products = []

    def product(v: torch.Tensor) -> torch.Tensor:
        products.append(v)
        return diagonal * v

    conjugate_gradients(product, torch.ones(5).double(), torch.ones(5).double(), 1e-12, 100)
    assert len(products) == 3


def test_says_how_far_it_came() -> None:
    diagonal = torch.linspace(1, 100, 50, dtype=torch.float64)
    target = torch.ones(50).double()
    z, residual = conjugate_gradients(lambda v: diagonal * v, target, torch.ones(50).double(), 1e-12, 3)
    assert residual == pytest.approx(float((target - diagonal * z).norm() / target.norm()))
    assert residual > 1e-3


def test_nothing_to_solve_and_nothing_to_solve_for() -> None:
    z, residual = conjugate_gradients(lambda v: v, torch.zeros(3), torch.ones(3), 1e-6, 10)
    assert torch.equal(z, torch.zeros(3))
    assert residual == 0
    z, residual = conjugate_gradients(lambda v: v, torch.tensor([1.0, math.nan]), torch.ones(2), 1e-6, 10)
    assert bool(z.isnan().all())
    assert math.isnan(residual)
