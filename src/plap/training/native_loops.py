"""The hot loops of stacked training as machine code: sparse products, dropout masks, the head, Adam.

PyTorch's own threads take tasks from a counter. A loop is given one array of int64: slot 0 is the counter,
the rest are sizes and addresses.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numba import carray
from numba.extending import register_jitable

from plap.kernels.fused import calling
from plap.kernels.fused.calling import BLOCK
from plap.kernels.fused.jit import array_at, compiled, next_ticket, source_stamp, task_loop
from plap.kernels.fused.lanes import add_scaled, dot, load, splat, store
from plap.training.config import ADAM_BETA1, ADAM_BETA2, ADAM_EPS

__all__ = [
    "BLOCK",
    "GOLDEN",
    "adam_loop",
    "head_loop",
    "launch",
    "mask_key",
    "mask_loop",
    "product_loop",
    "workers",
]

_GRAIN = 100_000
"""Multiplications that are worth a thread of their own."""

Loop = tuple[calling.TaskLoop, int]


def launch(loop: Loop, work: int, *arguments: int) -> None:
    """Run ``loop`` on as many threads as ``work`` is worth, with the counter and ``arguments``."""
    call = (ctypes.c_int64 * (len(arguments) + 1))(0, *arguments)
    calling.run(*loop, ctypes.addressof(call), calling.count(work, _GRAIN))


def workers(work: int) -> int:
    """How many threads :func:`launch` would use."""
    return calling.count(work, _GRAIN)


def _stamp() -> str:
    """A digest of everything outside this file that is compiled into a loop."""
    return f"{source_stamp()} {ADAM_BETA1} {ADAM_BETA2} {ADAM_EPS}"


@compiled
def _arguments(address: Any, count: Any) -> Any:
    """The array that a loop was given."""
    return carray(address, (count,), np.int64)


@compiled
def _next_task(call: Any) -> Any:
    """The number of the next task for this thread."""
    return next_ticket(call)


@compiled
def _rows(
    first: Any,
    end: Any,
    indptr: Any,
    indices: Any,
    values: Any,
    dense: Any,
    out: Any,
    C: Any,
    at: Any,
    zero: Any,
    width: Any,
) -> None:
    """Channels ``at`` to ``at`` + lanes of the rows ``first`` to ``end``."""
    for row in range(first, end):
        total = splat(zero, width)
        for entry in range(indptr[row], indptr[row + 1]):
            total = add_scaled(total, values[entry], load(dense, np.uint64(indices[entry] * C + at), width))
        store(out, np.uint64(row * C + at), total)


@cache
def product_loop(double: bool) -> Loop:
    """A CSR matrix times the dense matrix of each run; a task is a piece of the rows of one run."""
    real = np.float64 if double else np.float32
    stamp = _stamp()

    def multiply(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = _arguments(address, 12)
        runs, rows, columns, C, pieces, entries = call[1], call[2], call[3], call[4], call[5], call[6]
        indptr = array_at(call[7], rows + 1, np.int64)
        indices = array_at(call[8], entries, np.int64)
        values = array_at(call[9], entries, real)
        task = _next_task(call)
        while task < runs * pieces:
            run, piece = task // pieces, task % pieces
            first, end = rows * piece // pieces, rows * (piece + 1) // pieces
            dense = array_at(call[10] + run * columns * C * values.itemsize, columns * C, real)
            out = array_at(call[11] + run * rows * C * values.itemsize, rows * C, real)
            wide = C // (2 * BLOCK)
            for block in range(wide):
                _rows(first, end, indptr, indices, values, dense, out, C, 2 * BLOCK * block, real(0), (0, 0))
            if 2 * BLOCK * wide < C:
                _rows(first, end, indptr, indices, values, dense, out, C, 2 * BLOCK * wide, real(0), (0,))
            task = _next_task(call)

    return task_loop(multiply)


GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


@register_jitable  # type: ignore[untyped-decorator]
def scramble(z: Any) -> Any:
    """SplitMix64's output function, of one number or of an array; uint64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


@register_jitable  # type: ignore[untyped-decorator]
def mask_key(seed: Any, epoch: Any, layer: Any) -> Any:
    """A 64-bit key by hashing the seed, uint64, one number or an array, then the epoch, then the layer."""
    key = scramble(seed + np.uint64(GOLDEN))
    key = scramble(key ^ np.uint64(epoch + 1))
    return scramble(key ^ np.uint64((layer + 1) << 32))


@compiled
def _fill(key: Any, threshold: Any, scale: Any, out: Any) -> None:
    zero = scale - scale
    quads = out.size // 4
    for quad in range(quads):
        bits = scramble(key + np.uint64(quad + 1) * np.uint64(GOLDEN))
        for lane in range(4):
            draw = (bits >> np.uint64(16 * lane)) & np.uint64(0xFFFF)
            out[4 * quad + lane] = scale if draw >= threshold else zero
    state = scramble(key + np.uint64(quads + 1) * np.uint64(GOLDEN))
    for at in range(4 * quads, out.size):
        draw = (state >> np.uint64(16 * (at - 4 * quads))) & np.uint64(0xFFFF)
        out[at] = scale if draw >= threshold else zero


@cache
def mask_loop(double: bool) -> Loop:
    """Dropout masks; a task is one run."""
    real = np.float64 if double else np.float32
    stamp = _stamp()

    def fill_masks(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = _arguments(address, 8)
        runs, size, epoch, layer = call[1], call[2], call[3], call[4]
        seeds = array_at(call[5], runs, np.uint64)
        rates = array_at(call[6], runs, real)
        run = _next_task(call)
        while run < runs:
            rate = np.float64(rates[run])
            threshold = np.uint64(np.rint(rate * 65536.0))
            out = array_at(call[7] + run * size * rates.itemsize, size, real)
            _fill(mask_key(seeds[run], epoch, layer), threshold, real(1.0 / (1.0 - rate)), out)
            run = _next_task(call)

    return task_loop(fill_masks)


@compiled
def _update(
    value: Any, gradient: Any, first: Any, second: Any, decay: Any, size: Any, root: Any, real: Any
) -> None:
    decay, size, root, eps = real(decay), real(size), real(root), real(ADAM_EPS)
    lag1, lag2, keep2 = real(1 - ADAM_BETA1), real(1 - ADAM_BETA2), real(ADAM_BETA2)
    for k in range(value.size):
        g = gradient[k] + decay * value[k]
        m = first[k] + lag1 * (g - first[k])
        v = keep2 * second[k] + lag2 * g * g
        first[k] = m
        second[k] = v
        value[k] -= size * (m / (np.sqrt(v) / root + eps))


@cache
def adam_loop(double: bool) -> Loop:
    """A step of Adam on all parameters; a task is one run, and takes no step if a gradient is not finite.

    A parameter is five numbers: the addresses of value, gradient and moments, and its size in one run.
    """
    real = np.float64 if double else np.float32
    width = 8 if double else 4
    stamp = _stamp()

    def update(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = _arguments(address, 6)
        runs, count = call[1], call[2]
        table = array_at(call[3], 5 * count, np.int64)
        scalars = array_at(call[4], 3 * runs, np.float64)
        taken = array_at(call[5], runs, np.uint8)
        run = _next_task(call)
        while run < runs:
            total = 0.0
            for k in range(count):
                size = table[5 * k + 4]
                total += _sum(array_at(table[5 * k + 1] + run * size * width, size, real))
            taken[run] = np.isfinite(total)
            if taken[run]:
                decay, step, root = scalars[3 * run], scalars[3 * run + 1], scalars[3 * run + 2]
                for k in range(count):
                    size = table[5 * k + 4]
                    at = run * size * width
                    _update(
                        array_at(table[5 * k] + at, size, real), array_at(table[5 * k + 1] + at, size, real),
                        array_at(table[5 * k + 2] + at, size, real),
                        array_at(table[5 * k + 3] + at, size, real),
                        decay, step, root, real,
                    )  # fmt: skip
            run = _next_task(call)

    return task_loop(update)


@compiled
def _sum(values: Any) -> Any:
    total = 0.0
    for k in range(values.size):
        total += values[k]
    return total


@compiled
def _classify(
    rows: Any, labels: Any, weights: Any, states: Any, C: Any, theta: Any, bias: Any, logits: Any,
    slopes: Any, of_theta: Any, of_bias: Any, factor: Any, training: Any, width: Any,
) -> Any:  # fmt: skip
    """Logits and the sum of weighted cross-entropies of one run; in training also what depends on them.

    ``slopes`` has ``factor`` times the gradient of the states added to it, a row per node as in ``states``.
    """
    L, blocks = bias.size, C // BLOCK
    zero = bias.dtype.type(0)
    loss = 0.0
    if training:
        of_theta[:] = zero
        of_bias[:] = zero
    for t in range(rows.size):
        at, place, label, weight = rows[t] * C, t * L, labels[t], weights[t]
        for k in range(L):
            value = bias[k]
            for b in range(blocks):
                z = load(states, np.uint64(at + b * BLOCK), width)
                value += dot(z, load(theta, np.uint64(k * C + b * BLOCK), width))
            logits[place + k] = value
        top = logits[place]
        for k in range(1, L):
            top = max(top, logits[place + k])
        chosen = logits[place + label]
        if not training:
            total = zero
            for k in range(L):
                total += np.exp(logits[place + k] - top)
            loss += weight * (np.log(total) + top - chosen)
            continue
        total = zero
        for k in range(L):
            logits[place + k] = np.exp(logits[place + k] - top)  # nobody looks at logits of training nodes
            total += logits[place + k]
        loss += weight * (np.log(total) + top - chosen)
        for k in range(L):
            slope = weight * (logits[place + k] / total - (1 if k == label else 0))
            logits[place + k] = slope
            of_bias[k] += slope
        for b in range(blocks):
            here = np.uint64(at + b * BLOCK)
            z, back = load(states, here, width), load(slopes, here, width)
            for k in range(L):
                there, slope = np.uint64(k * C + b * BLOCK), logits[place + k]
                store(of_theta, there, add_scaled(load(of_theta, there, width), slope, z))
                back = add_scaled(back, factor * slope, load(theta, there, width))
            store(slopes, here, back)
    return loss


@cache
def head_loop(double: bool) -> Loop:
    """Linear map, softmax and cross-entropy at some rows of every run, and the way back through them.

    Rows of states and of the transposed linear map have the same number of channels, in whole blocks.
    """
    real = np.float64 if double else np.float32
    size = 8 if double else 4
    stamp = _stamp()

    def classify(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = _arguments(address, 19)
        runs, nodes, C, L, T, training = call[1], call[2], call[3], call[4], call[5], call[6]
        factors, losses = array_at(call[17], runs, real), array_at(call[18], runs, real)
        run = _next_task(call)
        while run < runs:
            losses[run] = _classify(
                array_at(call[7] + run * T * 8, T, np.int64),
                array_at(call[8] + run * T * 8, T, np.int64),
                array_at(call[9] + run * T * size, T, real),
                array_at(call[10] + run * nodes * C * size, nodes * C, real),
                C,
                array_at(call[11] + run * C * L * size, C * L, real),
                array_at(call[12] + run * L * size, L, real),
                array_at(call[13] + run * T * L * size, T * L, real),
                array_at(call[14] + run * nodes * C * size, nodes * C, real),
                array_at(call[15] + run * C * L * size, C * L, real),
                array_at(call[16] + run * L * size, L, real),
                factors[run],
                training != 0,
                (0,),
            )
            run = _next_task(call)

    return task_loop(classify)
