"""How a feature matrix is kept: dense or sparse, whichever is smaller."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor


def compact(x: Tensor) -> Tensor:
    """Return [N, F] features as float32, in torch's sparse CSR form where that takes fewer bytes.

    CSR takes 12 bytes a nonzero and 8 a row, dense 4 bytes an entry.

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
    start, stop = x.crow_indices()[rows], x.crow_indices()[rows + 1]
    counts = stop - start
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    within = torch.arange(int(indptr[-1])) - torch.repeat_interleave(indptr[:-1], counts)
    entries = torch.repeat_interleave(start, counts) + within
    values, columns = x.values()[entries], x.col_indices()[entries]
    with _quiet():
        return torch.sparse_csr_tensor(
            indptr, columns, values, (rows.shape[0], x.shape[1]), check_invariants=True
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyTorch's notice that CSR tensors are in beta from the user."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        yield
