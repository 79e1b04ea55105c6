"""The bounded plain PyTorch backend as an autograd function."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.budget import KEEP_NONE, Way, backwards
from plap.kernels.torch import autograd_ops
from plap.kernels.torch.chunked.backward import Slopes, backward
from plap.kernels.torch.chunked.edges import Problem, Workspace
from plap.kernels.torch.chunked.forward import Normaliser, forward, scaled
from plap.penalties import Penalty, Power

_UNBOUNDED = (
    "memory_budget cannot be kept for second derivatives and batches of cotangents: "
    "what autograd keeps of edges × channels has no bound"
)


class _Call(NamedTuple):
    """What is not differentiated."""

    graph: Graph
    penalty: Penalty
    """Its parameter is replaced by what is differentiated."""
    K: int
    omega: float
    eps: float | None
    detach: bool
    way: Way
    bounded: bool
    """Whether ``way`` keeps a budget, which autograd would not."""

    def problem(self, weight: Tensor, parameter: Tensor, mu: Tensor) -> Problem:
        penalty = self.penalty.at(parameter)
        return Problem.of(
            self.graph, weight, penalty, mu, self.omega, self.eps, self.way.chunk, detach=self.detach
        )


def propagate(
    x: Tensor, graph: Graph, penalty: Penalty, mu: Tensor, K: int, omega: float, eps: float | None, way: Way,
    *, detach_weights: bool = False, bounded: bool = False,
) -> Tensor:  # fmt: skip
    """K steps of Eq. 11-13 on x [R, N, C]; mu and the penalty's parameter have shape [R] and the type of x.

    If ``bounded``, second derivatives are refused: they are left to autograd, which takes what it wants.
    """
    parameter = torch.as_tensor(penalty.parameter)
    call = _Call(graph, penalty.at(parameter.detach()), K, omega, eps, detach_weights, way, bounded)
    result: Tensor = _Propagate.apply(x, graph.weight, parameter, mu, call)  # type: ignore[no-untyped-call]
    return result


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, parameter: Tensor, mu: Tensor, call: _Call) -> Tensor:
        problem = call.problem(weight, parameter, mu)
        workspace = Workspace(x, problem)
        Y = scaled(x, problem)
        states: list[Tensor] = []
        normalisers: list[Tensor] = []
        for k in range(call.K):
            following = torch.empty_like(Y)
            normaliser = forward(Y, x, following, problem, workspace, last=k == call.K - 1)
            if call.way.every != KEEP_NONE:
                normalisers.extend(normaliser)
                if k > 0 and k % call.way.every == 0:
                    states.append(Y)
            Y = following
        ctx.call, ctx.states = call, len(states)
        ctx.save_for_backward(x, weight, parameter, mu, Y, *states, *normalisers)
        return Y

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        (G,) = cotangents
        x, weight, parameter, mu, result, *saved = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:4]
        if torch.is_grad_enabled() or _is_batch(G):
            if ctx.call.bounded:
                raise InputError(_UNBOUNDED)
            return *_by_autograd(ctx.call, (x, weight, parameter, mu), wanted, G), None
        states, flat = saved[: ctx.states], saved[ctx.states :]
        normalisers = [Normaliser(*pair) for pair in zip(flat[::2], flat[1::2], strict=True)]
        problem = ctx.call.problem(weight, parameter, mu)
        slopes = _slopes(x, weight, wanted)
        with _full_precision(x.device.type):
            _closed_form(ctx.call, problem, x, result, states, normalisers, slopes, G)
        return (
            slopes.x,
            slopes.weight,
            _parameter_slope(ctx.call, slopes, parameter),
            (slopes.anchor / mu).to(mu.dtype) if wanted[3] else None,
            None,
        )


def _parameter_slope(call: _Call, slopes: Slopes, parameter: Tensor) -> Tensor | None:
    """Of a power it is also in m = 2μ/p."""
    if slopes.parameter is None:
        return None
    through_m = slopes.anchor / parameter if isinstance(call.penalty, Power) else 0.0
    return (slopes.parameter - through_m).to(parameter.dtype)


def _is_batch(G: Tensor) -> bool:
    """Whether G stands for many, by torch.func or by ``is_grads_batched``."""
    wrapped: bool = torch._C._functorch.is_functorch_wrapped_tensor(G)
    return wrapped or torch._C._functorch.is_legacy_batchedtensor(G)


def _full_precision(device: str) -> AbstractContextManager[Any]:
    """Autocast would take products of rows in 16 bits."""
    available = torch.amp.is_autocast_available(device)
    return torch.autocast(device, enabled=False) if available else nullcontext()


def _slopes(x: Tensor, weight: Tensor, wanted: tuple[bool, ...]) -> Slopes:
    want_x, want_weight, want_parameter, _ = wanted
    total = torch.zeros(x.shape[0], dtype=torch.float64, device=x.device)
    return Slopes(
        total,
        torch.zeros(x.shape, dtype=x.dtype, device=x.device) if want_x else None,
        total.clone() if want_parameter else None,
        torch.zeros_like(weight) if want_weight else None,
        torch.zeros(x.shape[1], dtype=x.dtype, device=x.device) if want_weight else None,
    )


def _closed_form(
    call: _Call, problem: Problem, x: Tensor, result: Tensor, states: list[Tensor],
    normalisers: list[Normaliser], slopes: Slopes, G: Tensor,
) -> None:  # fmt: skip
    """Take G = ∂l/∂F(K) back through all steps, filling ``slopes``."""
    workspace = Workspace(x, problem)

    def again(Y: Tensor, k: int) -> Tensor:
        following = torch.empty_like(Y)
        forward(Y, x, following, problem, workspace, last=False)
        return following

    following, V, spare = result, torch.empty_like(result), None
    for k, Y in backwards([scaled(x, problem), *states], call.K, call.way.every, again):
        out = torch.empty_like(V) if spare is None else spare
        last = k == call.K - 1
        backward(G, Y, following, x, out, V, normalisers[k], problem, workspace, slopes, last=last)
        spare = None if last else G  # the first G is not ours
        G, following = out, Y
    if slopes.x is not None:
        slopes.x += G
    slopes.spread_degree(problem)


def _by_autograd(
    call: _Call, inputs: tuple[Tensor, ...], wanted: tuple[bool, ...], G: Tensor
) -> tuple[Tensor | None, ...]:
    """The same gradients as functions of ``inputs`` and G, to be differentiated again or to be batched."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # views, because p may depend on x, and what is asked for is the slope in x alone
        x, weight, parameter, mu = aliases = [value.view_as(value) for value in inputs]
        graph = replace(call.graph, weight=weight)
        penalty = call.penalty.at(parameter)
        result = autograd_ops.propagate(
            x, graph, penalty, mu, call.K, call.omega, call.eps, detach_weights=call.detach
        )
        asked = [value for value, want in zip(aliases, wanted, strict=True) if want]
        slopes = iter(torch.autograd.grad(result, asked, G, create_graph=again))
    return tuple(next(slopes) if want else None for want in wanted)
