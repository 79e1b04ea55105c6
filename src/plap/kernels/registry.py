"""All backends, and the one place where a call is given to one of them."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.backend import Backend, Variant
from plap.kernels.dense import DENSE
from plap.kernels.fused.backend import FUSED
from plap.kernels.row_backend import RepeatedSteps, RowBackend
from plap.kernels.torch.backend import TORCH
from plap.kernels.triton.backend import TRITON
from plap.penalties import Penalty, Power

BACKENDS: tuple[Backend, ...] = (FUSED, TRITON, TORCH, DENSE)
"""In the order in which "auto" asks them."""


def choose(
    backend: str | Backend,
    device: torch.device,
    dtype: torch.dtype,
    variant: Variant = "paper",
    *,
    penalty: Penalty | None = None,
    bounded: bool = False,
) -> Backend:
    """The backend for a call: the one that is named, or for "auto" the first that serves it.

    ``device`` and ``dtype`` are those of x; no ``penalty`` means a power; ``bounded`` says that there
    is a memory budget.
    """
    if backend == "auto":
        for candidate in BACKENDS:
            able = candidate.capabilities.automatic
            if able and _refusal(candidate, device, dtype, variant, penalty, bounded) is None:
                return candidate
        raise InputError(f"no backend serves x of type {dtype} on {device}")
    chosen = find_backend(backend)
    assert chosen is not None
    refusal = _refusal(chosen, device, dtype, variant, penalty, bounded)
    if refusal is not None:
        raise InputError(refusal)
    return chosen


def find_backend(backend: str | Backend) -> Backend | None:
    """The backend that is named or given; None for "auto", which depends on the call.

    Examples
    --------
    >>> find_backend("fast")
    Traceback (most recent call last):
    plap.errors.InputError: backend must be one of auto, fused, triton, torch, dense, not 'fast'
    """
    if isinstance(backend, str):
        return None if backend == "auto" else named(backend)
    if not isinstance(backend, Backend):
        raise InputError(f"backend must be a name or a plap.kernels.backend.Backend, not {backend!r}")
    return backend


def named(name: str) -> Backend:
    """The backend of this name."""
    for backend in BACKENDS:
        if backend.name == name:
            return backend
    raise InputError(f"backend must be one of {', '.join(names())}, not {name!r}")


def names(*, bounded: bool = False) -> list[str]:
    """What ``backend`` may be: "auto", or a backend's name; if ``bounded``, of those that keep a budget."""
    return ["auto", *(b.name for b in BACKENDS if b.capabilities.memory_budget or not bounded)]


def propagate_unchecked(
    x: Tensor,
    graph: Graph,
    penalty: Penalty | Tensor,
    mu: Tensor,
    K: int,
    *,
    detach_weights: bool = False,
    budget: int | None = None,
    rows: Tensor | None = None,
) -> Tensor:
    """K steps of Eq. 11-13 by the backend that "auto" stands for, without looking at the arguments.

    For training loops, where the checks of :func:`plap.propagate` would cost a tenth of an epoch and where a
    run that overflows must not end the others. x is [R, N, C] on the graph's device; mu and the
    penalty's parameter are [R], and a tensor in its place is the p of powers. The rest is as in
    :meth:`plap.kernels.backend.Backend.propagate`.
    """
    if isinstance(penalty, Tensor):
        penalty = Power(penalty)
    backend = choose("auto", x.device, x.dtype, penalty=penalty, bounded=budget is not None)
    return backend.propagate(
        x, graph, penalty, mu, K, detach_weights=detach_weights, budget=budget, rows=rows
    )


def repeated_steps(
    like: Tensor, graph: Graph, penalty: Penalty, mu: Tensor, K: int, detach_weights: bool, rows: Tensor
) -> RepeatedSteps | None:  # fmt: skip
    """The steps of :func:`propagate_unchecked` to be taken many times, without autograd.

    None where the backend that "auto" stands for cannot do so. ``like`` [R, N, C] has the shape and type of
    what the steps start from.
    """
    backend = choose("auto", like.device, like.dtype, penalty=penalty)
    if not isinstance(backend, RowBackend):
        return None
    return backend.repeated(like, graph, penalty, mu, K, detach_weights, rows)


def _refusal(
    backend: Backend, device: torch.device, dtype: torch.dtype, variant: Variant, penalty: Penalty | None,
    bounded: bool,
) -> str | None:  # fmt: skip
    """Why a backend does not serve a call, in a sentence; None if it does."""
    serves = backend.capabilities
    if serves.missing is not None:
        return serves.missing
    if variant not in serves.variants:
        able = " or ".join(repr(b.name) for b in BACKENDS if variant in b.capabilities.variants)
        return f"variant {variant!r} needs backend {able}, not {backend.name!r}"
    if bounded and not serves.memory_budget:
        return f"memory_budget cannot be kept by backend {backend.name!r}"
    if serves.devices is not None and device.type not in serves.devices:
        where = " or ".join("the CPU" if kind == "cpu" else kind for kind in sorted(serves.devices))
        return f"backend {backend.name!r} needs x on {where}, not on {device}"
    if dtype not in serves.dtypes:
        kinds = " or ".join(sorted(str(kind) for kind in serves.dtypes))
        return f"backend {backend.name!r} needs x of type {kinds}, not {dtype}"
    return None if penalty is None else backend.refuses(penalty)
