"""The fused backend as the registry knows it: which calls it serves, and the memory that they take."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.backend import Capabilities, Variant
from plap.kernels.budget import KEEP_ALL, KEEP_NONE, Shape, Way, choose, held, kept, sparsest
from plap.kernels.fused import operator
from plap.kernels.fused.layout import padded
from plap.kernels.penalty_code import NUMBERS, POWER, key_of, refusal
from plap.penalties import Penalty, Power

_NO_FUNCTIONAL_GRADIENT = (
    "torch.func.grad and forward-mode derivatives do not exist for the fused backend of plap.propagate; "
    "use backend='torch'"
)
_UNKNOWN_BATCH = "memory_budget cannot be kept under torch.func, which hides how many runs there are"


class Fused:
    """Numba loops over rows on PyTorch's threads; see :mod:`plap.kernels.backend` for what each member is."""

    name = "fused"
    capabilities = Capabilities(devices=frozenset({"cpu"}), memory_budget=True)

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
    ) -> Tensor:
        """K steps of Eq. 11-13 on x [R, N, C]."""
        weight = graph.weight.to(x.dtype)
        degree = graph.degree.detach()  # its part in the gradient of the weights is in the kernel
        parameter, mu = torch.as_tensor(penalty.parameter).double(), mu.double()
        key, c = POWER, 1.0
        if not isinstance(penalty, Power):
            key, c = key_of(type(penalty), tuple(penalty.constants.items())), float(penalty.c)
        _refuse_functional_gradients(x, weight, parameter, mu)
        training = torch.is_grad_enabled() and any(_may_need_gradient(t) for t in (x, weight, parameter, mu))
        every = KEEP_ALL if training else KEEP_NONE
        if budget is not None:
            _refuse_batches(x, weight, parameter, mu)
            shape = Shape.of(x, graph, K)
            every = choose(self.ways(shape, training=training), shape, budget).every
        result: Tensor = operator.fused_forward(
            x,
            graph.indptr,
            graph.indices,
            weight,
            degree,
            parameter,
            mu,
            K,
            omega,
            eps or 0.0,
            every,
            key,
            c,
            detach_weights,
        )[0]
        return result

    def refuses(self, penalty: Penalty) -> str | None:
        """Refuses a penalty whose functions cannot be translated for Numba."""
        reason: str | None = refusal(type(penalty), tuple(penalty.constants.items()), NUMBERS.name)
        return reason

    def ways(self, shape: Shape, *, training: bool) -> list[Way]:
        """All activations kept, then some recomputed.

        Not counted are four numbers per entry of the longest row on every thread.
        """
        choices = (KEEP_ALL, sparsest(shape.steps)) if training else (KEEP_NONE,)
        return [Way(every, 0, _bytes(shape, every)) for every in choices]


FUSED = Fused()


def _bytes(shape: Shape, every: int) -> int:
    """States are arrays of the size of x, its channels padded; and there are some numbers per node."""
    pads = padded(shape.channels) != shape.channels
    if every == KEEP_NONE:
        states = min(2, shape.steps) + 2 * pads
        numbers = 3
    else:
        # those held, the gradient and [Y | Z]; of what is padded, the result, the gradient of x, and x itself
        states = held(shape.steps, every) + 3 + pads * (3 if every > KEEP_ALL else 2)
        numbers = shape.steps + kept(shape.steps, every) + every + 6 + 2 * 8 // shape.itemsize
    per_node = states * padded(shape.channels) + numbers
    weights = 2 * shape.entries if shape.converted else 0
    return (shape.runs * shape.nodes * per_node + weights) * shape.itemsize + 3 * 8 * shape.nodes


def _may_need_gradient(value: Tensor) -> bool:
    """A batch of vmap does not say whether what it stands for requires gradients."""
    return value.requires_grad or torch._C._functorch.is_functorch_wrapped_tensor(value)


def _refuse_functional_gradients(*values: Tensor) -> None:
    """PyTorch has no such rules for registered operators; forward mode would even give zeros in silence."""
    if torch.compiler.is_compiling():
        return
    for value in values:
        if torch._C._functorch.is_gradtrackingtensor(value) or unpack_dual(value).tangent is not None:
            raise NotImplementedError(_NO_FUNCTIONAL_GRADIENT)


def _refuse_batches(*values: Tensor) -> None:
    if not torch.compiler.is_compiling() and any(
        torch._C._functorch.is_batchedtensor(value) for value in values
    ):
        raise InputError(_UNKNOWN_BATCH)
