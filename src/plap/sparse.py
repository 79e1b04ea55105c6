"""Sparse matrices in CSR form, in PyTorch and in SciPy, and from one to the other."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor


class Entries(NamedTuple):
    """The stored entries of some rows."""

    position: Tensor
    """Where each is among all stored entries, int64."""
    row: Tensor
    """Which of the chosen rows each belongs to, counted from 0, int64."""


def entries_of(indptr: Tensor, rows: Tensor) -> Entries:
    """The stored entries of ``rows``, one row after the other.

    Examples
    --------
    >>> entries_of(torch.tensor([0, 2, 2, 5]), torch.tensor([2, 0]))
    Entries(position=tensor([2, 3, 4, 0, 1]), row=tensor([0, 0, 0, 1, 1]))
    """
    start = indptr[rows].long()
    count = indptr[rows + 1].long() - start
    row = torch.repeat_interleave(torch.arange(rows.shape[0], device=rows.device), count)
    before = count.cumsum(0) - count
    return Entries(torch.arange(row.shape[0], device=rows.device) + (start - before)[row], row)


def hops_from(indptr: Tensor, indices: Tensor, start: Tensor, most: int) -> Tensor:
    """How many entries lead from ``start`` to each row of a symmetric pattern, int64 [N]; ``most`` + 1: more.

    Examples
    --------
    >>> path = torch.tensor([0, 1, 3, 5, 6]), torch.tensor([1, 0, 2, 1, 3, 2])
    >>> hops_from(*path, torch.tensor([0]), 2)
    tensor([0, 1, 2, 3])
    """
    hops = torch.full((indptr.shape[0] - 1,), most + 1, device=indptr.device)
    rim = start
    hops[rim] = 0
    for hop in range(1, most + 1):
        neighbours = indices[entries_of(indptr, rim).position].long()
        rim = neighbours[hops[neighbours] > most].unique()
        hops[rim] = hop
    return hops


def csr_tensor(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor,
    shape: tuple[int, ...],
    device: torch.device | str | None = None,
) -> Tensor:
    """A torch CSR tensor, without PyTorch's checks and its notice that such tensors are in beta."""
    with _quiet():
        return torch.sparse_csr_tensor(
            indptr, indices, values, shape, device=device or values.device, check_invariants=False
        )


def csr_rows(matrix: Tensor, rows: Tensor) -> Tensor:
    """``matrix[rows]`` of a torch CSR tensor.

    Examples
    --------
    >>> csr_rows(csr_tensor(torch.arange(4), torch.arange(3), torch.ones(3), (3, 3)), torch.tensor([2, 0]))
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([2, 0]),
           values=tensor([1., 1.]), size=(2, 3), nnz=2, layout=torch.sparse_csr)
    """
    rows = rows.to(matrix.device)
    indptr, indices = matrix.crow_indices(), matrix.col_indices()
    position, row = entries_of(indptr, rows)
    stops = row.bincount(minlength=rows.shape[0]).cumsum(0)
    starts = torch.cat([stops.new_zeros(1), stops]).to(indptr.dtype)
    shape = (rows.shape[0], matrix.shape[1])
    return csr_tensor(starts, indices[position], matrix.values()[position], shape)


def scipy_from_tensor(matrix: Tensor) -> scipy.sparse.csr_array:
    """A torch tensor of any layout as a SciPy CSR array; it shares memory with a CSR tensor on the CPU.

    Examples
    --------
    >>> scipy_from_tensor(torch.tensor([[0.0, 2.0]])).toarray()
    array([[0., 2.]], dtype=float32)
    """
    with _quiet():
        csr = matrix.detach().to_sparse_csr()
    parts = (csr.values(), csr.col_indices(), csr.crow_indices())
    return scipy.sparse.csr_array(tuple(part.cpu().numpy() for part in parts), shape=tuple(csr.shape))


def tensor_from_scipy(
    matrix: scipy.sparse.csr_array, dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Tensor:
    """A SciPy CSR array as a torch CSR tensor.

    Examples
    --------
    >>> tensor_from_scipy(scipy.sparse.csr_array([[0.0, 2.0]]), torch.float32).to_dense()
    tensor([[0., 2.]])
    """
    # 32-bit indices of both arrays: the product with 64-bit ones is many times slower on large matrices
    index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 - 1 else np.int64
    indptr, indices = (torch.from_numpy(part.astype(index)) for part in (matrix.indptr, matrix.indices))
    return csr_tensor(indptr, indices, torch.tensor(matrix.data, dtype=dtype), matrix.shape, device)


def compact(x: Tensor) -> Tensor:
    """Return [N, F] features as float32, in torch's sparse CSR form where that takes fewer bytes.

    CSR takes 12 bytes per nonzero and 8 per row, dense 4 bytes per entry.

    Examples
    --------
    >>> compact(torch.eye(100)).layout, compact(torch.ones(3, 3)).layout
    (torch.sparse_csr, torch.strided)
    """
    x = x.to(torch.float32)
    if x.layout != torch.strided:
        return x
    nonzero = int(torch.count_nonzero(x))
    if 12 * nonzero + 8 * (x.shape[0] + 1) >= 4 * x.numel():
        return x.contiguous()
    with _quiet():
        return x.to_sparse_csr()


def select_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Return ``x[rows]`` for dense or CSR ``x``, in the same layout.

    Examples
    --------
    >>> select_rows(torch.eye(4).to_sparse_csr(), torch.tensor([3, 1])).to_dense()
    tensor([[0., 0., 0., 1.],
            [0., 1., 0., 0.]])
    """
    if x.layout == torch.strided:
        return x[rows]
    return csr_rows(x, rows)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyTorch's notice that CSR tensors are in beta from the user."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        yield
