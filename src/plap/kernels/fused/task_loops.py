"""The fused backend's entry points: loops that take tasks (a run, a range of rows) until none is left.

Each is a C function of one pointer, so that any thread can run it without Python. What is compiled is kept on
disk by Numba, under a key that changes with the sources.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numba import carray

from plap.kernels.fused.backward_rows import backward_rows, detached_rows, prepare_rows, weight_rows
from plap.kernels.fused.forward_rows import forward_rows, scale_rows
from plap.kernels.fused.jit import c_function, compiled, inlined, next_ticket, pointer, source_stamp
from plap.kernels.fused.layout import BLOCK
from plap.kernels.fused.threads import TaskLoop

_POINTERS = (
    *("counter", "chunks", "indptr", "indices", "w", "s", "p", "m"),
    *("X", "Y", "norms", "out", "norms_next", "alphas"),
    *("F_next", "Y_first", "G", "YZ", "u", "t", "pull", "yf", "gX", "gm", "gp", "gw"),
)
_SIZES = (
    *("runs", "chunks_per_run", "nodes", "entries", "blocks", "batch", "room", "flag", "penalty"),
    *("steps", "states", "kept_alphas"),
)


class Call(ctypes.Structure):
    """What a task loop is given: addresses, sizes, a flag, the penalty's function, and two numbers."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in (*_POINTERS, *_SIZES)),
        ("omega", ctypes.c_double),
        ("eps2", ctypes.c_double),
    )


_CALL = np.dtype([(name, "u8") for name in (*_POINTERS, *_SIZES)] + [("omega", "f8"), ("eps2", "f8")])


@cache
def task_loop(
    kernel: str, blocks_of_lanes: int, double: bool, wide: bool, power: bool
) -> tuple[TaskLoop, int]:
    """The compiled task loop of a kernel, and its address; compiled once, then kept on disk by Numba.

    ``power`` says that the penalty is a power; other penalties are called by the address that ``Call`` holds.
    """
    width = (0,) * blocks_of_lanes
    real = np.float64 if double else np.float32
    index = np.uint64 if wide else np.uint32
    which = _KERNELS.index(kernel)
    stamp = source_stamp()

    def loop(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = carray(address, (1,), _CALL)[0]
        if power:  # a statement, because Numba prunes those and not expressions
            rule: Any = ()
        else:
            rule = (call.penalty,)
        if which == 0:
            _scale_tasks(call, width, real)
        elif which == 1:
            _forward_tasks(call, width, real, index, rule)
        elif which == 2:
            _prepare_tasks(call, width, real)
        elif which == 3:
            _backward_tasks(call, width, real, index, rule)
        elif which == 4:
            _weight_tasks(call, width, real, index, rule)
        elif which == 5:
            _detached_tasks(call, width, real, index, rule)
        elif which == 6:
            _forward_runs(call, width, real, index, rule)
        elif which == 7:
            _backward_runs(call, width, real, index, rule)
        else:
            _detached_runs(call, width, real, index, rule)

    code = c_function(loop)
    function: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address)
    return function, code.address


_KERNELS = (
    *("scale", "forward", "prepare", "backward", "weight", "detached"),
    *("all_forward", "all_backward", "all_detached"),
)


@inlined
def _array(address: Any, size: Any, dtype: Any) -> Any:
    return carray(pointer(address), (np.int64(size),), dtype)


@inlined
def _next_task(call: Any, tasks: Any) -> Any:
    """(whether there is one, first row, end row, run) of the next task for this thread."""
    ticket = np.uint64(next_ticket(_array(call.counter, 1, np.int64)))
    chunks = _array(call.chunks, call.chunks_per_run + np.uint64(1), np.uint64)
    chunk = ticket % call.chunks_per_run
    return ticket < tasks, chunks[chunk], chunks[chunk + np.uint64(1)], ticket // call.chunks_per_run


@inlined
def _graph(call: Any, real: Any, index: Any) -> Any:
    return (
        _array(call.indptr, call.nodes + np.uint64(1), index),
        _array(call.indices, call.entries, index),
        _array(call.w, call.entries, real),
        _array(call.s, call.nodes, real),
    )


@inlined
def _scalars(call: Any, run: Any, real: Any) -> Any:
    p = _array(call.p, call.runs, np.float64)[run]
    m = _array(call.m, call.runs, np.float64)[run]
    return p, real(m), real(call.omega), real(call.eps2), call.flag != 0


@inlined
def _buffers(call: Any, real: Any) -> Any:
    """Room for the entries of a batch of rows, and how many entries a batch should have."""
    room = np.empty((4, np.int64(call.room)), real)
    return room[0], room[1], room[2], room[3], call.batch


@compiled
def _scale_tasks(call: Any, width: Any, real: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    s = _array(call.s, call.nodes, real)
    X = _array(call.X, call.runs * stride, real)
    Y = _array(call.Y, call.runs * stride, real)
    norms = _array(call.norms, call.runs * call.nodes, real)
    more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)
    while more:
        scale_rows(lo, hi, run * call.nodes, run * stride, s, X, Y, norms, call.blocks, width)
        more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)


@compiled
def _forward_tasks(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    X = _array(call.X, call.runs * stride, real)
    Y = _array(call.Y, call.runs * stride, real)
    out = _array(call.out, call.runs * stride, real)
    norms = _array(call.norms, call.runs * call.nodes, real)
    norms_next = _array(call.norms_next, call.runs * call.nodes, real)
    alphas = _array(call.alphas, call.runs * call.nodes, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        forward_rows(
            lo, hi, run * call.nodes, run * stride, graph, X, Y, norms,
            out, norms_next, alphas, scalars, buffers, call.blocks, width, rule,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)


@inlined
def _at(address: Any, place: Any, size: Any, real: Any) -> Any:
    """The ``place``-th of several arrays of ``size`` numbers that lie one after another."""
    itemsize = np.uint64(_array(address, 1, real).itemsize)
    return _array(address + np.uint64(place) * size * itemsize, size, real)


@compiled
def _forward_runs(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    """All steps forward; a task takes one run through all of them, so that its rows stay in the cache."""
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    size, nodes = call.runs * stride, call.runs * call.nodes
    graph = _graph(call, real, index)
    X = _array(call.X, size, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.runs)
    while more:
        p, m, omega, eps2, _ = _scalars(call, run, real)
        node, row = run * call.nodes, run * stride
        scale_rows(
            lo, hi, node, row, graph[3], X, _at(call.Y, 0, size, real), _at(call.norms, 0, nodes, real),
            call.blocks, width,
        )  # fmt: skip
        for k in range(call.steps):
            following = k + np.uint64(1)
            last = following == call.steps
            out = _array(call.out, size, real) if last else _at(call.Y, following % call.states, size, real)
            forward_rows(
                lo, hi, node, row, graph, X, _at(call.Y, k % call.states, size, real),
                _at(call.norms, k % np.uint64(2), nodes, real), out,
                _at(call.norms, following % np.uint64(2), nodes, real),
                _at(call.alphas, k % call.kept_alphas, nodes, real),
                (p, m, omega, eps2, last), buffers, call.blocks, width, rule,
            )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.runs)


@inlined
def _node_arrays(call: Any, real: Any) -> Any:
    size = call.runs * call.nodes
    return (
        _array(call.u, size, real),
        _array(call.t, size, real),
        _array(call.pull, size, real),
        _array(call.norms, size, real),
        _array(call.alphas, size, real),
    )


@compiled
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
    u, t, pull, norms, alphas = _node_arrays(call, real)
    more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        prepare_rows(
            lo, hi, run * call.nodes, run * stride, s, alphas, Y, F_next, Y_first, G,
            YZ, u, t, pull, norms, gX, gm, scalars, call.blocks, width,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)


@compiled
def _backward_tasks(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    YZ = _array(call.YZ, np.uint64(2) * call.runs * stride, real)
    G = _array(call.G, call.runs * stride, real)
    yf = _array(call.yf, call.runs * call.nodes, real)
    gp = _array(call.gp, call.runs * call.nodes, np.float64)
    u, _, _, norms, _ = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        backward_rows(
            lo, hi, run * call.nodes, run * stride, graph, YZ, u, norms, G,
            yf, gp, scalars, buffers, call.blocks, width, rule,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)


@compiled
def _detached_tasks(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    Y = _array(call.Y, call.runs * stride, real)
    YZ = _array(call.YZ, np.uint64(2) * call.runs * stride, real)
    G = _array(call.G, call.runs * stride, real)
    yf = _array(call.yf, call.runs * call.nodes, real)
    _, _, _, norms, _ = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        detached_rows(
            lo, hi, run * call.nodes, run * stride, graph, Y, YZ, norms, G,
            yf, scalars, buffers, call.blocks, width, rule,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)


@compiled
def _weight_tasks(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    """The weights are common to all runs, so a task takes its rows through every run in turn."""
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    YZ = _array(call.YZ, np.uint64(2) * call.runs * stride, real)
    yf = _array(call.yf, call.runs * call.nodes, real)
    gw = _array(call.gw, call.entries, real)
    u, t, pull, norms, _ = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, hi, _ = _next_task(call, call.chunks_per_run)
    while more:
        for run in range(call.runs):
            scalars = _scalars(call, run, real)
            weight_rows(
                lo, hi, run * call.nodes, run * stride, graph, YZ, u, t, pull, yf, norms,
                gw, scalars, buffers, call.blocks, width, rule,
            )  # fmt: skip
        more, lo, hi, _ = _next_task(call, call.chunks_per_run)


@compiled
def _backward_runs(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    """All steps backward; a task takes one run through all of them."""
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    size, nodes = call.runs * stride, call.runs * call.nodes
    graph = _graph(call, real, index)
    Y_first = _array(call.Y, size, real)
    G = _array(call.G, size, real)
    gX = _array(call.gX, size, real)
    YZ = _array(call.YZ, np.uint64(2) * size, real)
    yf = _array(call.yf, nodes, real)
    gm = _array(call.gm, nodes, np.float64)
    gp = _array(call.gp, nodes, np.float64)
    u, t, pull, norms, _ = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.runs)
    while more:
        p, m, omega, eps2, want_p = _scalars(call, run, real)
        node, row = run * call.nodes, run * stride
        for back in range(call.steps):
            k = call.steps - np.uint64(1) - back
            Y = _at(call.Y, k, size, real)
            raw = back == np.uint64(0)
            F_next = _array(call.F_next, size, real) if raw else _at(call.Y, k + np.uint64(1), size, real)
            prepare_rows(
                lo, hi, node, row, graph[3], _at(call.alphas, k, nodes, real), Y, F_next, Y_first, G,
                YZ, u, t, pull, norms, gX, gm, (p, m, omega, eps2, raw), call.blocks, width,
            )  # fmt: skip
            backward_rows(
                lo, hi, node, row, graph, YZ, u, norms, G,
                yf, gp, (p, m, omega, eps2, want_p), buffers, call.blocks, width, rule,
            )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.runs)


@compiled
def _detached_runs(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    """The same where ψ counts as a constant."""
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    size, nodes = call.runs * stride, call.runs * call.nodes
    graph = _graph(call, real, index)
    Y_first = _array(call.Y, size, real)
    G = _array(call.G, size, real)
    gX = _array(call.gX, size, real)
    YZ = _array(call.YZ, np.uint64(2) * size, real)
    yf = _array(call.yf, nodes, real)
    gm = _array(call.gm, nodes, np.float64)
    u, t, pull, norms, _ = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.runs)
    while more:
        p, m, omega, eps2, _ = _scalars(call, run, real)
        node, row = run * call.nodes, run * stride
        for back in range(call.steps):
            k = call.steps - np.uint64(1) - back
            Y = _at(call.Y, k, size, real)
            raw = back == np.uint64(0)
            F_next = _array(call.F_next, size, real) if raw else _at(call.Y, k + np.uint64(1), size, real)
            prepare_rows(
                lo, hi, node, row, graph[3], _at(call.alphas, k, nodes, real), Y, F_next, Y_first, G,
                YZ, u, t, pull, norms, gX, gm, (p, m, omega, eps2, raw), call.blocks, width,
            )  # fmt: skip
            detached_rows(
                lo, hi, node, row, graph, Y, YZ, norms, G,
                yf, (p, m, omega, eps2, False), buffers, call.blocks, width, rule,
            )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.runs)
