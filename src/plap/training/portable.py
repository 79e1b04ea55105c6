"""The hot operations of stacked training in plain PyTorch, for devices other than the CPU.

They compute what :mod:`plap.training.native` computes: dropout masks to the bit, the rest up to rounding.
Nothing here waits for the device.
"""

from __future__ import annotations

import torch
from torch import Tensor

from plap.sparse import csr_tensor

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_DRAWS = 4
"""Numbers of 16 bits in one of 64."""
_AT_A_TIME = 2**22
"""Products of an entry and a channel that are held at a time where there are no sparse matrices."""


def product(indptr: Tensor, indices: Tensor, values: Tensor, columns: int, dense: Tensor) -> Tensor:
    """A CSR matrix [M, N] times ``dense`` [R, N, C]: [R, M, C]."""
    rows, (runs, _, width) = indptr.shape[0] - 1, dense.shape
    if dense.device.type not in ("cpu", "cuda"):  # the others have no sparse matrices
        return _gathered_product(indptr, indices, values, dense)
    beside = dense.detach().transpose(0, 1).reshape(columns, runs * width)
    result: Tensor = csr_tensor(indptr, indices, values, (rows, columns)) @ beside
    return result.view(rows, runs, width).transpose(0, 1)


def _gathered_product(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """The same by gathering rows, a chunk of the entries at a time."""
    runs, _, width = dense.shape
    entries = indices.shape[0]
    lengths = indptr[1:] - indptr[:-1]
    receiver = torch.repeat_interleave(lengths, output_size=entries)
    result = dense.new_zeros(runs, lengths.shape[0], width)
    chunk = max(1, _AT_A_TIME // (runs * width))
    for start in range(0, entries, chunk):
        part = slice(start, start + chunk)
        result.index_add_(1, receiver[part], dense[:, indices[part]] * values[part, None])
    return result


def dropout_masks(seeds: Tensor, epoch: int, layer: int, rates: Tensor, size: int) -> Tensor:
    """As :func:`plap.training.native.dropout_masks`, of seeds int64 [R] on the device of ``rates``."""
    key = _scramble(seeds + _signed(_GOLDEN))
    key = _scramble(key ^ (epoch + 1))
    key = _scramble(key ^ ((layer + 1) << 32))
    groups = -(-size // _DRAWS)
    count = torch.arange(1, groups + 1, dtype=torch.int64, device=rates.device) * _signed(_GOLDEN)
    bits = _scramble(key[:, None] + count)
    lanes = 16 * torch.arange(_DRAWS, dtype=torch.int64, device=rates.device)
    draws = ((bits[:, :, None] >> lanes) & 0xFFFF).flatten(1)[:, :size]
    # float32 has 24 bits, so that sixteen of them are exact
    threshold = (rates * 65536).round().to(torch.int64)
    return torch.where(draws >= threshold[:, None], (1 / (1 - rates))[:, None], 0)


def _scramble(z: Tensor) -> Tensor:
    """SplitMix64's output function on int64, whose products wrap around like those of uint64."""
    z = (z ^ _shifted(z, 30)) * _signed(_FIRST)
    z = (z ^ _shifted(z, 27)) * _signed(_SECOND)
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, by: int) -> Tensor:
    """A shift to the right that brings in zeros, not the sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
