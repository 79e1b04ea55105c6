"""A sparse matrix times one dense matrix a run, all runs in one call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import pad

from plap.kernels.jit import compiled
from plap.kernels.lanes import BLOCK, add_scaled, load, splat, store
from plap.training.native import Loop, arguments_of, array_at, launch, next_task, task_loop, workers


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
    runs, _, width = dense.shape
    channels = -(-width // BLOCK) * BLOCK
    dense = dense.detach().contiguous() if channels == width else pad(dense.detach(), (0, channels - width))
    result = dense.new_empty(runs, matrix.rows, channels)
    work = runs * (matrix.indices.shape[0] + matrix.rows) * channels // BLOCK
    threads = workers(work)
    pieces = 1 if threads == 1 or runs >= 4 * threads else 8 * threads
    launch(
        _loop(dense.dtype == torch.float64), work, runs, matrix.rows, matrix.columns, channels, pieces,
        matrix.indices.shape[0], matrix.indptr.data_ptr(), matrix.indices.data_ptr(),
        matrix.values.data_ptr(), dense.data_ptr(), result.data_ptr(),
    )  # fmt: skip
    return result if channels == width else result[:, :, :width]


@compiled
def _rows(
    first: Any,
    end: Any,
    indptr: Any,
    indices: Any,
    values: Any,
    dense: Any,
    out: Any,
    C: Any,
    at: Any,
    zero: Any,
    width: Any,
) -> None:
    """Channels ``at`` to ``at`` + lanes of the rows ``first`` to ``end``."""
    for row in range(first, end):
        total = splat(zero, width)
        for entry in range(indptr[row], indptr[row + 1]):
            total = add_scaled(total, values[entry], load(dense, np.uint64(indices[entry] * C + at), width))
        store(out, np.uint64(row * C + at), total)


@cache
def _loop(double: bool) -> Loop:
    real = np.float64 if double else np.float32

    def multiply(address: Any) -> None:
        call = arguments_of(address, 12)
        runs, rows, columns, C, pieces, entries = call[1], call[2], call[3], call[4], call[5], call[6]
        indptr = array_at(call[7], rows + 1, np.int64)
        indices = array_at(call[8], entries, np.int64)
        values = array_at(call[9], entries, real)
        task = next_task(call)
        while task < runs * pieces:
            run, piece = task // pieces, task % pieces
            first, end = rows * piece // pieces, rows * (piece + 1) // pieces
            dense = array_at(call[10] + run * columns * C * values.itemsize, columns * C, real)
            out = array_at(call[11] + run * rows * C * values.itemsize, rows * C, real)
            wide = C // (2 * BLOCK)
            for block in range(wide):
                _rows(first, end, indptr, indices, values, dense, out, C, 2 * BLOCK * block, real(0), (0, 0))
            if 2 * BLOCK * wide < C:
                _rows(first, end, indptr, indices, values, dense, out, C, 2 * BLOCK * wide, real(0), (0,))
            task = next_task(call)

    return task_loop(multiply)
