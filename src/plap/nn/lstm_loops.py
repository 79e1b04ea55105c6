"""An LSTM's cell as machine code, but for its sigmoids, which PyTorch evaluates; tanh(x) = 2 σ(2 x) − 1.

Gates are i, g, o and, unless the state before is 0, f, which the input does without: [rows, 3 U] or
[rows, 4 U]. All other arrays are [rows, U], U a multiple of ``BLOCK``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import carray

from plap.kernels.fused import calling
from plap.kernels.fused.calling import BLOCK
from plap.kernels.fused.jit import (
    array_at,
    compiled,
    next_ticket,
    source_stamp,
    task_loop,
)
from plap.kernels.fused.lanes import add, load, splat, store, subtract, times

__all__ = ["BLOCK", "launch"]

_GRAIN = 20_000
"""Blocks of a cell that are worth a thread of their own."""
_AT_A_TIME = 256
"""Rows of a task."""
_STEPS = ("state", "output", "slopes")


def launch(step: str, double: bool, rows: int, units: int, *addresses: int) -> None:
    """Run a step on as many threads as it is worth; addresses in the order in which it names its arrays."""
    call = np.zeros(16, dtype=np.int64)
    call[1 : 3 + len(addresses)] = [rows, units, *addresses]
    calling.run(*_loop(step, double), call.ctypes.data, calling.count(rows * units // BLOCK, _GRAIN))


@cache
def _loop(step: str, double: bool) -> tuple[calling.TaskLoop, int]:
    real = np.float64 if double else np.float32
    which = _STEPS.index(step)
    stamp = source_stamp()

    def cell(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = carray(address, (16,), np.int64)
        first = next_ticket(call) * _AT_A_TIME
        while first < call[1]:
            end = min(first + _AT_A_TIME, call[1])
            if which == 0:
                _state(call, first, end, real)
            elif which == 1:
                _output(call, first, end, real)
            else:
                _slopes(call, first, end, real)
            first = next_ticket(call) * _AT_A_TIME

    return task_loop(cell)


@compiled
def _state(call: Any, first: Any, end: Any, real: Any) -> None:
    """c ← f c + i (2 g − 1).

    Arrays: gates after their sigmoids; the state before (or 0); the state after, and twice that.
    """
    U, begun = call[2], call[4] != 0
    stride = 4 * U if begun else 3 * U
    gates = array_at(call[3], call[1] * stride, real)
    before, after = array_at(call[4], call[1] * U, real), array_at(call[5], call[1] * U, real)
    twice = array_at(call[6], call[1] * U, real)
    one = splat(real(1), (0,))
    for row in range(first, end):
        for k in range(0, U, BLOCK):
            at, own = row * stride + k, np.uint64(row * U + k)
            g = load(gates, np.uint64(at + U), (0,))
            state = times(load(gates, np.uint64(at), (0,)), subtract(add(g, g), one))
            if begun:
                f = load(gates, np.uint64(at + 3 * U), (0,))
                state = add(state, times(f, load(before, own, (0,))))
            store(after, own, state)
            store(twice, own, add(state, state))


@compiled
def _output(call: Any, first: Any, end: Any, real: Any) -> None:
    """h ← o tanh(c).

    Arrays: gates; the state before (or 0); the sigmoid of twice the state after; the output.
    """
    U = call[2]
    stride = 4 * U if call[4] != 0 else 3 * U
    gates = array_at(call[3], call[1] * stride, real)
    half, output = array_at(call[5], call[1] * U, real), array_at(call[6], call[1] * U, real)
    one = splat(real(1), (0,))
    for row in range(first, end):
        for k in range(0, U, BLOCK):
            own = np.uint64(row * U + k)
            s = load(half, own, (0,))
            o = load(gates, np.uint64(row * stride + 2 * U + k), (0,))
            store(output, own, times(o, subtract(add(s, s), one)))


@compiled
def _through(slope: Any, gate: Any, one: Any) -> Any:
    """The gradient in front of a sigmoid."""
    return times(slope, times(gate, subtract(one, gate)))


@compiled
def _slopes(call: Any, first: Any, end: Any, real: Any) -> None:
    """The gradients of a cell.

    Arrays: gates, the state before (or 0), the sigmoid of twice the state after; gradients of the output and
    of the state after (0: none); gradients in front of the gates and of the state before.
    """
    U, begun, has_output, goes_on = call[2], call[4] != 0, call[6] != 0, call[7] != 0
    stride = 4 * U if begun else 3 * U
    gates, of_gates = array_at(call[3], call[1] * stride, real), array_at(call[8], call[1] * stride, real)
    before, half = array_at(call[4], call[1] * U, real), array_at(call[5], call[1] * U, real)
    of_output, of_after = array_at(call[6], call[1] * U, real), array_at(call[7], call[1] * U, real)
    of_before = array_at(call[9], call[1] * U, real)
    one, zero = splat(real(1), (0,)), splat(real(0), (0,))
    for row in range(first, end):
        for k in range(0, U, BLOCK):
            at, own = row * stride + k, np.uint64(row * U + k)
            i, g = load(gates, np.uint64(at), (0,)), load(gates, np.uint64(at + U), (0,))
            o, s = load(gates, np.uint64(at + 2 * U), (0,)), load(half, own, (0,))
            t = subtract(add(s, s), one)
            h = load(of_output, own, (0,)) if has_output else zero
            c = times(times(h, o), subtract(one, times(t, t)))
            if goes_on:
                c = add(c, load(of_after, own, (0,)))
            store(of_gates, np.uint64(at), _through(times(c, subtract(add(g, g), one)), i, one))
            store(of_gates, np.uint64(at + U), _through(times(add(c, c), i), g, one))
            store(of_gates, np.uint64(at + 2 * U), _through(times(h, t), o, one))
            if begun:
                f = load(gates, np.uint64(at + 3 * U), (0,))
                store(of_gates, np.uint64(at + 3 * U), _through(times(c, load(before, own, (0,))), f, one))
                store(of_before, own, times(c, f))
