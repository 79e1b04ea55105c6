"""Plain PyTorch backend, on any device: in bounded memory where it can be, by autograd where it cannot."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.backend import Capabilities, Variant
from plap.kernels.budget import KEEP_ALL, KEEP_NONE, Shape, Way, choose, held, sparsest
from plap.kernels.torch import autograd_ops
from plap.kernels.torch.chunked import forward as chunked
from plap.kernels.torch.chunked import op
from plap.penalties import Penalty

_UNBOUNDED = "memory_budget cannot be kept {where}: what autograd keeps of edges × channels has no bound"

_LARGEST = {"cpu": 16 * 2**20}
_LARGEST_ELSEWHERE = 256 * 2**20
"""Bytes of the largest chunk: a CPU's caches are small, and another device must be kept busy."""

_COMFORT = 4 * 2**20
"""Bytes of the smallest chunk that is preferred to recomputing activations."""

_LEAST = 2**20
"""Bytes of the smallest chunk: below, starting the work takes longer than the work."""


class Torch:
    """Plain PyTorch; see :mod:`plap.kernels.backend` for what each member is."""

    name = "torch"
    capabilities = Capabilities(
        devices=None,
        variants=frozenset({"paper", "published"}),
        memory_budget=True,
        second_derivatives=True,
        functional=True,
    )

    def propagate(
        self,
        x: Tensor,
        graph: Graph,
        penalty: Penalty,
        mu: Tensor,
        K: int,
        omega: float = 1.0,
        eps: float | None = None,
        *,
        detach_weights: bool = False,
        variant: Variant = "paper",
        budget: int | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """K steps of Eq. 11-13 on x [R, N, C].

        Second derivatives exist: asked for them, the backward pass leaves its work to autograd. The published
        variant, torch.func and torch.compile do so from the start.
        """
        unbounded = _unbounded(x, graph, penalty, mu, variant)
        if unbounded is not None:
            if budget is not None:
                raise InputError(_UNBOUNDED.format(where=unbounded))
            return autograd_ops.propagate(
                x, graph, penalty, mu, K, omega, eps, detach_weights=detach_weights, variant=variant
            )
        shape = Shape.of(x, graph, K)
        way = choose(self.ways(shape, training=_needs_gradient(x, graph, penalty, mu)), shape, budget)
        return op.propagate(
            x, graph, _typed(penalty, x), mu.to(x.dtype), K, omega, eps, way,
            detach_weights=detach_weights, bounded=budget is not None,
        )  # fmt: skip

    def refuses(self, penalty: Penalty) -> str | None:
        """No penalty is refused."""
        return None

    def ways(self, shape: Shape, *, training: bool) -> list[Way]:
        """Large chunks of edges, small ones, then activations recomputed."""
        return ways(shape, training=training)


TORCH = Torch()


def aggregation_weights(
    x: Tensor, graph: Graph, penalty: Penalty, mu: Tensor, eps: float | None = None
) -> Tensor:
    """α_i D_i^-1/2 M_ij D_j^-1/2 of the step that starts from x, shape [R, entries]; arguments as above."""
    if _unbounded(x, graph, penalty, mu, "paper") is not None or _needs_gradient(x, graph, penalty, mu):
        return autograd_ops.aggregation_weights(x, graph, penalty, mu, eps)
    chunk = ways(Shape.of(x, graph, 1), training=False)[0].chunk
    return chunked.aggregation_weights(x, graph, _typed(penalty, x), mu.to(x.dtype), eps, chunk)


def _typed(penalty: Penalty, x: Tensor) -> Penalty:
    return penalty.at(torch.as_tensor(penalty.parameter).to(x.dtype))


def _tensors(x: Tensor, graph: Graph, penalty: Penalty, mu: Tensor) -> tuple[Tensor, ...]:
    """All that can be differentiated."""
    return x, graph.weight, torch.as_tensor(penalty.parameter), mu


def _needs_gradient(x: Tensor, graph: Graph, penalty: Penalty, mu: Tensor) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in _tensors(x, graph, penalty, mu))


def _unbounded(x: Tensor, graph: Graph, penalty: Penalty, mu: Tensor, variant: Variant) -> str | None:
    """What has to be left to autograd, if anything."""
    if variant != "paper":
        return f"by variant {variant!r}"
    if torch.compiler.is_compiling():
        return "by backend 'torch' under torch.compile"
    for value in _tensors(x, graph, penalty, mu):
        if torch._C._functorch.is_functorch_wrapped_tensor(value) or unpack_dual(value).tangent is not None:
            return "by backend 'torch' under torch.func and in forward mode"
    return None


def ways(shape: Shape, *, training: bool) -> list[Way]:
    """Fastest first: large chunks, small chunks, then activations recomputed."""
    if not training:
        return _halving(shape, KEEP_NONE, _LEAST)
    return _halving(shape, KEEP_ALL, _COMFORT) + _halving(shape, sparsest(shape.steps), _LEAST)


def _halving(shape: Shape, every: int, least: int) -> list[Way]:
    per_entry, of_nodes = _bytes_per_entry(shape), _bytes_of_nodes(shape, every)
    size = min(_LARGEST.get(shape.device, _LARGEST_ELSEWHERE), shape.entries * per_entry)
    found: list[Way] = []
    while size >= least or not found:
        chunk = max(1, size // per_entry)
        found.append(Way(every, chunk, of_nodes + chunk * per_entry))
        size //= 2
    return found


def _bytes_of_nodes(shape: Shape, every: int) -> int:
    """States are arrays of the size of x. In training they are those held, V, and the gradients of two steps.

    In addition there are some numbers per node: α of every step, and what a step computes of nodes.
    """
    states = min(2, shape.steps) if every == KEEP_NONE else held(shape.steps, every) + 3
    numbers = 8 if every == KEEP_NONE else 2 * shape.steps + 10
    per_run = shape.nodes * (states * shape.channels + numbers) * shape.itemsize
    return shape.runs * per_run + 4 * 8 * shape.nodes


def _bytes_per_entry(shape: Shape) -> int:
    """Two rows of channels and what a step computes of edges, for every run; indices and weights.

    Of edges a power needs 16 numbers; the derivatives of other penalties up to 19 while they are computed.
    """
    return shape.runs * (2 * shape.channels + 20) * shape.itemsize + 64
