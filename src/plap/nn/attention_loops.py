"""The loops of graph attention, weighted sums and edge lengths as machine code, for many runs at once.

Of each run: features and gradients [N, H, C], C a multiple of ``BLOCK``; scores [N, 2 H], what a node adds to
a coefficient as a source, then as a target; coefficients and dropout masks [E, H].
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
from plap.kernels.fused.lanes import (
    add,
    add_scaled,
    dot,
    load,
    prefetch,
    scale,
    splat,
    store,
    subtract,
    times,
)

__all__ = ["BLOCK", "SLOPE", "launch"]

SLOPE = 0.2
"""Of the leaky ReLU where its argument is negative."""
_GRAIN = 100_000
"""Multiplications of a row of lanes that are worth a thread of their own."""
_AHEAD = 8
"""Entries after which memory that is asked for has come."""
_STEPS = ("score", "sum", "to_targets", "to_sources", "add", "pair", "apart", "pull")


def launch(step: str, double: bool, sizes: tuple[int, int, int, int, int], *addresses: int) -> None:
    """Run a step on as many threads as it is worth.

    Parameters
    ----------
    step : {"score", "sum", "to_targets", "to_sources", "add", "pair", "apart", "pull"}
    double : bool
        Whether numbers are float64.
    sizes : R, N, E, H, C
    *addresses : int
        Of the arrays, in the order in which the step's function names them.
    """
    runs, nodes, entries, heads, channels = sizes
    workers = calling.count(runs * (entries + nodes) * heads * channels // BLOCK, _GRAIN)
    pieces = 1 if workers == 1 or runs >= 4 * workers else 8 * workers
    call = np.zeros(16, dtype=np.int64)
    call[1 : 7 + len(addresses)] = [*sizes, pieces, *addresses]
    calling.run(*_loop(step, double), call.ctypes.data, workers)


@cache
def _loop(step: str, double: bool) -> tuple[calling.TaskLoop, int]:
    """A step as a C function that takes tasks, a piece of the rows of one run each, and its address."""
    real = np.float64 if double else np.float32
    which = _STEPS.index(step)
    stamp = source_stamp()

    def attend(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        call = carray(address, (16,), np.int64)
        runs, nodes, pieces = call[1], call[2], call[6]
        task = next_ticket(call)
        while task < runs * pieces:
            run, piece = task // pieces, task % pieces
            first, end = nodes * piece // pieces, nodes * (piece + 1) // pieces
            if which == 0:
                _score(call, run, first, end, real)
            elif which == 1:
                _sum(call, run, first, end, real)
            elif which == 2:
                _to_targets(call, run, first, end, real)
            elif which == 3:
                _to_sources(call, run, first, end, real)
            elif which == 4:
                _add(call, run, first, end, real)
            elif which == 5:
                _pair(call, run, first, end, real)
            elif which == 6:
                _apart(call, run, first, end, real)
            else:
                _pull(call, run, first, end, real)
            task = next_ticket(call)

    return task_loop(attend)


@instruction
def _over(typingctx: Any, a: Any, b: Any) -> tuple[Any, Codegen]:
    """a / b, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fdiv(args[0], args[1])

    return a(a, b), codegen


@instruction
def _larger(typingctx: Any, a: Any, b: Any) -> tuple[Any, Codegen]:
    """The larger of a and b, lane by lane; b where one of them is not a number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])

    return a(a, b), codegen


@instruction
def _where_positive(typingctx: Any, z: Any, a: Any, b: Any) -> tuple[Any, Codegen]:
    """a where z > 0, otherwise b; lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = context.get_value_type(z)(None)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), args[1], args[2])

    return a(z, a, b), codegen


@compiled
def _score(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """Leaky ReLU of the sum of two scores, minus the largest of the row; heads in lanes, the rest one by one.

    Arrays: indptr, indices, scores; coefficients.
    """
    N, E, H = call[2], call[3], call[4]
    indptr, indices = array_at(call[7], N + 1, np.int64), array_at(call[8], E, np.int64)
    scores, alpha = of_run(call[9], run, N * 2 * H, real), of_run(call[10], run, E * H, real)
    slope, wide = real(SLOPE), H - H % BLOCK
    for row in range(first, end):
        for h in range(0, wide, BLOCK):
            own = load(scores, np.uint64(row * 2 * H + H + h), (0,))
            most = splat(real(-np.inf), (0,))
            for entry in range(indptr[row], indptr[row + 1]):
                z = add(load(scores, np.uint64(indices[entry] * 2 * H + h), (0,)), own)
                z = _larger(z, scale(slope, z))
                store(alpha, np.uint64(entry * H + h), z)
                most = _larger(z, most)
            for entry in range(indptr[row], indptr[row + 1]):
                place = np.uint64(entry * H + h)
                store(alpha, place, subtract(load(alpha, place, (0,)), most))
        for h in range(wide, H):
            top = real(-np.inf)
            for entry in range(indptr[row], indptr[row + 1]):
                value = scores[np.uint64(indices[entry] * 2 * H + h)] + scores[np.uint64(row * 2 * H + H + h)]
                value = max(value, slope * value)
                alpha[np.uint64(entry * H + h)] = value
                top = max(top, value)
            for entry in range(indptr[row], indptr[row + 1]):
                alpha[np.uint64(entry * H + h)] -= top


@compiled
def _weight(weights: Any, mask: Any, masked: Any, at: Any) -> Any:
    weight = weights[np.uint64(at)]
    return weight * mask[np.uint64(at)] if masked else weight


@compiled
def _add_rows(
    start: Any, end: Any, indices: Any, place: Any, direct: Any, stride: Any, weights: Any, mask: Any,
    masked: Any, x: Any, out: Any, row: Any, H: Any, C: Any, real: Any,
) -> None:  # fmt: skip
    """Sum rows of ``x`` into a row of ``out``, four blocks of channels at a time in registers.

    The coefficient of an entry and a head is ``weights[stride * place[entry] + head]``, times the mask if
    there is one; with ``direct`` the place of an entry is the entry.
    """
    size = H * C
    fours = size - size % (4 * BLOCK)
    zero = splat(real(0), (0,))
    for c in range(0, fours, 4 * BLOCK):
        h0, h1, h2, h3 = c // C, (c + BLOCK) // C, (c + 2 * BLOCK) // C, (c + 3 * BLOCK) // C
        t0, t1, t2, t3 = zero, zero, zero, zero
        for entry in range(start, end):
            w = stride * (entry if direct else place[entry])
            there = indices[entry] * size + c
            t0 = add_scaled(t0, _weight(weights, mask, masked, w + h0), load(x, np.uint64(there), (0,)))
            there += BLOCK
            t1 = add_scaled(t1, _weight(weights, mask, masked, w + h1), load(x, np.uint64(there), (0,)))
            there += BLOCK
            t2 = add_scaled(t2, _weight(weights, mask, masked, w + h2), load(x, np.uint64(there), (0,)))
            there += BLOCK
            t3 = add_scaled(t3, _weight(weights, mask, masked, w + h3), load(x, np.uint64(there), (0,)))
        at = row * size + c
        store(out, np.uint64(at), t0)
        store(out, np.uint64(at + BLOCK), t1)
        store(out, np.uint64(at + 2 * BLOCK), t2)
        store(out, np.uint64(at + 3 * BLOCK), t3)
    for c in range(fours, size, BLOCK):
        total = zero
        for entry in range(start, end):
            w = stride * (entry if direct else place[entry]) + c // C
            row_there = load(x, np.uint64(indices[entry] * size + c), (0,))
            total = add_scaled(total, _weight(weights, mask, masked, w), row_there)
        store(out, np.uint64(row * size + c), total)


@compiled
def _sum(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """Divide exponentials by the sum of their row, and sum the features by them.

    Arrays: indptr, indices, coefficients, mask (or 0), features; sum.
    """
    N, E, H, C = call[2], call[3], call[4], call[5]
    indptr, indices = array_at(call[7], N + 1, np.int64), array_at(call[8], E, np.int64)
    alpha, mask = of_run(call[9], run, E * H, real), of_run(call[10], run, E * H, real)
    x, out = of_run(call[11], run, N * H * C, real), of_run(call[12], run, N * H * C, real)
    masked, wide = call[10] != 0, H - H % BLOCK
    for row in range(first, end):
        start, stop = indptr[row], indptr[row + 1]
        for h in range(0, wide, BLOCK):
            lanes = splat(real(0), (0,))
            for entry in range(start, stop):
                lanes = add(lanes, load(alpha, np.uint64(entry * H + h), (0,)))
            lanes = _over(splat(real(1), (0,)), lanes)
            for entry in range(start, stop):
                place = np.uint64(entry * H + h)
                store(alpha, place, times(lanes, load(alpha, place, (0,))))
        for h in range(wide, H):
            total = real(0)
            for entry in range(start, stop):
                total += alpha[np.uint64(entry * H + h)]
            share = real(1) / total
            for entry in range(start, stop):
                alpha[np.uint64(entry * H + h)] *= share
        _add_rows(start, stop, indices, indices, True, H, alpha, mask, masked, x, out, row, H, C, real)


@compiled
def _to_targets(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """Gradients of the sums of two scores, and their sums over the entries of a target.

    Arrays: indptr, indices, scores, coefficients, mask (or 0), features, gradient; of each entry what the
    sources need, [E, 2 H]: the coefficients after dropout, then the gradients; sums [N, 2 H].
    """
    N, E, H, C = call[2], call[3], call[4], call[5]
    indptr, indices = array_at(call[7], N + 1, np.int64), array_at(call[8], E, np.int64)
    scores, alpha = of_run(call[9], run, N * 2 * H, real), of_run(call[10], run, E * H, real)
    mask = of_run(call[11], run, E * H, real)
    x, grad = of_run(call[12], run, N * H * C, real), of_run(call[13], run, N * H * C, real)
    slopes, of_scores = of_run(call[14], run, E * 2 * H, real), of_run(call[15], run, N * 2 * H, real)
    masked, wide = call[11] != 0, H - H % BLOCK
    for row in range(first, end):
        start, stop = indptr[row], indptr[row + 1]
        for entry in range(start, stop):
            there = indices[entry] * H * C
            for h in range(H):
                product = real(0)
                for c in range(h * C, (h + 1) * C, BLOCK):
                    left = load(grad, np.uint64(row * H * C + c), (0,))
                    product += dot(left, load(x, np.uint64(there + c), (0,)))
                slopes[np.uint64(entry * 2 * H + H + h)] = product
        for h in range(0, wide, BLOCK):
            mean, total = splat(real(0), (0,)), splat(real(0), (0,))
            for entry in range(start, stop):
                place = np.uint64(entry * 2 * H + H + h)
                kept, d = load(alpha, np.uint64(entry * H + h), (0,)), load(slopes, place, (0,))
                if masked:
                    factor = load(mask, np.uint64(entry * H + h), (0,))
                    kept = times(kept, factor)
                    store(slopes, place, times(d, factor))
                store(slopes, np.uint64(entry * 2 * H + h), kept)
                mean = add(mean, times(kept, d))
            own = load(scores, np.uint64(row * 2 * H + H + h), (0,))
            for entry in range(start, stop):
                place = np.uint64(entry * 2 * H + H + h)
                d = times(
                    load(alpha, np.uint64(entry * H + h), (0,)), subtract(load(slopes, place, (0,)), mean)
                )
                z = add(load(scores, np.uint64(indices[entry] * 2 * H + h), (0,)), own)
                d = _where_positive(z, d, scale(real(SLOPE), d))
                store(slopes, place, d)
                total = add(total, d)
            store(of_scores, np.uint64(row * 2 * H + H + h), total)
        for h in range(wide, H):
            average, whole = real(0), real(0)
            for entry in range(start, stop):
                place = np.uint64(entry * 2 * H + H + h)
                weight = _weight(alpha, mask, masked, entry * H + h)
                slopes[np.uint64(entry * 2 * H + h)] = weight
                average += weight * slopes[place]
                if masked:
                    slopes[place] *= mask[np.uint64(entry * H + h)]
            for entry in range(start, stop):
                place = np.uint64(entry * 2 * H + H + h)
                slope = alpha[np.uint64(entry * H + h)] * (slopes[place] - average)
                source, target = indices[entry] * 2 * H + h, row * 2 * H + H + h
                if not scores[np.uint64(source)] + scores[np.uint64(target)] > 0:
                    slope *= real(SLOPE)
                slopes[place] = slope
                whole += slope
            of_scores[np.uint64(row * 2 * H + H + h)] = whole


@compiled
def _to_sources(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """Gradients of the features, and sums over the entries of a source.

    Arrays: indptr, indices, reverse, gradient, what :func:`_to_targets` wrote [E, 2 H]; gradients of the
    features and of the scores [N, 2 H].
    """
    N, E, H, C = call[2], call[3], call[4], call[5]
    indptr, indices, reverse = (
        array_at(call[7], N + 1, np.int64),
        array_at(call[8], E, np.int64),
        array_at(call[9], E, np.int64),
    )
    grad, slopes = of_run(call[10], run, N * H * C, real), of_run(call[11], run, E * 2 * H, real)
    of_x, of_scores = of_run(call[12], run, N * H * C, real), of_run(call[13], run, N * 2 * H, real)
    wide = H - H % BLOCK
    for row in range(first, end):
        start, stop = indptr[row], indptr[row + 1]
        for h in range(0, wide, BLOCK):
            lanes = splat(real(0), (0,))
            for entry in range(start, stop):
                ahead = reverse[min(entry + _AHEAD, E - 1)]
                prefetch(slopes, np.uint64(ahead * 2 * H), (0, 0))
                lanes = add(lanes, load(slopes, np.uint64(reverse[entry] * 2 * H + H + h), (0,)))
            store(of_scores, np.uint64(row * 2 * H + h), lanes)
        for h in range(wide, H):
            total = real(0)
            for entry in range(start, stop):
                total += slopes[np.uint64(reverse[entry] * 2 * H + H + h)]
            of_scores[np.uint64(row * 2 * H + h)] = total
        _add_rows(
            start, stop, indices, reverse, False, 2 * H, slopes, slopes, False, grad, of_x, row, H, C, real
        )


@compiled
def _add(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """The sum of the neighbours' features by given coefficients; one head.

    Arrays: indptr, indices, coefficients [E], features; sum.
    """
    N, E, C = call[2], call[3], call[5]
    indptr, indices = array_at(call[7], N + 1, np.int64), array_at(call[8], E, np.int64)
    weights = of_run(call[9], run, E, real)
    x, out = of_run(call[10], run, N * C, real), of_run(call[11], run, N * C, real)
    for row in range(first, end):
        for at in range(0, C, BLOCK):
            total = splat(real(0), (0,))
            for entry in range(indptr[row], indptr[row + 1]):
                total = add_scaled(total, weights[entry], load(x, np.uint64(indices[entry] * C + at), (0,)))
            store(out, np.uint64(row * C + at), total)


@compiled
def _pair(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """The inner product of the two ends of every entry; one head.

    Arrays: indptr, indices, rows of the receivers, rows of the sources; products [E].
    """
    N, E, C = call[2], call[3], call[5]
    indptr, indices = array_at(call[7], N + 1, np.int64), array_at(call[8], E, np.int64)
    left, right = of_run(call[9], run, N * C, real), of_run(call[10], run, N * C, real)
    out = of_run(call[11], run, E, real)
    for row in range(first, end):
        for entry in range(indptr[row], indptr[row + 1]):
            total = real(0)
            for at in range(0, C, BLOCK):
                own = load(left, np.uint64(row * C + at), (0,))
                total += dot(own, load(right, np.uint64(indices[entry] * C + at), (0,)))
            out[entry] = total


@compiled
def _apart(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """The squared distance of the two ends of every entry, float64, where squares of float32 fit; one head.

    Arrays: indptr, indices, rows; squares [E].
    """
    N, E, C = call[2], call[3], call[5]
    indptr, indices = array_at(call[7], N + 1, np.int64), array_at(call[8], E, np.int64)
    rows, out = of_run(call[9], run, N * C, real), of_run(call[10], run, E, np.float64)
    for row in range(first, end):
        own = rows[row * C : (row + 1) * C]
        for entry in range(indptr[row], indptr[row + 1]):
            there = rows[indices[entry] * C : (indices[entry] + 1) * C]
            total = 0.0
            for channel in range(C):
                step = np.float64(own[channel]) - np.float64(there[channel])
                total += step * step
            out[entry] = total


@compiled
def _pull(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """The sum of the differences to all neighbours by given coefficients; one head.

    Arrays: indptr, indices, rows, coefficients [E], float64; sum.
    """
    N, E, C = call[2], call[3], call[5]
    indptr, indices = array_at(call[7], N + 1, np.int64), array_at(call[8], E, np.int64)
    rows, weights = of_run(call[9], run, N * C, real), of_run(call[10], run, E, np.float64)
    out = of_run(call[11], run, N * C, real)
    total = np.empty(C, np.float64)
    for row in range(first, end):
        own = rows[row * C : (row + 1) * C]
        total[:] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            there, weight = rows[indices[entry] * C : (indices[entry] + 1) * C], weights[entry]
            for channel in range(C):
                total[channel] += weight * (np.float64(own[channel]) - np.float64(there[channel]))
        for channel in range(C):
            out[row * C + channel] = real(total[channel])
