"""Normalisation, ReLU, dropout and a residual as machine code, for many runs at once.

Of each run: states and gradients [N, C], C a multiple of ``BLOCK``. A task is a chunk of ``CHUNK`` rows of
one run. Sums over nodes are made chunk by chunk, so that they do not depend on the number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import carray

from plap.kernels.fused import calling
from plap.kernels.fused.calling import BLOCK
from plap.kernels.fused.jit import (
    Codegen,
    array_at,
    compiled,
    instruction,
    next_ticket,
    of_run,
    source_stamp,
    task_loop,
)
from plap.kernels.fused.lanes import add, dot, load, scale, splat, store, subtract, times

CHUNK = 128
"""Rows of a task: 64 channels of them fit into the nearest cache."""
_GRAIN = 100_000
"""Numbers that are worth a thread of their own."""
_STEPS = ("moments", "columns", "sums", "columns_back", "rows", "rows_back")


def chunks_of(nodes: int) -> int:
    """Tasks per run."""
    return -(-nodes // CHUNK)


def launch(step: str, double: bool, sizes: tuple[int, int, int], *addresses: int) -> None:
    """Run a step on as many threads as it is worth.

    Parameters
    ----------
    step : {"moments", "columns", "sums", "columns_back", "rows", "rows_back"}
    double : bool
        Whether numbers are float64.
    sizes : R, N, C
    *addresses : int
        Of the arrays, in the order in which the step's function names them.
    """
    runs, nodes, channels = sizes
    call = np.zeros(16, dtype=np.int64)
    call[1 : 5 + len(addresses)] = [*sizes, chunks_of(nodes), *addresses]
    calling.run(*_loop(step, double), call.ctypes.data, calling.count(runs * nodes * channels, _GRAIN))


@cache
def _loop(step: str, double: bool) -> tuple[calling.TaskLoop, int]:
    """A step as a C function that takes tasks, and its address."""
    real = np.float64 if double else np.float32
    which = _STEPS.index(step)
    stamp = source_stamp()

    def activate(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = carray(address, (16,), np.int64)
        runs, nodes, chunks = call[1], call[2], call[4]
        task = next_ticket(call)
        while task < runs * chunks:
            run, chunk = task // chunks, task % chunks
            first, end = chunk * CHUNK, min(nodes, (chunk + 1) * CHUNK)
            if which == 0:
                _moments(call, run, chunk, first, end, real)
            elif which == 1:
                _columns(call, run, first, end, real)
            elif which == 2:
                _sums(call, run, chunk, first, end, real)
            elif which == 3:
                _columns_back(call, run, first, end, real)
            elif which == 4:
                _rows(call, run, first, end, real)
            else:
                _rows_back(call, run, chunk, first, end, real)
            task = next_ticket(call)

    return task_loop(activate)


@instruction
def _where_positive(typingctx: Any, z: Any, a: Any) -> tuple[Any, Codegen]:
    """a, but 0 where z ≤ 0; lane by lane. What is not a number counts as positive, as it does for PyTorch."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = context.get_value_type(z)(None)
        return builder.select(builder.fcmp_ordered("<=", args[0], zero), zero, args[1])

    return a(z, a), codegen


@compiled
def _moments(call: Any, run: Any, chunk: Any, first: Any, end: Any, real: Any) -> None:
    """The mean of every column over a chunk, and the sum of the squared distances from it.

    Arrays: states; both [chunks, 2, C].
    """
    N, C, chunks = call[2], call[3], call[4]
    x, out = of_run(call[5], run, N * C, real), of_run(call[6], run, chunks * 2 * C, real)
    wide = C - C % (2 * BLOCK)
    for c in range(0, wide, 2 * BLOCK):
        _moments_of_columns(x, out, c, chunk, first, end, C, real, (0, 0))
    if wide < C:
        _moments_of_columns(x, out, wide, chunk, first, end, C, real, (0,))


@compiled
def _moments_of_columns(
    x: Any, out: Any, c: Any, chunk: Any, first: Any, end: Any, C: Any, real: Any, width: Any
) -> None:
    total, squares = splat(real(0), width), splat(real(0), width)
    for row in range(first, end):
        total = add(total, load(x, np.uint64(row * C + c), width))
    mean = scale(real(1) / real(end - first), total)
    for row in range(first, end):
        apart = subtract(load(x, np.uint64(row * C + c), width), mean)
        squares = add(squares, times(apart, apart))
    store(out, np.uint64(2 * chunk * C + c), mean)
    store(out, np.uint64((2 * chunk + 1) * C + c), squares)


@compiled
def _columns(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """mask · ReLU(factor · (x − centre) + shift) + added, the middle three by column.

    Arrays: states; centre, factor, shift [3, C]; mask and added (or 0); result.
    """
    N, C = call[2], call[3]
    x, affine = of_run(call[5], run, N * C, real), of_run(call[6], run, 3 * C, real)
    mask, added = of_run(call[7], run, N * C, real), of_run(call[8], run, N * C, real)
    masked, residual = call[7] != 0, call[8] != 0
    out = of_run(call[9], run, N * C, real)
    for row in range(first, end):
        for c in range(0, C, BLOCK):
            at = np.uint64(row * C + c)
            y = subtract(load(x, at, (0,)), load(affine, np.uint64(c), (0,)))
            y = add(times(y, load(affine, np.uint64(C + c), (0,))), load(affine, np.uint64(2 * C + c), (0,)))
            y = _where_positive(y, y)
            if masked:
                y = times(y, load(mask, at, (0,)))
            if residual:
                y = add(y, load(added, at, (0,)))
            store(out, at, y)


@compiled
def _sums(call: Any, run: Any, chunk: Any, first: Any, end: Any, real: Any) -> None:
    """Sums over a chunk of the gradient before ReLU, and of its products with x − centre.

    Arrays: states; centre, factor, shift [3, C]; mask (or 0); gradient; both sums [chunks, 2, C].
    """
    N, C, chunks = call[2], call[3], call[4]
    x, affine = of_run(call[5], run, N * C, real), of_run(call[6], run, 3 * C, real)
    mask, masked = of_run(call[7], run, N * C, real), call[7] != 0
    grad, out = of_run(call[8], run, N * C, real), of_run(call[9], run, chunks * 2 * C, real)
    wide = C - C % (2 * BLOCK)
    for c in range(0, wide, 2 * BLOCK):
        _sums_of_columns(x, affine, mask, masked, grad, out, c, chunk, first, end, C, real, (0, 0))
    if wide < C:
        _sums_of_columns(x, affine, mask, masked, grad, out, wide, chunk, first, end, C, real, (0,))


@compiled
def _sums_of_columns(
    x: Any, affine: Any, mask: Any, masked: Any, grad: Any, out: Any, c: Any, chunk: Any, first: Any,
    end: Any, C: Any, real: Any, width: Any,
) -> None:  # fmt: skip
    centre = load(affine, np.uint64(c), width)
    factor, shift = load(affine, np.uint64(C + c), width), load(affine, np.uint64(2 * C + c), width)
    total, products = splat(real(0), width), splat(real(0), width)
    for row in range(first, end):
        at = np.uint64(row * C + c)
        g, apart = load(grad, at, width), subtract(load(x, at, width), centre)
        if masked:
            g = times(g, load(mask, at, width))
        g = _where_positive(add(times(apart, factor), shift), g)
        total, products = add(total, g), add(products, times(g, apart))
    store(out, np.uint64(2 * chunk * C + c), total)
    store(out, np.uint64((2 * chunk + 1) * C + c), products)


@compiled
def _columns_back(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """factor · (gradient before ReLU) − constant − slope · (x − centre): the gradient of the states.

    Arrays: states; centre, factor, shift [3, C]; mask (or 0); gradient; constant and slope [2, C] (or 0);
    result.
    """
    N, C = call[2], call[3]
    x, affine = of_run(call[5], run, N * C, real), of_run(call[6], run, 3 * C, real)
    mask, masked = of_run(call[7], run, N * C, real), call[7] != 0
    grad, line = of_run(call[8], run, N * C, real), of_run(call[9], run, 2 * C, real)
    sloped, out = call[9] != 0, of_run(call[10], run, N * C, real)
    for row in range(first, end):
        for c in range(0, C, BLOCK):
            at = np.uint64(row * C + c)
            g, apart = load(grad, at, (0,)), subtract(load(x, at, (0,)), load(affine, np.uint64(c), (0,)))
            factor = load(affine, np.uint64(C + c), (0,))
            if masked:
                g = times(g, load(mask, at, (0,)))
            g = _where_positive(add(times(apart, factor), load(affine, np.uint64(2 * C + c), (0,))), g)
            g = times(factor, g)
            if sloped:
                g = subtract(g, load(line, np.uint64(c), (0,)))
                g = subtract(g, times(apart, load(line, np.uint64(C + c), (0,))))
            store(out, at, g)


@compiled
def _rows(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """mask · ReLU(weight · (x − mean) · root + bias) + added, mean and root by row.

    Arrays: states; weight, bias [2, C]; mask and added (or 0); ε, float64; mean and root [N, 2]; result.
    """
    N, C = call[2], call[3]
    x, affine = of_run(call[5], run, N * C, real), of_run(call[6], run, 2 * C, real)
    mask, added = of_run(call[7], run, N * C, real), of_run(call[8], run, N * C, real)
    masked, residual = call[7] != 0, call[8] != 0
    eps = real(array_at(call[9], 1, np.float64)[0])
    kept, out = of_run(call[10], run, N * 2, real), of_run(call[11], run, N * C, real)
    share, ones = real(1) / real(C), splat(real(1), (0,))
    for row in range(first, end):
        mean = real(0)
        for c in range(0, C, BLOCK):
            mean += dot(load(x, np.uint64(row * C + c), (0,)), ones)
        mean *= share
        centre = splat(mean, (0,))
        square = real(0)
        for c in range(0, C, BLOCK):
            apart = subtract(load(x, np.uint64(row * C + c), (0,)), centre)
            square += dot(apart, apart)
        root = real(1) / np.sqrt(square * share + eps)
        kept[np.uint64(2 * row)], kept[np.uint64(2 * row + 1)] = mean, root
        for c in range(0, C, BLOCK):
            at = np.uint64(row * C + c)
            y = scale(root, subtract(load(x, at, (0,)), centre))
            y = add(times(y, load(affine, np.uint64(c), (0,))), load(affine, np.uint64(C + c), (0,)))
            y = _where_positive(y, y)
            if masked:
                y = times(y, load(mask, at, (0,)))
            if residual:
                y = add(y, load(added, at, (0,)))
            store(out, at, y)


@compiled
def _rows_back(call: Any, run: Any, chunk: Any, first: Any, end: Any, real: Any) -> None:
    """The gradient of the states, and sums over a chunk for those of bias and weight.

    Arrays: states; weight, bias [2, C]; mask (or 0); mean and root [N, 2]; gradient; sums [chunks, 2, C],
    which begin at 0; result.
    """
    N, C, chunks = call[2], call[3], call[4]
    x, affine = of_run(call[5], run, N * C, real), of_run(call[6], run, 2 * C, real)
    mask, masked = of_run(call[7], run, N * C, real), call[7] != 0
    kept, grad = of_run(call[8], run, N * 2, real), of_run(call[9], run, N * C, real)
    sums, out = of_run(call[10], run, chunks * 2 * C, real), of_run(call[11], run, N * C, real)
    share, ones = real(1) / real(C), splat(real(1), (0,))
    for row in range(first, end):
        centre, root = splat(kept[np.uint64(2 * row)], (0,)), kept[np.uint64(2 * row + 1)]
        mean, product = real(0), real(0)
        for c in range(0, C, BLOCK):
            at = np.uint64(row * C + c)
            weight, unit = load(affine, np.uint64(c), (0,)), subtract(load(x, at, (0,)), centre)
            unit, g = scale(root, unit), load(grad, at, (0,))
            if masked:
                g = times(g, load(mask, at, (0,)))
            g = _where_positive(add(times(unit, weight), load(affine, np.uint64(C + c), (0,))), g)
            total, into = np.uint64(2 * chunk * C + c), np.uint64((2 * chunk + 1) * C + c)
            store(sums, total, add(load(sums, total, (0,)), g))
            store(sums, into, add(load(sums, into, (0,)), times(g, unit)))
            g = times(g, weight)
            store(out, at, g)
            mean += dot(g, ones)
            product += dot(g, unit)
        middle = splat(mean * share, (0,))
        for c in range(0, C, BLOCK):
            at = np.uint64(row * C + c)
            unit = scale(root, subtract(load(x, at, (0,)), centre))
            g = subtract(subtract(load(out, at, (0,)), middle), scale(product * share, unit))
            store(out, at, scale(root, g))
