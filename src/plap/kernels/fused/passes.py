"""The fused CPU backend: K steps forward and backward on Numba row loops and PyTorch's threads.

For the backward pass it keeps α of every step (K × nodes) and Y of all or some steps (K × nodes × channels).
Conductances are recomputed there, so nothing of size edges × channels ever exists.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.kernels.budget import KEEP_ALL, KEEP_NONE, backwards, kept
from plap.kernels.fused import threads
from plap.kernels.fused.layout import BLOCK, layout, padded
from plap.kernels.fused.penalty_code import POWER, place_of
from plap.kernels.fused.penalty_functions import edge_loop
from plap.kernels.fused.task_loops import Call, task_loop

_GRAIN = 10_000
"""Entries of 16 channels that are worth waking a thread for: about a tenth of a millisecond."""

_CACHE = 32 * 1024
"""Bytes of neighbours' rows that a batch may touch: its second pass finds them in the nearest cache."""


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs of the forward pass."""

    history: Tensor
    """Y before the steps that ``every`` selects, [kept, R, N, padded C]."""
    norms: Tensor
    """|Y_i|² of these, [kept, R, N], if steps will be recomputed; empty if all are kept."""
    alphas: Tensor
    """α of every step, [K, R, N]."""
    result: Tensor
    """F after the last step, [R, N, padded C]."""


@dataclass(frozen=True)
class Gradients:
    """Cotangents of the arguments of :func:`forward`."""

    x: Tensor
    weight: Tensor | None
    parameter: Tensor
    mu: Tensor


class Rule(NamedTuple):
    """How edges are weighed."""

    penalty: str
    """Its key in :mod:`plap.kernels.fused.penalty_code`."""
    c: float
    """The constant in ρ'(y) = c y ψ(y²); unused for powers, where it is p."""
    detach: bool
    """Whether ψ counts as a constant in the backward pass."""


POWERS = Rule(POWER, 1.0, False)


def forward(
    x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor, mu: Tensor,
    K: int, omega: float, eps: float, every: int, rule: Rule = POWERS,
) -> Saved:  # fmt: skip
    """K steps of Eq. 11-13 on x [R, N, C]; mu and the penalty's parameter are [R], degree [N], all float64.

    eps = 0 means the cut rule. Y before every ``every``-th step is kept; if ``every`` is 0, only ``result``
    can be used afterwards.
    """
    call = _Caller(x, indptr, indices, weight, degree, parameter, mu, omega, eps, rule)
    runs, nodes, channels = x.shape
    X = pad(x, padded(channels))
    number = kept(K, every) if every != KEEP_NONE else 0
    history = X.new_empty(number, *X.shape)
    norms = X.new_empty(number if every > KEEP_ALL else 0, runs, nodes)
    spare = X.new_empty(min(2, K if every == KEEP_NONE else every - 1), *X.shape)
    spare_norms = X.new_empty(2, runs, nodes)
    alphas = X.new_empty(K if every != KEEP_NONE else 1, runs, nodes)
    result = torch.empty_like(X)

    def state(k: int) -> tuple[Tensor, Tensor]:
        """Y and |Y_i|² before step k."""
        is_kept = every != KEEP_NONE and k % every == 0
        return (
            history[k // every] if is_kept else spare[k % spare.shape[0]],
            norms[k // every] if is_kept and every > KEEP_ALL else spare_norms[k % 2],
        )

    Y, size = state(0)
    call("scale", X=X, Y=Y, norms=size)
    for k in range(K):
        last = k == K - 1
        following, size_next = (result, spare_norms[(k + 1) % 2]) if last else state(k + 1)
        call(
            "forward", X=X, Y=Y, norms=size, out=following, norms_next=size_next,
            alphas=alphas[k % alphas.shape[0]], flag=last,
        )  # fmt: skip
        Y, size = following, size_next
    return Saved(history, norms, alphas, result)


def backward(
    grad: Tensor, saved: Saved, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor,
    parameter: Tensor, mu: Tensor, omega: float, eps: float, every: int, rule: Rule = POWERS, *,
    want_weight: bool, want_parameter: bool,
) -> Gradients:  # fmt: skip
    """The vector-Jacobian product of :func:`forward` for ``grad`` [R, N, C]; x is used if ``every`` > 1."""
    call = _Caller(grad, indptr, indices, weight, degree, parameter, mu, omega, eps, rule)
    runs, nodes, channels = grad.shape
    K = saved.alphas.shape[0]
    G = pad(grad, saved.result.shape[2], copy=True)
    gX = torch.zeros_like(G)
    YZ = G.new_empty(2 * G.numel())
    u, t, pull, norms, yf, alphas = G.new_empty(6, runs, nodes)
    gm, gp = torch.zeros(2, runs, nodes, dtype=torch.float64)
    gw = torch.zeros_like(weight) if want_weight else None
    X = pad(x, saved.result.shape[2]) if every > KEEP_ALL else x

    def step(state: tuple[Tensor, Tensor], k: int) -> tuple[Tensor, Tensor]:
        following, size_next = torch.empty_like(G), torch.empty_like(alphas)
        call("forward", X=X, Y=state[0], norms=state[1], out=following, norms_next=size_next, alphas=alphas)
        return following, size_next

    sizes = saved.norms if every > KEEP_ALL else saved.alphas  # not read where nothing is recomputed
    states = list(zip(saved.history, sizes, strict=True))
    F_next = saved.result
    for k, (Y, _) in backwards(states, K, every, step):
        nodes_of_step = {"YZ": YZ, "u": u, "t": t, "pull": pull, "norms": norms, "alphas": saved.alphas[k]}
        call(
            "prepare", Y=Y, F_next=F_next, Y_first=saved.history[0], G=G, gX=gX, gm=gm, flag=k == K - 1,
            **nodes_of_step,
        )  # fmt: skip
        if rule.detach:
            call("detached", Y=Y, G=G, yf=yf, **nodes_of_step)
        else:
            call("backward", G=G, yf=yf, gp=gp, flag=want_parameter, **nodes_of_step)
        if gw is not None:
            call("weight", yf=yf, gw=gw, flag=rule.detach, **nodes_of_step)
        F_next = Y
    gX += G
    slope_m = gm.sum(1)
    of_parameter, of_mu = gp.sum(1), 2 / rule.c * slope_m
    if rule.penalty == POWER:  # m = 2μ/p
        of_parameter, of_mu = of_parameter - 2 * mu / parameter.square() * slope_m, 2 / parameter * slope_m
    return Gradients(gX[:, :, :channels], gw, of_parameter, of_mu)


class _Caller:
    """Runs one kernel after another on the same graph and the same runs."""

    def __init__(
        self, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor, parameter: Tensor,
        mu: Tensor, omega: float, eps: float, rule: Rule,
    ) -> None:  # fmt: skip
        runs, nodes, channels = x.shape
        blocks, lanes = layout(channels)
        entries = indices.shape[0]
        c = parameter if rule.penalty == POWER else rule.c
        m = (2 * mu / c).clamp(min=torch.finfo(x.dtype).tiny)
        self._power = rule.penalty == POWER
        s = torch.where(degree > 0, degree.rsqrt(), 0.0).to(x.dtype)
        rows = indptr.numpy()
        self._threads = threads.count(runs * (entries + 4 * nodes) * blocks * lanes // 16, _GRAIN)
        chunks = _equal_chunks(rows, self._threads if runs < 8 * self._threads else 1)
        self._kernel = (lanes // BLOCK, x.dtype == torch.float64, indices.dtype == torch.int64)
        self._counter = ctypes.c_int64(0)
        self._alive = (chunks, indptr, indices, weight, s, parameter, m)
        call = self._call = Call()
        self._address = ctypes.addressof(call)
        call.counter = ctypes.addressof(self._counter)
        call.chunks = chunks.ctypes.data
        call.indptr, call.indices = indptr.data_ptr(), indices.data_ptr()
        call.w, call.s, call.p, call.m = weight.data_ptr(), s.data_ptr(), parameter.data_ptr(), m.data_ptr()
        call.runs, call.chunks_per_run, call.nodes, call.entries = runs, chunks.size - 1, nodes, entries
        call.blocks, call.batch = blocks, max(64, _CACHE // (blocks * lanes * x.element_size()))
        call.room = max(call.batch, int((rows[1:] - rows[:-1]).max(initial=0)))
        call.omega, call.eps2 = omega, eps * eps
        if not self._power:
            call.penalty = edge_loop(place_of(rule.penalty), x.dtype == torch.float64).address

    def __call__(self, kernel: str, *, flag: bool = False, **tensors: Tensor) -> None:
        self._call.flag = flag
        for name, tensor in tensors.items():
            setattr(self._call, name, tensor.data_ptr())
        self._counter.value = 0
        power = self._power or kernel in ("scale", "prepare")  # these do not ask the penalty
        loop, address = task_loop(kernel, *self._kernel, power)
        threads.run(loop, address, self._address, self._threads)


def pad(x: Tensor, channels: int, *, copy: bool = False) -> Tensor:
    """Return x with zero channels up to ``channels``, contiguous."""
    if x.shape[2] == channels:
        return x.contiguous().clone() if copy else x.contiguous()
    return torch.nn.functional.pad(x, (0, channels - x.shape[2]))


def _equal_chunks(indptr: np.ndarray[Any, Any], workers: int) -> np.ndarray[Any, Any]:
    """Row ranges of about equal work: many small ones, so that no thread waits behind a hub."""
    nodes = indptr.size - 1
    if workers == 1:
        return np.array([0, nodes], dtype=np.int64)
    number = min(16 * workers, max(1, nodes))
    work = indptr.astype(np.int64) + 4 * np.arange(nodes + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], number + 1)[1:-1])
    return np.concatenate([[0], cuts, [nodes]]).astype(np.int64)
