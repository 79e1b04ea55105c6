"""A sparse matrix times one dense matrix a run, all runs in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A CSR matrix [rows, columns] on the CPU with 64-bit indices, together with its transpose."""

    indptr: Tensor
    indices: Tensor
    values: Tensor
    columns: int
    transposed: SparseMatrix | None = None

    @classmethod
    def from_scipy(cls, matrix: scipy.sparse.csr_array, dtype: torch.dtype) -> SparseMatrix:
        """The matrix and its transpose, values as ``dtype``."""
        rows, columns = matrix.shape
        back = _parts(matrix.T.tocsr(), dtype)
        return cls(*_parts(matrix, dtype), columns, cls(*back, rows))

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return self.indptr.shape[0] - 1


def _parts(matrix: scipy.sparse.csr_array, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    return (
        torch.from_numpy(matrix.indptr.astype(np.int64)),
        torch.from_numpy(matrix.indices.astype(np.int64)),
        torch.from_numpy(np.ascontiguousarray(matrix.data)).to(dtype),
    )


def stacked_product(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """``matrix`` [M, N] times ``dense`` [R, N, C]: [R, M, C], differentiable in ``dense``.

    Runs are taken one after another (or on several threads), so that what one run needs stays in the cache;
    one product with an [N, R·C] matrix streams all of it through memory for every stored entry.
    """
    result: Tensor = _Product.apply(matrix, dense)  # type: ignore[no-untyped-call]
    return result


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        return _multiply(matrix, dense)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, _multiply(ctx.matrix.transposed, grad)


def _multiply(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    from plap.training.native import launch, workers  # noqa: PLC0415  (Numba takes a second to import)
    from plap.training.native_loops import BLOCK, product_loop  # noqa: PLC0415

    runs, _, width = dense.shape
    channels = -(-width // BLOCK) * BLOCK
    dense = dense.detach().contiguous() if channels == width else pad(dense.detach(), (0, channels - width))
    result = dense.new_empty(runs, matrix.rows, channels)
    work = runs * (matrix.indices.shape[0] + matrix.rows) * channels // BLOCK
    threads = workers(work)
    pieces = 1 if threads == 1 or runs >= 4 * threads else 8 * threads
    launch(
        product_loop(dense.dtype == torch.float64), work, runs, matrix.rows, matrix.columns, channels, pieces,
        matrix.indices.shape[0], matrix.indptr.data_ptr(), matrix.indices.data_ptr(),
        matrix.values.data_ptr(), dense.data_ptr(), result.data_ptr(),
    )  # fmt: skip
    return result if channels == width else result[:, :, :width]
