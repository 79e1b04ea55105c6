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

from plap.kernels.fused import jit
from plap.kernels.fused.backward_rows import (
    backward_rows,
    detached_rows,
    prepare_rows,
    rim_rows,
    weight_rows,
)
from plap.kernels.fused.calling import BLOCK, TaskLoop
from plap.kernels.fused.forward_rows import ONE, TWO, blank_rows, forward_rows, scale_rows
from plap.kernels.fused.jit import array_at, compiled, inlined, next_ticket, source_stamp

_POINTERS = (
    *("counter", "chunks", "indptr", "indices", "w", "s", "p", "m", "reach"),
    *("X", "Y", "norms", "out", "norms_next", "alphas"),
    *("F_next", "Y_first", "G", "YZ", "u", "t", "pull", "yf", "gX", "gm", "gp", "gw"),
)
_SIZES = (
    *("runs", "chunks_per_run", "nodes", "entries", "blocks", "batch", "room", "flag", "penalty"),
    *("steps", "states", "kept_alphas", "only_x"),
)


class Call(ctypes.Structure):
    """What a task loop is given: addresses, sizes, a flag, the penalty's function, and two numbers.

    ``reach`` is 0, or where the table of :class:`plap.kernels.fused.graph_rows.Reach` is.
    """

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
            _backward_runs(call, width, real, index, rule, ())
        else:
            _backward_runs(call, width, real, index, rule, (0,))

    return jit.task_loop(loop)


_KERNELS = (
    *("scale", "forward", "prepare", "backward", "weight", "detached"),
    *("all_forward", "all_backward", "all_detached"),
)


@inlined
def _next_task(call: Any, tasks: Any) -> Any:
    """(whether there is one, first row, end row, run) of the next task for this thread."""
    ticket = np.uint64(next_ticket(array_at(call.counter, 1, np.int64)))
    chunks = array_at(call.chunks, call.chunks_per_run + np.uint64(1), np.uint64)
    chunk = ticket % call.chunks_per_run
    return ticket < tasks, chunks[chunk], chunks[chunk + np.uint64(1)], ticket // call.chunks_per_run


@inlined
def _graph(call: Any, real: Any, index: Any) -> Any:
    return (
        array_at(call.indptr, call.nodes + ONE, index),
        array_at(call.indices, call.entries, index),
        array_at(call.w, call.entries, real),
        array_at(call.s, call.nodes, real),
        array_at(call.indptr, 0, index),
    )


@inlined
def _graph_of(call: Any, run: Any, real: Any, index: Any) -> Any:
    """The graph of one run, its rows sorted if only some are wanted, and how many are within 0, 1, … hops."""
    s = array_at(call.s, call.nodes, real)
    addresses = (call.indptr, call.indices, call.w, call.indptr, np.uint64(0))
    rows, entries, sorted_rows, known = call.nodes, call.entries, np.uint64(0), np.uint64(0)
    if call.reach != 0:
        table = array_at(call.reach + run * np.uint64(40), 5, np.uint64)
        addresses = (table[0], table[1], table[2], table[3], table[4])
        known = call.steps + TWO
        rows = np.uint64(array_at(addresses[4], known, np.int64)[call.steps])
        sorted_rows = np.uint64(array_at(addresses[4], known, np.int64)[call.steps + ONE])
        entries = np.uint64(array_at(addresses[0], rows + ONE, index)[rows])
    graph = (
        array_at(addresses[0], rows + ONE, index),
        array_at(addresses[1], entries, index),
        array_at(addresses[2], entries, real),
        s,
        array_at(addresses[3], sorted_rows, index),
    )
    return graph, array_at(addresses[4], known, np.int64)


@inlined
def _within(counts: Any, hops: Any, everything: Any) -> Any:
    """How many rows are at most so many edges away from a wanted one."""
    if counts.size == 0:
        return everything
    return np.uint64(counts[hops])


@inlined
def _scalars(call: Any, run: Any, real: Any) -> Any:
    p = array_at(call.p, call.runs, np.float64)[run]
    m = array_at(call.m, call.runs, np.float64)[run]
    return p, real(m), real(call.omega), real(call.eps2), call.flag != 0


@inlined
def _buffers(call: Any, real: Any) -> Any:
    """Room for the entries of a batch of rows, and how many entries a batch should have."""
    room = np.empty((4, np.int64(call.room)), real)
    return room[0], room[1], room[2], room[3], call.batch


@compiled
def _scale_tasks(call: Any, width: Any, real: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    s, unsorted = array_at(call.s, call.nodes, real), array_at(call.indptr, 0, np.uint32)
    X = array_at(call.X, call.runs * stride, real)
    Y = array_at(call.Y, call.runs * stride, real)
    norms = array_at(call.norms, call.runs * call.nodes, real)
    more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)
    while more:
        scale_rows(lo, hi, run * call.nodes, run * stride, s, unsorted, X, Y, norms, call.blocks, width)
        more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)


@compiled
def _forward_tasks(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    X = array_at(call.X, call.runs * stride, real)
    Y = array_at(call.Y, call.runs * stride, real)
    out = array_at(call.out, call.runs * stride, real)
    norms = array_at(call.norms, call.runs * call.nodes, real)
    norms_next = array_at(call.norms_next, call.runs * call.nodes, real)
    alphas = array_at(call.alphas, call.runs * call.nodes, real)
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
    itemsize = np.uint64(array_at(address, 1, real).itemsize)
    return array_at(address + np.uint64(place) * size * itemsize, size, real)


@compiled
def _forward_runs(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    """All steps forward; a task takes one run through all of them, so that its rows stay in the cache."""
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    size, nodes = call.runs * stride, call.runs * call.nodes
    X = array_at(call.X, size, real)
    buffers = _buffers(call, real)
    more, lo, _, run = _next_task(call, call.runs)
    while more:
        p, m, omega, eps2, _ = _scalars(call, run, real)
        node, row = run * call.nodes, run * stride
        graph, counts = _graph_of(call, run, real, index)
        scale_rows(
            lo, _within(counts, call.steps, call.nodes), node, row, graph[3], graph[4], X,
            _at(call.Y, 0, size, real), _at(call.norms, 0, nodes, real), call.blocks, width,
        )  # fmt: skip
        for k in range(call.steps):
            following = k + ONE
            left = call.steps - following
            last = left == 0
            Y = _at(call.Y, k % call.states, size, real)
            out = array_at(call.out, size, real) if last else _at(call.Y, following % call.states, size, real)
            blank_rows(
                _within(counts, left + ONE, call.nodes), _within(counts, left + TWO, call.nodes), row,
                graph[4], Y, call.blocks, width,
            )  # fmt: skip
            forward_rows(
                lo, _within(counts, left, call.nodes), node, row, graph, X, Y,
                _at(call.norms, k % TWO, nodes, real), out, _at(call.norms, following % TWO, nodes, real),
                _at(call.alphas, k % call.kept_alphas, nodes, real),
                (p, m, omega, eps2, last), buffers, call.blocks, width, rule,
            )  # fmt: skip
        more, lo, _, run = _next_task(call, call.runs)


@inlined
def _node_arrays(call: Any, real: Any) -> Any:
    size = call.runs * call.nodes
    return (
        array_at(call.u, size, real),
        array_at(call.t, size, real),
        array_at(call.pull, size, real),
        array_at(call.norms, size, real),
        array_at(call.alphas, size, real),
    )


@compiled
def _prepare_tasks(call: Any, width: Any, real: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    size = call.runs * stride
    s, unsorted = array_at(call.s, call.nodes, real), array_at(call.indptr, 0, np.uint32)
    Y = array_at(call.Y, size, real)
    F_next = array_at(call.F_next, size, real)
    Y_first = array_at(call.Y_first, size, real)
    G = array_at(call.G, size, real)
    gX = array_at(call.gX, size, real)
    YZ = array_at(call.YZ, np.uint64(2) * size, real)
    gm = array_at(call.gm, call.runs * call.nodes, np.float64)
    u, t, pull, norms, alphas = _node_arrays(call, real)
    more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        prepare_rows(
            lo, hi, run * call.nodes, run * stride, s, unsorted, alphas, Y, F_next, Y_first, G, YZ, u,
            t, pull, norms, gX, gm, scalars, call.only_x != 0, call.blocks, width,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)


@compiled
def _backward_tasks(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    YZ = array_at(call.YZ, np.uint64(2) * call.runs * stride, real)
    G = array_at(call.G, call.runs * stride, real)
    yf = array_at(call.yf, call.runs * call.nodes, real)
    gp = array_at(call.gp, call.runs * call.nodes, np.float64)
    u, _, _, norms, _ = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)
    while more:
        scalars = _scalars(call, run, real)
        backward_rows(
            lo, hi, run * call.nodes, run * stride, graph, YZ, u, norms, G,
            yf, gp, scalars, buffers, call.only_x != 0, call.blocks, width, rule,
        )  # fmt: skip
        more, lo, hi, run = _next_task(call, call.chunks_per_run * call.runs)


@compiled
def _detached_tasks(call: Any, width: Any, real: Any, index: Any, rule: Any) -> None:
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    graph = _graph(call, real, index)
    Y = array_at(call.Y, call.runs * stride, real)
    YZ = array_at(call.YZ, np.uint64(2) * call.runs * stride, real)
    G = array_at(call.G, call.runs * stride, real)
    yf = array_at(call.yf, call.runs * call.nodes, real)
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
    YZ = array_at(call.YZ, np.uint64(2) * call.runs * stride, real)
    yf = array_at(call.yf, call.runs * call.nodes, real)
    gw = array_at(call.gw, call.entries, real)
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
def _backward_runs(call: Any, width: Any, real: Any, index: Any, rule: Any, detached: Any) -> None:
    """All steps backward, a run at a time; ``detached`` is empty unless ψ counts as a constant."""
    stride = call.nodes * call.blocks * np.uint64(BLOCK * len(width))
    size, nodes = call.runs * stride, call.runs * call.nodes
    Y_first = array_at(call.Y, size, real)
    G = array_at(call.G, size, real)
    gX = array_at(call.gX, size, real)
    YZ = array_at(call.YZ, np.uint64(2) * size, real)
    yf = array_at(call.yf, nodes, real)
    gm = array_at(call.gm, nodes, np.float64)
    gp = array_at(call.gp, nodes, np.float64)
    u, t, pull, norms, _ = _node_arrays(call, real)
    buffers = _buffers(call, real)
    more, lo, _, run = _next_task(call, call.runs)
    while more:
        p, m, omega, eps2, want_p = _scalars(call, run, real)
        node, row = run * call.nodes, run * stride
        graph, counts = _graph_of(call, run, real, index)
        for back in range(call.steps):
            k = call.steps - ONE - back
            Y = _at(call.Y, k, size, real)
            raw = back == np.uint64(0)
            F_next = array_at(call.F_next, size, real) if raw else _at(call.Y, k + ONE, size, real)
            reached = _within(counts, back, call.nodes)
            hi = _within(counts, back + ONE, call.nodes)
            prepare_rows(
                lo, reached, node, row, graph[3], graph[4], _at(call.alphas, k, nodes, real), Y, F_next,
                Y_first, G, YZ, u, t, pull, norms, gX, gm, (p, m, omega, eps2, raw), call.only_x != 0,
                call.blocks, width,
            )  # fmt: skip
            rim_rows(
                reached, _within(counts, back + TWO, call.nodes), node, row, graph[4], Y, YZ, u, norms,
                call.blocks, width,
            )  # fmt: skip
            scalars = (p, m, omega, eps2, want_p)
            if len(detached) > 0:
                detached_rows(
                    lo, hi, node, row, graph, Y, YZ, norms, G, yf, scalars, buffers, call.blocks, width, rule
                )
            else:
                backward_rows(
                    lo, hi, node, row, graph, YZ, u, norms, G, yf, gp, scalars, buffers, call.only_x != 0,
                    call.blocks, width, rule,
                )  # fmt: skip
        more, lo, _, run = _next_task(call, call.runs)
