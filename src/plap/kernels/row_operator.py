"""Kernels that own rows as a PyTorch operator: autograd, fake tensors for torch.compile, a rule for vmap.

A call that nothing of this concerns goes past the registered operator, whose dispatch takes longer than the
kernels on a small graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from plap.kernels import row_passes
from plap.kernels.budget import KEEP_ALL, KEEP_NONE, kept
from plap.kernels.row_passes import Kernels

_SECOND_DERIVATIVE = (
    "second derivatives do not exist for the {} backend of plap.propagate; use backend='torch'"
)

_NOT_KEPT = "plap::{}_forward was called with every=0, so there is nothing to differentiate"


class Operators(NamedTuple):
    """The operators of a backend."""

    forward: Any
    """(x, indptr, indices, weight, degree, parameter, mu, K, omega, eps, every, penalty, c, detach, rows) →
    the result, and for the backward pass Y before every ``every``-th step, α of every step and |Y|²; ``rows``
    are those of every run that will be looked at, [R, T], or none [0, 0] for all."""
    backward: Any
    """Cotangents of x, weight (empty unless wanted), the penalty's parameter and mu (anything likewise)."""
    eager: Callable[..., Tensor]
    """The result of ``forward`` for plain tensors, past the dispatcher; only autograd differentiates it."""


def define(name: str, load: Callable[[], Kernels], padded: Callable[[int], int]) -> Operators:
    """Register ``plap::<name>_forward`` and ``plap::<name>_backward``.

    Parameters
    ----------
    name : str
        Of the backend.
    load : function
        Imports the kernels when they are first needed.
    padded : function
        As :attr:`plap.kernels.row_passes.Kernels.padded`, known without loading them.
    """

    def take_steps(
        x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor,
        parameter: Tensor, mu: Tensor, K: int, omega: float, eps: float, every: int, penalty: str, c: float,
        detach: bool, rows: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
        saved = row_passes.forward(
            load(),
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
            row_passes.Rule(penalty, c, detach),
            rows if rows.numel() else None,
        )
        result = saved.result
        if result.shape != x.shape:
            result = result[..., : x.shape[2]].contiguous()
        if every == KEEP_NONE:
            return result, x.new_empty(0), x.new_empty(0), x.new_empty(0)
        return result, saved.history, saved.alphas, saved.norms

    forward = torch.library.custom_op(f"plap::{name}_forward", take_steps, mutates_args=())

    @forward.register_fake
    def _(
        x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor,
        parameter: Tensor, mu: Tensor, K: int, omega: float, eps: float, every: int, penalty: str, c: float,
        detach: bool, rows: Tensor,
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

    def take_back(
        grad: Tensor, result: Tensor, history: Tensor, alphas: Tensor, norms: Tensor, x: Tensor,
        indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor, mu: Tensor,
        omega: float, eps: float, every: int, penalty: str, c: float, detach: bool, rows: Tensor,
        want_weight: bool, want_parameter: bool, want_mu: bool,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
        saved = row_passes.Saved(
            history.contiguous(),
            norms.contiguous(),
            alphas.contiguous(),
            row_passes.pad(result, history.shape[-1]),
        )
        gradients = row_passes.backward(
            load(), grad, saved, x, indptr, indices, weight.contiguous(), degree, parameter.contiguous(),
            mu.contiguous(), omega, eps, every, row_passes.Rule(penalty, c, detach),
            rows if rows.numel() else None,
            want_weight=want_weight, want_parameter=want_parameter, want_mu=want_mu,
        )  # fmt: skip
        gw = weight.new_empty(0) if gradients.weight is None else gradients.weight
        return gradients.x.contiguous(), gw, gradients.parameter, gradients.mu

    backward = torch.library.custom_op(f"plap::{name}_backward", take_back, mutates_args=())

    @backward.register_fake
    def _(
        grad: Tensor, result: Tensor, history: Tensor, alphas: Tensor, norms: Tensor, x: Tensor,
        indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor, mu: Tensor,
        omega: float, eps: float, every: int, penalty: str, c: float, detach: bool, rows: Tensor,
        want_weight: bool, want_parameter: bool, want_mu: bool,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
        gw = torch.empty_like(weight) if want_weight else weight.new_empty(0)
        gx = grad.new_empty(grad.shape)
        return gx, gw, torch.empty_like(parameter), torch.empty_like(mu)

    _differentiate(name, backward)
    _batch(forward, backward)
    return Operators(forward, backward, _eager(take_steps, take_back, backward))


def _differentiate(name: str, backward: Any) -> None:
    """Register the gradient of the first operator, which is the second."""

    def save_for_backward(
        ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor, Tensor]
    ) -> None:
        _save(ctx, inputs, output)

    def pull_back(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad is not None and ctx.saved_tensors[1].ndim != 4:
            raise RuntimeError(_NOT_KEPT.format(name))
        return _pull_back(ctx, grad, backward)

    def refuse_second_derivative(ctx: Any, *_: Any) -> None:
        raise NotImplementedError(_SECOND_DERIVATIVE.format(name))

    torch.library.register_autograd(f"plap::{name}_forward", pull_back, setup_context=save_for_backward)
    torch.library.register_autograd(f"plap::{name}_backward", refuse_second_derivative)


def _eager(take_steps: Any, take_back: Any, backward: Any) -> Callable[..., Tensor]:
    """The first operator as a function of plain tensors."""

    class Steps(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Tensor:
            output: tuple[Tensor, Tensor, Tensor, Tensor] = take_steps(*inputs)
            _save(ctx, inputs, output)
            return output[0]

        @staticmethod
        def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
            # the registered operator refuses a second derivative, and knows batches of cotangents
            plain = not torch.is_grad_enabled() and not is_transformed() and not _is_batch(grad)
            return _pull_back(ctx, grad, take_back if plain else backward)

    def steps(*inputs: Any) -> Tensor:
        if inputs[_EVERY] == KEEP_NONE:
            with torch.no_grad():
                result: Tensor = take_steps(*inputs)[0]
        else:
            result = Steps.apply(*inputs)  # type: ignore[no-untyped-call]
        return result

    return steps


def is_transformed() -> bool:
    """Whether PyTorch traces, batches or differentiates the call by other means than autograd's tape.

    Then the registered operator is called, for which there are rules; else the same passes without it,
    because its dispatch takes longer than a step on a small graph.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack() > 0
        or forward_ad._current_level >= 0
    )


def _is_batch(value: Tensor | None) -> bool:
    """Whether a tensor stands for many, as autograd's ``is_grads_batched`` makes them."""
    return value is not None and bool(torch._C._functorch.is_legacy_batchedtensor(value))


_EVERY = 10
"""The place of ``every`` among the arguments of the first operator."""


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    """Keep what :func:`_pull_back` needs."""
    x, *graph_and_parameters, _, omega, eps, every, penalty, c, detach, rows = inputs
    norms = output[3]
    # x is held only where steps are taken again; elsewhere the empty norms stand in its place
    ctx.save_for_backward(*output, x if every > KEEP_ALL else norms, *graph_and_parameters, rows)
    ctx.settings = (omega, eps, every, penalty, c, detach)
    ctx.set_materialize_grads(False)


def _pull_back(ctx: Any, grad: Tensor | None, backward: Any) -> tuple[Tensor | None, ...]:
    """The cotangents of all arguments of the first operator."""
    nothing = (None,) * 15
    if grad is None:
        return nothing
    _, _, _, need_weight, _, need_parameter, need_mu, *_ = ctx.needs_input_grad
    *saved, rows = ctx.saved_tensors
    gx, gw, gp, gmu = backward(grad, *saved, *ctx.settings, rows, need_weight, need_parameter, need_mu)
    slopes = (gw if need_weight else None, None, gp if need_parameter else None, gmu if need_mu else None)
    return (gx, None, None, *slopes, *nothing[7:])


def _batch(forward: Any, backward: Any) -> None:
    """Register the rules for vmap: a batch is more runs."""

    @forward.register_vmap  # type: ignore[untyped-decorator]
    def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        x, indptr, indices, weight, degree, parameter, mu, *settings, rows = args
        every = settings[3]
        if any(in_dims[k] is not None for k in (1, 2, 3, 4)):
            return _one_by_one(forward, info, in_dims, args)
        x, parameter, mu, rows = (_as_runs(args[k], in_dims[k], info.batch_size, 0) for k in (0, 5, 6, 14))
        result, *saved = forward(x, indptr, indices, weight, degree, parameter, mu, *settings, rows)
        split = (info.batch_size, -1)
        result = result.unflatten(0, split)
        if every == KEEP_NONE:
            return (result, *saved), (0, None, None, None)
        return (result, *(part.unflatten(1, split) for part in saved)), (0, 1, 1, 1)

    @backward.register_vmap  # type: ignore[untyped-decorator]
    def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        every, want_weight = args[14], args[19]
        if want_weight or any(in_dims[k] is not None for k in (6, 7, 8, 9)):
            return _one_by_one(backward, info, in_dims, args)
        axes = {0: 0, 1: 0, 2: 1, 3: 1, 10: 0, 11: 0, 18: 0} | ({4: 1, 5: 0} if every > KEEP_ALL else {})
        folded = [
            _as_runs(value, in_dims[k], info.batch_size, axes[k]) if k in axes else value
            for k, value in enumerate(args)
        ]
        gx, gw, gp, gmu = backward(*folded)
        split = (info.batch_size, -1)
        return (gx.unflatten(0, split), gw, gp.unflatten(0, split), gmu.unflatten(0, split)), (0, None, 0, 0)


def _as_runs(value: Tensor, dim: int | None, batch: int, axis: int) -> Tensor:
    """A batch axis folded into the runs axis, which is axis ``axis`` of an unbatched value."""
    value = value.unsqueeze(axis) if dim is None else value.movedim(dim, axis)
    shape = list(value.shape)
    shape[axis] = batch
    return value.expand(shape).flatten(axis, axis + 1)


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
