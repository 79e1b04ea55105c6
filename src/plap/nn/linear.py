"""A linear layer that multiplies sparse features as sparse, and what all networks with such layers share."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.checks import check_finite, check_integer, check_number, in_transform
from plap.errors import InputError
from plap.memo import Memo
from plap.sparse import csr_tensor, scipy_from_tensor, tensor_from_scipy

Features = Tensor | Any
"""A dense or sparse tensor, or a SciPy sparse matrix or array."""

_PAIRS: Memo[dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]]] = Memo()
_ORDERS: Memo[Tensor] = Memo()


class FeatureLinear(torch.nn.Linear):
    """``torch.nn.Linear`` that also takes a torch sparse or SciPy feature matrix.

    Bag-of-words features are about 1 % full: the dense product would be most of a training epoch. The
    transpose, which the backward pass needs, is made once per feature matrix.

    Shapes: features [N, in] (or dense [..., in]) → [N, out].

    Examples
    --------
    >>> import torch, scipy.sparse, plap
    >>> layer = plap.nn.FeatureLinear(2, 1, bias=False)
    >>> _ = torch.nn.init.ones_(layer.weight)
    >>> layer(scipy.sparse.csr_array([[1.0, 2.0], [0.0, 4.0]])).tolist()
    [[3.0], [4.0]]
    """

    def forward(self, features: Features) -> Tensor:
        """Features times the transposed weight, plus the bias."""
        if isinstance(features, Tensor) and features.layout == torch.strided:
            return super().forward(features)
        product = sparse_product(features, self.weight.t())
        return product if self.bias is None else product + self.bias


class Network(torch.nn.Module):
    """A model whose weights can be drawn anew, as those of PyG's models."""

    def reset_parameters(self) -> None:
        """Reinitialise all weights."""
        for part in self.children():
            reset: Any = getattr(part, "reset_parameters", None)
            if reset is not None:
                reset()
        self._start()

    def _start(self) -> None:
        """Set the initial weights that its parts do not have by themselves."""


def check_sizes(**sizes: Any) -> None:
    """Refuse numbers of channels that are no positive integers, by their names; ``in_channels`` may be 0.

    Examples
    --------
    >>> check_sizes(in_channels=5, hidden_channels=16.0)
    Traceback (most recent call last):
    plap.errors.InputError: hidden_channels must be an integer of 1 or more, not 16.0
    """
    for name, size in sizes.items():
        if isinstance(size, int) and size == -1:
            raise InputError(
                f"{name} must be given: sizes of -1, which PyG infers from data, are not supported"
            )
        check_integer(name, size, 0 if name == "in_channels" else 1)


def node_count(x: Features) -> int:
    """The number of rows of features [N, F], which must be a dense or sparse tensor or a SciPy matrix.

    Examples
    --------
    >>> node_count(torch.ones(3, 2))
    3
    >>> node_count([[1.0, 2.0]])
    Traceback (most recent call last):
    plap.errors.InputError: x must be a tensor or a SciPy sparse matrix, not list
    """
    if not isinstance(x, Tensor) and not scipy.sparse.issparse(x):
        raise InputError(f"x must be a tensor or a SciPy sparse matrix, not {type(x).__name__}")
    if x.ndim < 2:
        raise InputError(f"x must have shape [N, F], not {list(x.shape)}")
    count: int = x.shape[-2]
    return count


def check_hidden(x: Features, hidden: Tensor) -> Tensor:
    """The hidden features that were made of x, if they are finite; otherwise say whether x is at fault.

    Examples
    --------
    >>> check_hidden(torch.ones(1, 2), torch.tensor([[torch.nan]]))
    Traceback (most recent call last):
    plap.errors.InputError: the hidden features are not finite, though x is: training may have diverged
    """
    if not _is_finite(hidden):
        _check_features_finite(x)
        raise InputError("the hidden features are not finite, though x is: training may have diverged")
    return hidden


def refuse_lost_features(x: Features, hidden: Tensor) -> None:
    """Refuse features that are not finite; weights that are not, as in a run that diverged, are no error.

    The features are looked at only where what was made of them is not finite.
    """
    if not _is_finite(hidden):
        _check_features_finite(x)


def _is_finite(hidden: Tensor) -> bool:
    """Whether all numbers are finite, or cannot be looked at."""
    if torch.compiler.is_compiling() or in_transform(hidden):
        return True
    hidden = hidden.detach()
    return math.isfinite(hidden.sum().item()) or bool(torch.isfinite(hidden).all())


def _check_features_finite(x: Features) -> None:
    if isinstance(x, Tensor) and x.layout == torch.strided:
        check_finite("x", x)
        return
    stored = scipy_from_tensor(x) if isinstance(x, Tensor) else scipy.sparse.csr_array(x)
    if not np.isfinite(stored.data).all():
        raise InputError("x contains a value that is not finite")


SHORT = (torch.float16, torch.bfloat16)
"""Types of numbers that neither propagation nor sparse products know."""


def wide(x: Tensor) -> Tensor:
    """x with at least 32 bits per number."""
    return x.float() if x.dtype in SHORT else x


def sparse_product(features: Features, matrix: Tensor) -> Tensor:
    """Sparse features [N, F] times a dense matrix [F, C]; differentiable in the matrix.

    A sparse tensor that requires gradients gets them too. 16-bit matrices are multiplied in float32.
    """
    if matrix.dtype in SHORT or torch.is_autocast_enabled(matrix.device.type):
        with torch.autocast(matrix.device.type, enabled=False):
            return sparse_product(features, wide(matrix)).to(matrix.dtype)
    if isinstance(features, Tensor) and features.requires_grad:
        stored = features if features.layout == torch.sparse_coo else features.to_sparse_coo()
        product: Tensor = _DifferentiableProduct.apply(stored.to(matrix.dtype).coalesce(), matrix)  # type: ignore[no-untyped-call]
        return product
    return _product(*_pair(features, matrix), matrix)


def dropped_product(features: Features, matrix: Tensor, share: float) -> Tensor:
    """:func:`sparse_product` after dropout of the features, drawn for the stored values only."""
    forward, transposed = _dropped(*_pair(features, matrix), share)
    return _product(forward, transposed, matrix)


def _product(features: Tensor, transposed: Tensor, matrix: Tensor) -> Tensor:
    result: Tensor = _SparseProduct.apply(features, transposed, matrix)  # type: ignore[no-untyped-call]
    return result


class _DifferentiableProduct(torch.autograd.Function):
    """A coalesced COO tensor times a dense matrix, without the dense [N, F] gradient that PyTorch makes."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, matrix: Tensor) -> Tensor:
        ctx.save_for_backward(features, matrix)
        product: Tensor = torch.sparse.mm(features, matrix)
        return product

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        features, matrix = ctx.saved_tensors
        rows, columns = features.indices()
        slopes = (grads[0][rows] * matrix[columns]).sum(1)
        of_features = torch.sparse_coo_tensor(
            features.indices(), slopes, features.shape, is_coalesced=True, check_invariants=False
        )
        with torch.autocast(matrix.device.type, enabled=False):
            return of_features, torch.sparse.mm(features.t(), grads[0])


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, transposed: Tensor, matrix: Tensor) -> Tensor:
        ctx.save_for_backward(transposed)
        return features @ matrix.contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        (transposed,) = ctx.saved_tensors
        with torch.autocast(grad.device.type, enabled=False):  # the block may have the backward pass in it
            return None, None, transposed @ grad.contiguous()


def _pair(features: Features, matrix: Tensor) -> tuple[Tensor, Tensor]:
    node_count(features)
    if features.shape[1] != matrix.shape[0]:
        raise InputError(f"features have {features.shape[1]} columns, not {matrix.shape[0]}")
    pair: tuple[Tensor, Tensor] = _with_transpose(features, matrix.dtype, matrix.device)
    return pair


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _with_transpose(features: Features, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Features and their transpose as torch CSR matrices, made once per dtype and device."""
    if not isinstance(features, Tensor) and features.format in ("lil", "dok"):
        features = features.tocsr()  # whether these were changed cannot be seen from outside
    version = None if isinstance(features, Tensor) else _checksum(features)
    pairs = _PAIRS.get(features, dict, version)
    if (dtype, device) not in pairs:
        if isinstance(features, Tensor):
            matrix = scipy_from_tensor(features)
        else:
            matrix = scipy.sparse.csr_array(features)
        both = (matrix, matrix.T.tocsr())
        with torch.inference_mode(mode=False):  # they may be needed in training, too
            first, second = (tensor_from_scipy(part, dtype, device) for part in both)
        pairs[dtype, device] = first, second
    return pairs[dtype, device]


def _checksum(features: Any) -> int:
    """Checksum of the arrays of a SciPy matrix: nothing else tells whether it was changed in place."""
    total = 0
    for name in ("data", "indices", "indptr", "row", "col", "offsets"):
        part = getattr(features, name, None)
        if isinstance(part, np.ndarray) and part.dtype != object:
            total = zlib.crc32(np.ascontiguousarray(part).data, total)
    return total


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _dropped(features: Tensor, transposed: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Both with the same values dropped."""
    order = _ORDERS.get(features, lambda: _order_of_transpose(features))
    values = dropout(features.values(), share, training=True)
    return _with_values(features, values), _with_values(transposed, values[order])


def _order_of_transpose(matrix: Tensor) -> Tensor:
    """Which value of a CSR matrix each value of its transpose is."""
    parts = [part.cpu().numpy() for part in (matrix.col_indices(), matrix.crow_indices())]
    numbered = scipy.sparse.csr_array(
        (np.arange(matrix.values().shape[0]), *parts), shape=tuple(matrix.shape)
    )
    return torch.from_numpy(numbered.T.tocsr().data).to(matrix.device)


def _with_values(matrix: Tensor, values: Tensor) -> Tensor:
    return csr_tensor(matrix.crow_indices(), matrix.col_indices(), values, tuple(matrix.shape))


def dropout(x: Tensor, share: float, training: bool) -> Tensor:
    """Zero each number with probability ``share`` and scale the rest by 1 / (1 - share), in training only.

    The same as PyTorch's, whose Bernoulli generator takes four times as long on a CPU: on a small graph
    that is a fifth of a training step.
    """
    check_number("dropout", share, least=0, below=1)
    if not training or share == 0:
        return x
    keep = torch.rand_like(x, requires_grad=False) >= share
    return x * (keep.to(x.dtype) / (1 - share))
