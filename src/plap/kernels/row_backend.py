"""What the backends whose kernels own rows have in common: everything but the kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
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
from plap.kernels.row_passes import BackwardPass, ForwardPass, Kernels, Rule, Saved
from plap.penalties import Penalty, Power

_NO_FUNCTIONAL_GRADIENT = (
    "torch.func.grad and forward-mode derivatives do not exist for the {} backend of plap.propagate; "
    "use backend='torch'"
)
_UNKNOWN_BATCH = "memory_budget cannot be kept under torch.func, which hides how many runs there are"


_FOR_ONE_THREAD = 100_000
"""Entries up to which one thread on the rows that matter is as fast as two on all rows."""


class RepeatedSteps:
    """K steps on the same graph, taken many times, and back; there is no autograd.

    ``like`` [R, N, C] has the shape and type of what they start from, ``graph`` is indptr, indices, weight
    and degree, and the other arguments are those of :class:`plap.kernels.row_passes.ForwardPass`. Where
    ``rows`` are None, all rows are computed, in :meth:`without_gradient` too.
    """

    def __init__(
        self, kernels: Kernels, like: Tensor, graph: tuple[Tensor, Tensor, Tensor, Tensor], parameter: Tensor,
        mu: Tensor, K: int, rule: Rule, rows: Tensor | None,
    ) -> None:  # fmt: skip
        self._forward = partial(ForwardPass, kernels, like, *graph, parameter, mu, K, 1.0, 0.0, rule=rule)
        self.start = like.new_zeros(*like.shape[:2], kernels.padded(like.shape[2]))
        """What the steps start from, [R, N, padded C]; to be written before :meth:`forward`."""
        self._steps = self._forward(every=KEEP_ALL, rows=rows)
        self._back = BackwardPass(kernels, like, *graph, parameter, mu, K, 1.0, 0.0, KEEP_ALL, rule, rows)
        self._saved: Saved | None = None
        self._some_rows = rows is not None

    def forward(self) -> Tensor:
        """The result [R, N, padded C], which the next call overwrites."""
        self._saved = self._steps(self.start)
        return self._saved.result

    def backward(self, grad: Tensor) -> Tensor:
        """The gradient of ``start`` for ``grad``, both [R, N, padded C]; ``grad`` is overwritten."""
        assert self._saved is not None
        return self._back.of_start(grad, self._saved)

    def without_gradient(self, rows: Tensor) -> ForwardOnly:
        """The same steps to other rows, in the same memory: what is saved for the way back is lost."""
        chosen = rows if self._some_rows else None
        passes = self._forward(every=KEEP_NONE, rows=chosen, lender=self._steps)
        return ForwardOnly(torch.zeros_like(self.start), passes)


class ForwardOnly:
    """Steps that are taken many times and never back."""

    def __init__(self, start: Tensor, steps: ForwardPass) -> None:
        self.start = start
        self._steps = steps

    def forward(self) -> Tensor:
        """See :meth:`RepeatedSteps.forward`."""
        return self._steps(self.start).result


class RowBackend(ABC):
    """A backend that runs an operator of :mod:`plap.kernels.row_operator`."""

    name: ClassVar[str]
    dialect: ClassVar[Dialect]
    """In which penalties are written for its kernels."""
    operators: ClassVar[Operators]

    @staticmethod
    @abstractmethod
    def load() -> Kernels:
        """Its kernels, which are imported when they are first needed."""

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
        key, c, _ = _rule_of(penalty, detach_weights)
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

    def repeated(
        self, like: Tensor, graph: Graph, penalty: Penalty, mu: Tensor, K: int, detach_weights: bool,
        rows: Tensor,
    ) -> RepeatedSteps:  # fmt: skip
        """The steps of :meth:`propagate`, to be taken many times without autograd.

        ``like`` [R, N, C] has the shape and type of what they start from.
        """
        arrays = graph.indptr, graph.indices, graph.weight.to(like.dtype).contiguous(), graph.degree
        parameter = torch.as_tensor(penalty.parameter).double().contiguous()
        chosen = None if _leaves_threads_idle(like, graph) else rows
        rule = _rule_of(penalty, detach_weights)
        return RepeatedSteps(self.load(), like, arrays, parameter, mu.double().contiguous(), K, rule, chosen)

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


def _rule_of(penalty: Penalty, detach_weights: bool) -> Rule:
    """How the kernels know a penalty."""
    if isinstance(penalty, Power):
        return Rule(POWER, 1.0, detach_weights)
    key = key_of(type(penalty), tuple(penalty.constants.items()))
    return Rule(key, float(penalty.c), detach_weights)


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
