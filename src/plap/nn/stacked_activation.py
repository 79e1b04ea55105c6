"""What stands between two linear maps of many runs at once: normalisation, ReLU, dropout, a residual."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import layer_norm

from plap.kernels.fused.calling import BLOCK, compiled_for

EPS = 1e-5
"""Of PyTorch's normalisations, by default."""

_WORTH_A_CALL = 1 << 15
"""Numbers of a run from which on compiled loops are faster than PyTorch's own, one pass after another."""


class Moments(NamedTuple):
    """Of every channel over the nodes."""

    mean: Tensor
    """[R, C]."""
    variance: Tensor
    """[R, C], divided by the number of nodes."""
    of_input: bool
    """Whether they are those of what is normalised, and gradients go through them."""


class Norm(NamedTuple):
    """A normalisation with its weights."""

    over: Literal["nodes", "channels"]
    """As BatchNorm has it, or as LayerNorm."""
    weight: Tensor
    """[R, C]."""
    bias: Tensor
    """[R, C]."""
    moments: Moments | None = None
    """Needed to normalise over the nodes."""


def moments_of(x: Tensor, *, differentiable: bool = False) -> Moments:
    """Mean and variance over the nodes of x [R, N, C], for a normalisation of x.

    For :func:`activate` they need not be ``differentiable``, and then compiled loops may make them.

    Examples
    --------
    >>> moments_of(torch.tensor([[[1.0], [3.0]]]))
    Moments(mean=tensor([[2.]]), variance=tensor([[1.]]), of_input=True)
    """
    if differentiable or not _loops_pay(x):
        mean = x.mean(1)
        # torch.var along this axis takes ten times as long
        return Moments(mean, (x - mean.unsqueeze(1)).square().mean(1), of_input=True)
    x = x.detach().contiguous()
    chunks = _room_for_sums(x)
    _run("moments", x, x, chunks)
    means, squares = chunks.double().unbind(2)
    sizes = torch.full((chunks.shape[1], 1), float(_loops().CHUNK), dtype=torch.float64)
    sizes[-1] = x.shape[1] - _loops().CHUNK * (chunks.shape[1] - 1)
    mean = (sizes * means).sum(1) / x.shape[1]
    between = (sizes * (means - mean.unsqueeze(1)).square()).sum(1)
    variance = (squares.sum(1) + between) / x.shape[1]
    return Moments(mean.to(x.dtype), variance.to(x.dtype), of_input=True)


def normalise(x: Tensor, norm: Norm) -> Tensor:
    """What a normalisation makes of x [R, N, C], with differentiable moments if they are those of x.

    Examples
    --------
    >>> x, one, zero = torch.tensor([[[1.0], [3.0]]]), torch.ones(1, 1), torch.zeros(1, 1)
    >>> norm = Norm("nodes", one, zero, moments_of(x, differentiable=True))
    >>> normalise(x, norm).flatten().round(decimals=2)
    tensor([-1.,  1.])
    """
    weight, bias = norm.weight.unsqueeze(1), norm.bias.unsqueeze(1)
    if norm.over == "channels":
        return torch.addcmul(bias, layer_norm(x, x.shape[2:], eps=EPS), weight)
    assert norm.moments is not None
    mean, variance = norm.moments.mean.unsqueeze(1), norm.moments.variance.unsqueeze(1)
    return torch.addcmul(bias, x - mean, weight * (variance + EPS).rsqrt())


def activate(
    x: Tensor,
    norm: Norm | None = None,
    mask: Tensor | None = None,
    added: Tensor | None = None,
) -> Tensor:
    """mask · ReLU(norm(x)) + added, for R runs.

    With a norm, compiled loops on the CPU pass over the states once, and twice for the gradients, which
    cannot be differentiated again.

    Parameters
    ----------
    x : Tensor, shape [R, N, C]
    norm : Norm, optional
    mask : Tensor, shape [R, N, C], optional
        Of dropout; not differentiated. This, the residual and the norm's weights have the type of x.
    added : Tensor, shape [R, N, C], optional
        The input of a residual block.

    Examples
    --------
    >>> activate(torch.tensor([[[-1.0, 3.0]]]), added=torch.ones(1, 1, 2))
    tensor([[[1., 4.]]])
    """
    if norm is None or not _loops_pay(x):
        y = x if norm is None else normalise(x, norm)
        y = y.relu() if mask is None else y.relu() * mask
        return y if added is None else y + added
    assert all(each is None or each.dtype == x.dtype for each in (mask, added, norm.weight, norm.bias))
    x = x.contiguous()
    mask, added = (None if each is None else each.expand_as(x).contiguous() for each in (mask, added))
    if norm.over == "channels":
        return _OverChannels.apply(x, norm.weight, norm.bias, mask, added)  # type: ignore[no-untyped-call, no-any-return]
    return _OverNodes.apply(x, *norm[1:], mask, added)  # type: ignore[no-untyped-call, no-any-return]


class _OverNodes(torch.autograd.Function):
    """BatchNorm first: an affine map of every channel, which may depend on x through its moments."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, moments: Moments, mask: Tensor | None,
        added: Tensor | None,
    ) -> Tensor:  # fmt: skip
        root = (moments.variance.detach() + EPS).rsqrt()
        affine = torch.stack([moments.mean.detach(), weight * root, bias], 1)
        result = torch.empty_like(x)
        _run("columns", x, x, affine, mask, added, result)
        ctx.save_for_backward(x, affine, root, mask)
        ctx.of_input = moments.of_input
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, affine, root, mask = ctx.saved_tensors
        grad = grad.contiguous()
        chunks = _room_for_sums(x)
        _run("sums", x, x, affine, mask, grad, chunks)
        of_bias, products = chunks.sum(1).unbind(1)
        line = None
        if ctx.of_input:
            shares = affine[:, 1] / x.shape[1]
            line = torch.stack([shares * of_bias, shares * root.square() * products], 1)
        of_x = torch.empty_like(x)
        _run("columns_back", x, x, affine, mask, grad, line, of_x)
        return of_x, products * root, of_bias, None, None, grad if ctx.needs_input_grad[5] else None


class _OverChannels(torch.autograd.Function):
    """LayerNorm first."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor | None, added: Tensor | None
    ) -> Tensor:
        affine = torch.stack([weight, bias], 1)
        kept, result = x.new_empty(*x.shape[:2], 2), torch.empty_like(x)
        eps = torch.tensor(EPS, dtype=torch.float64)
        _run("rows", x, x, affine, mask, added, eps, kept, result)
        ctx.save_for_backward(x, affine, mask, kept)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, affine, mask, kept = ctx.saved_tensors
        grad = grad.contiguous()
        chunks, of_x = _room_for_sums(x), torch.empty_like(x)
        _run("rows_back", x, x, affine, mask, kept, grad, chunks, of_x)
        of_bias, of_weight = chunks.sum(1).unbind(1)
        return of_x, of_weight, of_bias, None, grad if ctx.needs_input_grad[4] else None


def _loops_pay(x: Tensor) -> bool:
    """Whether compiled loops are faster for a single run, so that every batch treats it in the same way."""
    _, nodes, channels = x.shape
    return (
        nodes * channels >= _WORTH_A_CALL
        and channels % BLOCK == 0
        and x.dtype in (torch.float32, torch.float64)
        and compiled_for(x.device)
    )


def _room_for_sums(x: Tensor) -> Tensor:
    """Two numbers for each channel and chunk of rows, all 0."""
    return x.new_zeros(x.shape[0], _loops().chunks_of(x.shape[1]), 2, x.shape[2])


def _run(step: str, x: Tensor, *arrays: Tensor | None) -> None:
    addresses = [0 if array is None else array.data_ptr() for array in arrays]
    _loops().launch(step, x.dtype == torch.float64, tuple(x.shape), *addresses)


def _loops() -> Any:
    """The module of compiled loops, imported with the first call: Numba takes a second to import."""
    import plap.nn.activation_loops as loops  # noqa: PLC0415

    return loops
