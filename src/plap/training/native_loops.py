"""The three hot loops of stacked training, compiled: sparse products, dropout masks, Adam."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from plap.kernels.fused.jit import compiled
from plap.kernels.fused.lanes import add_scaled, load, splat, store
from plap.kernels.fused.layout import BLOCK
from plap.training.adam import BETA1, BETA2, EPS
from plap.training.masks import GOLDEN, scramble
from plap.training.native import Loop, arguments_of, array_at, next_task, task_loop

__all__ = ["BLOCK", "adam_loop", "mask_loop", "product_loop"]


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

    def multiply(address: Any) -> None:
        call = arguments_of(address, 12)
        runs, rows, columns, C, pieces, entries = call[1], call[2], call[3], call[4], call[5], call[6]
        indptr = array_at(call[7], rows + 1, np.int64)
        indices = array_at(call[8], entries, np.int64)
        values = array_at(call[9], entries, real)
        task = next_task(call)
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
            task = next_task(call)

    return task_loop(multiply)


_scramble = compiled(scramble)


@compiled
def _fill(key: Any, threshold: Any, scale: Any, out: Any) -> None:
    zero = scale - scale
    quads = out.size // 4
    for quad in range(quads):
        bits = _scramble(key + np.uint64(quad + 1) * np.uint64(GOLDEN))
        for lane in range(4):
            draw = (bits >> np.uint64(16 * lane)) & np.uint64(0xFFFF)
            out[4 * quad + lane] = scale if draw >= threshold else zero
    state = _scramble(key + np.uint64(quads + 1) * np.uint64(GOLDEN))
    for at in range(4 * quads, out.size):
        draw = (state >> np.uint64(16 * (at - 4 * quads))) & np.uint64(0xFFFF)
        out[at] = scale if draw >= threshold else zero


@cache
def mask_loop(double: bool) -> Loop:
    """Dropout masks; a task is one run."""
    real = np.float64 if double else np.float32

    def fill_masks(address: Any) -> None:
        call = arguments_of(address, 7)
        runs, size = call[1], call[2]
        keys = array_at(call[3], runs, np.uint64)
        thresholds = array_at(call[4], runs, np.uint64)
        scales = array_at(call[5], runs, real)
        run = next_task(call)
        while run < runs:
            out = array_at(call[6] + run * size * scales.itemsize, size, real)
            _fill(keys[run], thresholds[run], scales[run], out)
            run = next_task(call)

    return task_loop(fill_masks)


@compiled
def _update(
    value: Any, gradient: Any, first: Any, second: Any, decay: Any, size: Any, root: Any, real: Any
) -> None:
    decay, size, root, eps = real(decay), real(size), real(root), real(EPS)
    lag1, lag2, keep2 = real(1 - BETA1), real(1 - BETA2), real(BETA2)
    for k in range(value.size):
        g = gradient[k] + decay * value[k]
        m = first[k] + lag1 * (g - first[k])
        v = keep2 * second[k] + lag2 * g * g
        first[k] = m
        second[k] = v
        value[k] -= size * (m / (np.sqrt(v) / root + eps))


@cache
def adam_loop(double: bool) -> Loop:
    """A step of Adam on one parameter; a task is one run."""
    real = np.float64 if double else np.float32
    width = 8 if double else 4

    def update(address: Any) -> None:
        call = arguments_of(address, 8)
        runs, size = call[1], call[2]
        scalars = array_at(call[7], 3 * runs, np.float64)
        run = next_task(call)
        while run < runs:
            at = run * size * width
            decay, step, root = scalars[3 * run], scalars[3 * run + 1], scalars[3 * run + 2]
            if root > 0:
                value, gradient = array_at(call[3] + at, size, real), array_at(call[4] + at, size, real)
                first, second = array_at(call[5] + at, size, real), array_at(call[6] + at, size, real)
                _update(value, gradient, first, second, decay, step, root, real)
            run = next_task(call)

    return task_loop(update)
