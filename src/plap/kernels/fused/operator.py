"""The fused backend as a PyTorch operator: autograd, fake tensors for torch.compile, a rule for vmap."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from plap.kernels.budget import KEEP_ALL, KEEP_NONE, kept
from plap.kernels.fused.layout import padded

_SECOND_DERIVATIVE = (
    "second derivatives do not exist for the fused backend of plap.propagate; use backend='torch'"
)

_NOT_KEPT = "plap::fused_forward was called with every=0, so there is nothing to differentiate"


@torch.library.custom_op("plap::fused_forward", mutates_args=())
def fused_forward(
    x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor,
    parameter: Tensor, mu: Tensor, K: int, omega: float, eps: float, every: int, penalty: str, c: float,
    detach: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The result, and for the backward pass Y before every ``every``-th step, α of every step and |Y|²."""
    from plap.kernels.fused import passes  # noqa: PLC0415  (Numba takes a second to import)

    saved = passes.forward(
        x.detach(),
        indptr,
        indices,
        weight.contiguous(),
        degree,
        parameter.contiguous(),
        mu.contiguous(),
        K,
        omega,
        eps,
        every,
        passes.Rule(penalty, c, detach),
    )
    result = saved.result
    if result.shape != x.shape:
        result = result[..., : x.shape[2]].contiguous()
    if every == KEEP_NONE:
        return result, x.new_empty(0), x.new_empty(0), x.new_empty(0)
    return result, saved.history, saved.alphas, saved.norms


@fused_forward.register_fake
def _forward_fake(
    x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor,
    parameter: Tensor, mu: Tensor, K: int, omega: float, eps: float, every: int, penalty: str, c: float,
    detach: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    runs, nodes, channels = x.shape
    result = x.new_empty(runs, nodes, channels)
    if every == KEEP_NONE:
        return result, x.new_empty(0), x.new_empty(0), x.new_empty(0)
    states = kept(K, every)
    return (
        result,
        x.new_empty(states, runs, nodes, padded(channels)),
        x.new_empty(K, runs, nodes),
        x.new_empty(states if every > KEEP_ALL else 0, runs, nodes),
    )


@torch.library.custom_op("plap::fused_backward", mutates_args=())
def fused_backward(
    grad: Tensor, result: Tensor, history: Tensor, alphas: Tensor, norms: Tensor, x: Tensor, indptr: Tensor,
    indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor, mu: Tensor, omega: float, eps: float,
    every: int, penalty: str, c: float, detach: bool, want_weight: bool, want_parameter: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Cotangents of x, weight (empty unless wanted), the penalty's parameter (0 unless wanted) and mu."""
    from plap.kernels.fused import passes  # noqa: PLC0415

    saved = passes.Saved(
        history.contiguous(), norms.contiguous(), alphas.contiguous(), passes.pad(result, history.shape[-1])
    )
    gradients = passes.backward(
        grad, saved, x, indptr, indices, weight.contiguous(), degree, parameter.contiguous(), mu.contiguous(),
        omega, eps, every, passes.Rule(penalty, c, detach), want_weight=want_weight,
        want_parameter=want_parameter,
    )  # fmt: skip
    gw = weight.new_empty(0) if gradients.weight is None else gradients.weight
    return gradients.x.contiguous(), gw, gradients.parameter, gradients.mu


@fused_backward.register_fake
def _backward_fake(
    grad: Tensor, result: Tensor, history: Tensor, alphas: Tensor, norms: Tensor, x: Tensor, indptr: Tensor,
    indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor, mu: Tensor, omega: float, eps: float,
    every: int, penalty: str, c: float, detach: bool, want_weight: bool, want_parameter: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    gw = torch.empty_like(weight) if want_weight else weight.new_empty(0)
    gx = grad.new_empty(grad.shape)
    return gx, gw, torch.empty_like(parameter), torch.empty_like(mu)


def _save_for_backward(
    ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor, Tensor]
) -> None:
    x, *graph_and_parameters, _, omega, eps, every, penalty, c, detach = inputs
    norms = output[3]
    # x is held only where steps are taken again; elsewhere the empty norms stand in its place
    ctx.save_for_backward(*output, x if every > KEEP_ALL else norms, *graph_and_parameters)
    ctx.every, ctx.settings = every, (omega, eps, every, penalty, c, detach)
    ctx.set_materialize_grads(False)


def _pull_back(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    nothing = (None,) * 14
    if grad is None:
        return nothing
    if ctx.saved_tensors[1].ndim != 4:
        raise RuntimeError(_NOT_KEPT)
    _, _, _, need_weight, _, need_parameter, need_mu, *_ = ctx.needs_input_grad
    gx, gw, gp, gmu = fused_backward(grad, *ctx.saved_tensors, *ctx.settings, need_weight, need_parameter)
    slopes = (gw if need_weight else None, None, gp if need_parameter else None, gmu if need_mu else None)
    return (gx, None, None, *slopes, *nothing[7:])


def _refuse_second_derivative(ctx: Any, *_: Any) -> None:
    raise NotImplementedError(_SECOND_DERIVATIVE)


torch.library.register_autograd("plap::fused_forward", _pull_back, setup_context=_save_for_backward)
torch.library.register_autograd("plap::fused_backward", _refuse_second_derivative)


def _as_runs(value: Tensor, dim: int | None, batch: int, axis: int) -> Tensor:
    """A batch axis folded into the runs axis, which is axis ``axis`` of an unbatched value."""
    value = value.unsqueeze(axis) if dim is None else value.movedim(dim, axis)
    shape = list(value.shape)
    shape[axis] = batch
    return value.expand(shape).flatten(axis, axis + 1)


@fused_forward.register_vmap
def _forward_vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
    x, indptr, indices, weight, degree, parameter, mu, *settings = args
    every = settings[3]
    if any(in_dims[k] is not None for k in (1, 2, 3, 4)):
        return _one_by_one(fused_forward, info, in_dims, args)
    x, parameter, mu = (_as_runs(args[k], in_dims[k], info.batch_size, 0) for k in (0, 5, 6))
    result, *saved = fused_forward(x, indptr, indices, weight, degree, parameter, mu, *settings)
    split = (info.batch_size, -1)
    result = result.unflatten(0, split)
    if every == KEEP_NONE:
        return (result, *saved), (0, None, None, None)
    return (result, *(part.unflatten(1, split) for part in saved)), (0, 1, 1, 1)


@fused_backward.register_vmap
def _backward_vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
    every, want_weight = args[14], args[18]
    if want_weight or any(in_dims[k] is not None for k in (6, 7, 8, 9)):
        return _one_by_one(fused_backward, info, in_dims, args)
    axes = {0: 0, 1: 0, 2: 1, 3: 1, 10: 0, 11: 0} | ({4: 1, 5: 0} if every > KEEP_ALL else {})
    folded = [
        _as_runs(value, in_dims[k], info.batch_size, axes[k]) if k in axes else value
        for k, value in enumerate(args)
    ]
    gx, gw, gp, gmu = fused_backward(*folded)
    split = (info.batch_size, -1)
    return (gx.unflatten(0, split), gw, gp.unflatten(0, split), gmu.unflatten(0, split)), (0, None, 0, 0)


def _one_by_one(
    op: Any, info: Any, in_dims: tuple[int | None, ...], args: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Call ``op`` once for each element of the batch: every element has a graph or weights of its own."""
    outputs = [
        op(*(a if d is None else a.select(d, k) for a, d in zip(args, in_dims, strict=True)))
        for k in range(info.batch_size)
    ]
    stacked = tuple(torch.stack(column) for column in zip(*outputs, strict=True))
    return stacked, (0,) * len(stacked)
