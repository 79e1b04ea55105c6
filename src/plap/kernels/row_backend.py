"""What the backends whose kernels own rows have in common: everything but the kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.backend import Variant
from plap.kernels.budget import KEEP_ALL, KEEP_NONE, Shape, Way, choose, sparsest
from plap.kernels.penalty_code import POWER, Dialect, key_of, refusal
from plap.kernels.row_operator import Operators, is_transformed
from plap.penalties import Penalty, Power

_NO_FUNCTIONAL_GRADIENT = (
    "torch.func.grad and forward-mode derivatives do not exist for the {} backend of plap.propagate; "
    "use backend='torch'"
)
_UNKNOWN_BATCH = "memory_budget cannot be kept under torch.func, which hides how many runs there are"


_FOR_ONE_THREAD = 100_000
"""Entries up to which one thread on the rows that matter is as fast as two on all rows."""


class RowBackend(ABC):
    """A backend that runs an operator of :mod:`plap.kernels.row_operator`."""

    name: ClassVar[str]
    dialect: ClassVar[Dialect]
    """In which penalties are written for its kernels."""
    operators: ClassVar[Operators]

    @abstractmethod
    def bytes_needed(self, shape: Shape, every: int) -> int:
        """Bytes that a call takes where the state before every ``every``-th step is kept."""

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
        """K steps of Eq. 11-13 on x [R, N, C]; where ``rows`` [R, T] are given, others have no meaning."""
        weight = graph.weight.to(x.dtype)
        degree = graph.degree
        if degree.requires_grad:
            degree = degree.detach()  # its part in the gradient of the weights is in the kernel
        parameter, mu = torch.as_tensor(penalty.parameter).double(), mu.double()
        key, c = POWER, 1.0
        if not isinstance(penalty, Power):
            key, c = key_of(type(penalty), tuple(penalty.constants.items())), float(penalty.c)
        transformed = is_transformed()
        if transformed:
            _refuse_functional_gradients(self.name, x, weight, parameter, mu)
        training = torch.is_grad_enabled() and any(_may_need_gradient(t) for t in (x, weight, parameter, mu))
        every = KEEP_ALL if training else KEEP_NONE
        if budget is not None:
            _refuse_batches(x, weight, parameter, mu)
            shape = Shape.of(x, graph, K)
            every = choose(self.ways(shape, training=training), shape, budget).every
        refused = transformed or budget is not None or weight.requires_grad
        if rows is None or refused or _leaves_threads_idle(x, graph):
            rows = torch.empty(0, 0, dtype=torch.int64, device=x.device)
        arguments = (
            x, graph.indptr, graph.indices, weight, degree, parameter, mu,
            K, omega, eps or 0.0, every, key, c, detach_weights, rows,
        )  # fmt: skip
        if transformed:
            result: Tensor = self.operators.forward(*arguments)[0]
            return result
        return self.operators.eager(*arguments)

    def refuses(self, penalty: Penalty) -> str | None:
        """Refuses a penalty whose functions cannot be translated."""
        if isinstance(penalty, Power):
            return None
        reason: str | None = refusal(type(penalty), tuple(penalty.constants.items()), self.dialect.name)
        return reason

    def ways(self, shape: Shape, *, training: bool) -> list[Way]:
        """All activations kept, then some recomputed."""
        choices = (KEEP_ALL, sparsest(shape.steps)) if training else (KEEP_NONE,)
        return [Way(every, 0, self.bytes_needed(shape, every)) for every in choices]


def _leaves_threads_idle(x: Tensor, graph: Graph) -> bool:
    """Whether threads would wait while one takes all steps of a run, as it does for some rows alone."""
    return x.shape[0] < torch.get_num_threads() and graph.num_entries > _FOR_ONE_THREAD


def _may_need_gradient(value: Tensor) -> bool:
    """A batch of vmap does not say whether what it stands for requires gradients."""
    batched = not torch.compiler.is_compiling() and torch._C._functorch.is_functorch_wrapped_tensor(value)
    return value.requires_grad or batched


def _refuse_functional_gradients(name: str, *values: Tensor) -> None:
    """PyTorch has no such rules for registered operators; forward mode would even give zeros in silence."""
    if torch.compiler.is_compiling():
        return
    for value in values:
        if torch._C._functorch.is_gradtrackingtensor(value) or unpack_dual(value).tangent is not None:
            raise NotImplementedError(_NO_FUNCTIONAL_GRADIENT.format(name))


def _refuse_batches(*values: Tensor) -> None:
    if not torch.compiler.is_compiling() and any(
        torch._C._functorch.is_batchedtensor(value) for value in values
    ):
        raise InputError(_UNKNOWN_BATCH)
