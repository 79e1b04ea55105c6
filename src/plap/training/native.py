"""The hot operations of stacked training: sparse products, dropout masks, the last layer, Adam's update.

On the CPU each is one call of a compiled loop over all runs, see :mod:`plap.training.native_loops`; on other
devices the first two are :mod:`plap.training.portable`, and the last layer is left to autograd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import pad

from plap.kernels.fused.calling import compiled_for
from plap.training import portable


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A CSR matrix [rows, columns] with 64-bit indices, together with its transpose."""

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

    def to(self, device: torch.device) -> SparseMatrix:
        """The matrix on another device."""
        indptr, indices, values = (part.to(device) for part in (self.indptr, self.indices, self.values))
        back = None if self.transposed is None else self.transposed.to(device)
        return SparseMatrix(indptr, indices, values, self.columns, back)

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
        return multiply(matrix, dense)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, multiply(ctx.matrix.transposed, grad)


def multiply(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """:func:`stacked_product` without autograd."""
    if not compiled_for(dense.device):
        return portable.product(matrix.indptr, matrix.indices, matrix.values, matrix.columns, dense)
    if dense.dtype != matrix.values.dtype:  # the loop would read beyond the end of the shorter ones
        raise TypeError(f"a matrix of {matrix.values.dtype} cannot be multiplied with {dense.dtype}")
    loops = _loops()
    runs, _, width = dense.shape
    channels = -(-width // loops.BLOCK) * loops.BLOCK
    dense = dense.detach().contiguous() if channels == width else pad(dense.detach(), (0, channels - width))
    result = dense.new_empty(runs, matrix.rows, channels)
    work = runs * (matrix.indices.shape[0] + matrix.rows) * channels // loops.BLOCK
    threads = loops.workers(work)
    pieces = 1 if threads == 1 or runs >= 4 * threads else 8 * threads
    loops.launch(
        loops.product_loop(dense.dtype == torch.float64), work, runs, matrix.rows, matrix.columns, channels,
        pieces, matrix.indices.shape[0], matrix.indptr.data_ptr(), matrix.indices.data_ptr(),
        matrix.values.data_ptr(), dense.data_ptr(), result.data_ptr(),
    )  # fmt: skip
    return result if channels == width else result[:, :, :width]


def dropout_masks(seeds: np.ndarray[Any, Any], epoch: int, layer: int, rates: Tensor, size: int) -> Tensor:
    """Masks of R runs, [R, size]: 0 with probability ``rates[r]``, otherwise 1 / (1 - ``rates[r]``).

    A mask is a pure function of the run's seed, the epoch and the layer, whichever runs are trained beside
    it. The bits are those of SplitMix64; sixteen of them decide each element, so a rate is exact to 1/65536.

    Parameters
    ----------
    seeds : array of uint64, shape [R]
    rates : Tensor, shape [R]
        Its dtype is that of the result.
    """
    loops = _loops()
    runs = seeds.shape[0]
    result = rates.new_empty(runs, size)
    loops.launch(
        loops.mask_loop(rates.dtype == torch.float64), runs * size // 4, runs, size, epoch, layer,
        seeds.ctypes.data, rates.data_ptr(), result.data_ptr(),
    )  # fmt: skip
    return result


def mask_keys(seeds: np.ndarray[Any, Any], epoch: int, layer: int) -> np.ndarray[Any, Any]:
    """One 64-bit key per run, by hashing seed, epoch and layer in turn; the epoch may be -1."""
    with np.errstate(over="ignore"):
        keys: np.ndarray[Any, Any] = _loops().mask_key(seeds.astype(np.uint64), epoch, layer)
    return keys


def adam_step(
    table: np.ndarray[Any, Any], scalars: np.ndarray[Any, Any], *, double: bool
) -> np.ndarray[Any, Any]:
    """Adam's update of all parameters in one pass over memory; returns which runs took the step, bool [R].

    A run with a gradient that is not finite takes none.

    Parameters
    ----------
    table : array of int64, shape [parameters, 5]
        Addresses of the parameter [R, ...], of its gradient and of Adam's two moments, all contiguous, and
        how many numbers each has per run. All but the gradient are changed in place.
    scalars : array of float64, shape [R, 3]
        Weight decay, step size and root of the second bias correction of each run.
    double : bool
        Whether they are float64.
    """
    loops = _loops()
    runs = scalars.shape[0]
    taken = np.empty(runs, dtype=np.bool_)
    work = 2 * runs * int(table[:, 4].sum())
    loops.launch(
        loops.adam_loop(double), work, runs, table.shape[0], table.ctypes.data, scalars.ctypes.data,
        taken.ctypes.data,
    )  # fmt: skip
    return taken


def classify(
    rows: Tensor, labels: Tensor, weights: Tensor, states: Tensor, theta: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Weighted cross-entropies [R] and logits [R, T, L] of runs at some of their nodes.

    Parameters
    ----------
    rows, labels : Tensor, shape [R, T], int64
        Nodes, and the class of each.
    weights : Tensor, shape [R, T]
        Of each node in the loss.
    states : Tensor, shape [R, N, padded C]
        In whole blocks of channels.
    theta, bias : Tensor, shape [R, C, L] and [R, L]
        The linear map of the states to logits.
    """
    logits = theta.new_empty(*rows.shape, theta.shape[2])
    return _classify(rows, labels, weights, states, theta, bias, logits), logits


def classify_and_return(
    rows: Tensor, labels: Tensor, weights: Tensor, states: Tensor, theta: Tensor, bias: Tensor,
    slopes: Tensor, factors: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The losses of :func:`classify`, and their gradients in theta and bias.

    Those in the states, times ``factors`` [R], are added to ``slopes``, which is of their shape.
    """
    runs, channels, outputs = theta.shape
    of_theta, of_bias = theta.new_empty(runs, outputs, states.shape[2]), torch.empty_like(bias)
    logits = theta.new_empty(*rows.shape, outputs)
    back = (slopes, of_theta, of_bias, factors)
    losses = _classify(rows, labels, weights, states, theta, bias, logits, back)
    return losses, of_theta[:, :, :channels].mT.contiguous(), of_bias


def _classify(
    rows: Tensor, labels: Tensor, weights: Tensor, states: Tensor, theta: Tensor, bias: Tensor,
    logits: Tensor, back: tuple[Tensor, ...] = (),
) -> Tensor:  # fmt: skip
    loops = _loops()
    runs, nodes, channels = states.shape
    turned = pad(theta.mT, (0, channels - theta.shape[1])).contiguous()
    losses = theta.new_empty(runs)
    absent = [weights] * 4  # as long as the runs at least: the loop reads the last of them for every run
    given = (rows, labels, weights, states, turned, bias, logits, *(back or absent), losses)
    work = 4 * rows.numel() * turned.shape[1] * channels // loops.BLOCK
    loops.launch(
        loops.head_loop(theta.dtype == torch.float64), work, runs, nodes, channels, bias.shape[1],
        rows.shape[1], len(back), *(part.data_ptr() for part in given),
    )  # fmt: skip
    return losses


def _loops() -> Any:
    """The module of compiled loops, imported with the first call: Numba takes a second to import."""
    import plap.training.native_loops as loops  # noqa: PLC0415

    return loops
