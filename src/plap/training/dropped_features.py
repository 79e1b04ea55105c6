"""Products with features that every run drops others of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from plap.training.native import SparseMatrix, stacked_product


def dropped_sparse_product(features: SparseMatrix, order: Tensor, masks: Tensor, weight: Tensor) -> Tensor:
    """Sparse features times the weights of every run, after dropout: [R, F, C] → [R, N, C].

    Parameters
    ----------
    features : SparseMatrix, shape [N, F]
    order : Tensor, shape [entries]
        Which stored value each value of the transpose is, see :func:`order_of_transpose`.
    masks : Tensor, shape [R, entries]
        By which the stored values are multiplied.
    weight : Tensor, shape [R, F, C]
        The only argument that is differentiated.
    """
    values = features.values * masks
    back = features.transposed
    assert back is not None
    values_back = values.index_select(1, order)
    matrices = [
        SparseMatrix(
            features.indptr, features.indices, values[run], features.columns,
            SparseMatrix(back.indptr, back.indices, values_back[run], back.columns),
        )
        for run in range(masks.shape[0])
    ]  # fmt: skip
    products = [stacked_product(matrix, each) for matrix, each in zip(matrices, weight.split(1), strict=True)]
    return torch.cat(products)


def order_of_transpose(matrix: SparseMatrix) -> Tensor:
    """Which stored value of a matrix each value of its transpose is."""
    return torch.argsort(matrix.indices, stable=True)


def dropped_dense_product(features: Tensor, mask: Callable[[int], Tensor], weight: Tensor) -> Tensor:
    """Dense features [N, F] times the weights of every run, after dropout: [R, F, C] → [R, N, C].

    ``mask(run)`` must be the same [N, F] whenever it is called: it is drawn again for the backward pass, so
    that no run holds a copy of the features. Differentiable in the weights alone.
    """
    result: Tensor = _DenseProduct.apply(features, mask, weight)  # type: ignore[no-untyped-call]
    return result


class _DenseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, mask: Callable[[int], Tensor], weight: Tensor) -> Tensor:
        ctx.features, ctx.mask = features, mask
        return torch.stack([mask(run).mul_(features) @ weight[run] for run in range(weight.shape[0])])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        products = [ctx.mask(run).mul_(ctx.features).t() @ grad[run] for run in range(grad.shape[0])]
        return None, None, torch.stack(products)
