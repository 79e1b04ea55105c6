"""The fused CPU backend: K steps forward and backward on Numba row loops and PyTorch's threads.

It keeps Y of every step (K × nodes × channels) and α (K × nodes) for the backward pass, recomputes the
conductances there, and never holds anything of size edges × channels.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numba import carray, cfunc, njit, types
from torch import Tensor

from plap.kernels import threads
from plap.kernels.conductance import OPTIONS
from plap.kernels.lanes import BLOCK
from plap.kernels.machine import next_ticket, pointer
from plap.kernels.rows import backward_rows, forward_rows, prepare_rows, scale_rows, weight_rows

_GRAIN = 40_000
"""Channel blocks of edges that are worth a thread of their own (some tens of microseconds)."""

_CACHE = 32 * 1024
"""Bytes of neighbours' rows that a batch may touch, so that its second pass finds them in the nearest cache."""

_FIELDS = (
    "counter chunks indptr indices w s p m alphas X Y norms out norms_next F_next "
    "Y_first G YZ u t ghx yf gX gm gp gw "
    "runs tasks nodes entries blocks batch room flag"
).split()


class _Call(ctypes.Structure):
    """What a task loop is given: addresses, sizes, a flag, and two numbers."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in _FIELDS),
        ("omega", ctypes.c_double),
        ("eps2", ctypes.c_double),
    )


_CALL = np.dtype([(name, "u8") for name in _FIELDS] + [("omega", "f8"), ("eps2", "f8")])


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs of the forward pass."""

    history: Tensor
    """Y before every step, [K, R, N, padded C]."""
    alphas: Tensor
    """α of every step, [K, R, N]."""
    result: Tensor
    """F after the last step, [R, N, padded C]."""


@dataclass(frozen=True)
class Gradients:
    """Cotangents of the arguments of :func:`forward`."""

    x: Tensor
    weight: Tensor | None
    p: Tensor
    mu: Tensor


def layout(channels: int) -> tuple[int, int]:
    """Blocks and lanes of a row: the padding and the number of blocks are what costs."""
    lanes = min((BLOCK, 2 * BLOCK, 4 * BLOCK, 8 * BLOCK), key=lambda size: -(-channels // size) * (size + BLOCK))
    return max(1, -(-channels // lanes)), lanes


def padded(channels: int) -> int:
    """Channels of a row as the kernel stores it."""
    blocks, lanes = layout(channels)
    return blocks * lanes


def forward(
    x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, p: Tensor, mu: Tensor,
    K: int, omega: float, eps: float, keep: bool,
) -> Saved:  # fmt: skip
    """K steps of Eq. 11-13 on x [R, N, C]; p and mu are float64 [R]; eps = 0 means the cut rule.

    Without ``keep`` only ``result`` is of use afterwards.
    """
    call = _Caller(x, indptr, indices, weight, p, mu, omega, eps)
    runs, nodes, channels = x.shape
    X = pad(x, padded(channels))
    slots = K if keep else 2
    history = X.new_empty(slots, *X.shape)
    alphas = X.new_empty(K if keep else 1, runs, nodes)
    norms = X.new_empty(2, runs, nodes)
    result = torch.empty_like(X)
    call("scale", X=X, Y=history[0], norms=norms[0])
    for k in range(K):
        last = k == K - 1
        call(
            "forward", X=X, Y=history[k % slots], norms=norms[k % 2],
            out=result if last else history[(k + 1) % slots], norms_next=norms[(k + 1) % 2],
            alphas=alphas[k % alphas.shape[0]], flag=last,
        )  # fmt: skip
    return Saved(history, alphas, result)


def backward(
    grad: Tensor, saved: Saved, indptr: Tensor, indices: Tensor, weight: Tensor, p: Tensor, mu: Tensor,
    omega: float, eps: float, *, want_weight: bool, want_p: bool,
) -> Gradients:  # fmt: skip
    """The vector-Jacobian product of :func:`forward` for ``grad`` [R, N, C]."""
    call = _Caller(grad, indptr, indices, weight, p, mu, omega, eps)
    runs, nodes, channels = grad.shape
    K = saved.history.shape[0]
    G = pad(grad, saved.result.shape[2], copy=True)
    gX = torch.zeros_like(G)
    YZ = G.new_empty(2 * G.numel())
    u, t, ghx, norms, yf = G.new_empty(5, runs, nodes)
    gm, gp = torch.zeros(2, runs, nodes, dtype=torch.float64)
    gw = torch.zeros_like(weight) if want_weight else None
    for k in reversed(range(K)):
        last = k == K - 1
        nodes_of_step = {"YZ": YZ, "u": u, "t": t, "ghx": ghx, "norms": norms, "alphas": saved.alphas[k]}
        call(
            "prepare", Y=saved.history[k], F_next=saved.result if last else saved.history[k + 1],
            Y_first=saved.history[0], G=G, gX=gX, gm=gm, flag=last, **nodes_of_step,
        )  # fmt: skip
        call("backward", G=G, yf=yf, gp=gp, flag=want_p, **nodes_of_step)
        if gw is not None:
            call("weight", yf=yf, gw=gw, **nodes_of_step)
    gX += G
    slope_m = gm.sum(1)
    return Gradients(
        gX[:, :, :channels], gw, gp.sum(1) - 2 * mu / p.square() * slope_m, 2 / p * slope_m
    )


class _Caller:
    """Runs one kernel after another on the same graph and the same runs."""

    def __init__(
        self, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, p: Tensor, mu: Tensor,
        omega: float, eps: float,
    ) -> None:  # fmt: skip
        runs, nodes, channels = x.shape
        blocks, lanes = layout(channels)
        entries = indices.shape[0]
        m = 2 * mu / p
        s = _inverse_root_degrees(indptr, weight)
        rows = indptr.numpy()
        self._threads = threads.count(runs * (entries + 4 * nodes) * blocks * lanes // 16, _GRAIN)
        chunks = _equal_chunks(rows, self._threads if runs < 8 * self._threads else 1)
        self._kernel = (lanes // BLOCK, x.dtype == torch.float64, indices.dtype == torch.int64)
        self._counter = ctypes.c_int64(0)
        self._alive = (chunks, indptr, indices, weight, s, p, m)
        call = self._call = _Call()
        self._address = ctypes.addressof(call)
        call.counter = ctypes.addressof(self._counter)
        call.chunks = chunks.ctypes.data
        call.indptr, call.indices = indptr.data_ptr(), indices.data_ptr()
        call.w, call.s, call.p, call.m = weight.data_ptr(), s.data_ptr(), p.data_ptr(), m.data_ptr()
        call.runs, call.tasks, call.nodes, call.entries = runs, chunks.size - 1, nodes, entries
        call.blocks, call.batch = blocks, max(64, _CACHE // (blocks * lanes * x.element_size()))
        call.room = max(call.batch, int((rows[1:] - rows[:-1]).max(initial=0)))
        call.omega, call.eps2 = omega, eps * eps

    def __call__(self, kernel: str, *, flag: bool = False, **tensors: Tensor) -> None:
        self._call.flag = flag
        for name, tensor in tensors.items():
            setattr(self._call, name, tensor.data_ptr())
        self._counter.value = 0
        loop, address = _task_loop(kernel, *self._kernel)
        threads.run(loop, address, self._address, self._threads)


def _inverse_root_degrees(indptr: Tensor, weight: Tensor) -> Tensor:
    """s_i = D_i^(-1/2), 0 for a node without edges."""
    if weight.shape[0] == 0:
        return weight.new_zeros(indptr.shape[0] - 1)
    degree = torch.segment_reduce(weight.double(), "sum", offsets=indptr.long(), initial=0.0)
    return degree.rsqrt_().masked_fill_(degree.isinf(), 0.0).to(weight.dtype)


def pad(x: Tensor, channels: int, *, copy: bool = False) -> Tensor:
    """x with zero channels up to ``channels``, contiguous."""
    if x.shape[2] == channels:
        return x.contiguous().clone() if copy else x.contiguous()
    return torch.nn.functional.pad(x, (0, channels - x.shape[2]))


def _equal_chunks(indptr: np.ndarray[Any, Any], workers: int) -> np.ndarray[Any, Any]:
    """Row ranges of about equal work: many small ones, so that nobody waits behind a hub."""
    nodes = indptr.size - 1
    if workers == 1:
        return np.array([0, nodes], dtype=np.int64)
    number = min(16 * workers, max(1, nodes))
    work = indptr.astype(np.int64) + 4 * np.arange(nodes + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], number + 1)[1:-1])
    return np.concatenate([[0], cuts, [nodes]]).astype(np.int64)


Loop = Callable[[int], None]


@cache
def _task_loop(kernel: str, blocks_of_lanes: int, double: bool, wide: bool) -> tuple[Loop, int]:
    """The compiled task loop of a kernel, and its address; compiled once, then kept on disk by Numba."""
    width = (0,) * blocks_of_lanes
    real = np.float64 if double else np.float32
    index = np.uint64 if wide else np.uint32
    which = _KERNELS.index(kernel)
    stamp = _source_stamp()

    def task_loop(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = carray(address, (1,), _CALL)[0]
        if which == 0:
            _scale_tasks(call, width, real)
        elif which == 1:
            _forward_tasks(call, width, real, index)
        elif which == 2:
            _prepare_tasks(call, width, real)
        elif which == 3:
            _backward_tasks(call, width, real, index)
        else:
            _weight_tasks(call, width, real, index)

    compiled = cfunc(types.void(types.voidptr), cache=True)(task_loop)
    function: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address)
    return function, compiled.address


@cache
def _source_stamp() -> str:
    """A digest of every file that is compiled into a task loop."""
    folder = Path(__file__).parent
    sources = ("conductance.py", "lanes.py", "machine.py", "rows.py")
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in sources)).hexdigest()


_KERNELS = ("scale", "forward", "prepare", "backward", "weight")


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _array(address: Any, size: Any, dtype: Any) -> Any:
    return carray(pointer(address), (np.int64(size),), dtype)


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _next_task(call: Any, tasks: Any) -> Any:
    """(whether there is one, first row, end row, run) of the next task for this thread."""
    ticket = next_ticket(_array(call.counter, 1, np.int64))
    chunks = _array(call.chunks, call.tasks + np.uint64(1), np.int64)
    chunk = ticket % np.int64(call.tasks)
    return ticket < np.int64(tasks), np.uint64(chunks[chunk]), np.uint64(chunks[chunk + 1]), np.uint64(ticket // np.int64(call.tasks))


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _graph(call: Any, real: Any, index: Any) -> Any:
    return (
        _array(call.indptr, call.nodes + np.uint64(1), index),
        _array(call.indices, call.entries, index),
        _array(call.w, call.entries, real),
        _array(call.s, call.nodes, real),
    )


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _scalars(call: Any, run: Any, real: Any) -> Any:
    p = _array(call.p, call.runs, np.float64)[run]
    m = _array(call.m, call.runs, np.float64)[run]
    return p, real(m), real(call.omega), real(call.eps2), call.flag != 0


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _buffers(call: Any, real: Any) -> Any:
    """Room for the entries of a batch of rows, and how many entries a batch should have."""
    room = np.empty((4, np.int64(call.room)), real)
    return room[0], room[1], room[2], room[3], call.batch


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _scale_tasks(call: Any, width: Any, real: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    s = _array(call.s, call.nodes, real)
    X = _array(call.X, call.runs * stride, real)
    Y = _array(call.Y, call.runs * stride, real)
    norms = _array(call.norms, call.runs * call.nodes, real)
    more, lo, hi, run = _next_task(call, call.tasks * call.runs)
    while more:
        scale_rows(lo, hi, run * call.nodes, run * stride, s, X, Y, norms, call.blocks, width)
        more, lo, hi, run = _next_task(call, call.tasks * call.runs)


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _forward_tasks(call: Any, width: Any, real: Any, index: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    X = _array(call.X, call.runs * stride, real)
    Y = _array(call.Y, call.runs * stride, real)
    out = _array(call.out, call.runs * stride, real)
    norms = _array(call.norms, call.runs * call.nodes, real)
    norms_next = _array(call.norms_next, call.runs * call.nodes, real)
    alphas = _array(call.alphas, call.runs * call.nodes, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.tasks * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        forward_rows(
            lo, hi, run * call.nodes, run * stride, graph, X, Y, norms,
            out, norms_next, alphas, scalars, buffers, call.blocks, width,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.tasks * call.runs)


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _node_arrays(call: Any, real: Any) -> Any:
    size = call.runs * call.nodes
    return (
        _array(call.u, size, real),
        _array(call.t, size, real),
        _array(call.ghx, size, real),
        _array(call.norms, size, real),
        _array(call.alphas, size, real),
    )


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _prepare_tasks(call: Any, width: Any, real: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    size = call.runs * stride
    s = _array(call.s, call.nodes, real)
    Y = _array(call.Y, size, real)
    F_next = _array(call.F_next, size, real)
    Y_first = _array(call.Y_first, size, real)
    G = _array(call.G, size, real)
    gX = _array(call.gX, size, real)
    YZ = _array(call.YZ, np.uint64(2) * size, real)
    gm = _array(call.gm, call.runs * call.nodes, np.float64)
    u, t, ghx, norms, alphas = _node_arrays(call, real)
    more, lo, hi, run = _next_task(call, call.tasks * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        prepare_rows(
            lo, hi, run * call.nodes, run * stride, s, alphas, Y, F_next, Y_first, G,
            YZ, u, t, ghx, norms, gX, gm, scalars, call.blocks, width,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.tasks * call.runs)


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _backward_tasks(call: Any, width: Any, real: Any, index: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    YZ = _array(call.YZ, np.uint64(2) * call.runs * stride, real)
    G = _array(call.G, call.runs * stride, real)
    yf = _array(call.yf, call.runs * call.nodes, real)
    gp = _array(call.gp, call.runs * call.nodes, np.float64)
    u, _, _, norms, _ = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.tasks * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        backward_rows(
            lo, hi, run * call.nodes, run * stride, graph, YZ, u, norms, G,
            yf, gp, scalars, buffers, call.blocks, width,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.tasks * call.runs)


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def _weight_tasks(call: Any, width: Any, real: Any, index: Any) -> None:
    """The weights are common to all runs, so a task takes its rows through every run in turn."""
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    YZ = _array(call.YZ, np.uint64(2) * call.runs * stride, real)
    yf = _array(call.yf, call.runs * call.nodes, real)
    gw = _array(call.gw, call.entries, real)
    u, t, ghx, norms, alphas = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.tasks)
    while more:
        for run in range(call.runs):
            run = np.uint64(run)
            scalars = _scalars(call, run, real)
            weight_rows(
                lo, hi, run * call.nodes, run * stride, graph, YZ, u, t, ghx, yf, alphas, norms,
                gw, scalars, buffers, call.blocks, width,
            )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.tasks)
