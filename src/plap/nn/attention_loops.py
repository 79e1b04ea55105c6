"""The loops of graph attention as machine code, for many runs at once.

Of each run: features and gradients [N, H, C], C a multiple of ``BLOCK``; scores [N, 2 H], what a node adds to
a coefficient as a source, then as a target; coefficients and dropout masks [E, H].
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import carray

from plap.kernels.fused import threads
from plap.kernels.fused.jit import c_function, compiled, next_ticket, pointer, source_stamp
from plap.kernels.fused.lanes import add_scaled, dot, load, prefetch, splat, store
from plap.kernels.fused.layout import BLOCK

__all__ = ["BLOCK", "SLOPE", "launch"]

SLOPE = 0.2
"""Of the leaky ReLU where its argument is negative."""
_GRAIN = 100_000
"""Multiplications of a row of lanes that are worth a thread of their own."""
_AHEAD = 8
"""Entries after which memory that is asked for has come."""
_STEPS = ("score", "sum", "to_targets", "to_sources", "add", "pair")


def launch(step: str, double: bool, sizes: tuple[int, int, int, int, int], *addresses: int) -> None:
    """Run a step on as many threads as it is worth.

    Parameters
    ----------
    step : {"score", "sum", "to_targets", "to_sources", "add", "pair"}
    double : bool
        Whether numbers are float64.
    sizes : R, N, E, H, C
    *addresses : int
        Of the arrays, in the order in which the step's function names them.
    """
    runs, nodes, entries, heads, channels = sizes
    workers = threads.count(runs * (entries + nodes) * heads * channels // BLOCK, _GRAIN)
    pieces = 1 if workers == 1 or runs >= 4 * workers else 8 * workers
    call = np.zeros(16, dtype=np.int64)
    call[1 : 7 + len(addresses)] = [*sizes, pieces, *addresses]
    threads.run(*_loop(step, double), call.ctypes.data, workers)


@cache
def _loop(step: str, double: bool) -> tuple[threads.TaskLoop, int]:
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
            else:
                _pair(call, run, first, end, real)
            task = next_ticket(call)

    code = c_function(attend)
    return code.ctypes, code.address


@compiled
def _indices(address: Any, size: Any) -> Any:
    return carray(pointer(np.uint64(address)), (size,), np.int64)


@compiled
def _array(address: Any, run: Any, size: Any, real: Any) -> Any:
    """The ``size`` numbers of a run."""
    return carray(pointer(np.uint64(address)), ((run + 1) * size,), real)[run * size :]


@compiled
def _score(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """Leaky ReLU of the sum of two scores, minus the largest of the row.

    Arrays: indptr, indices, scores; coefficients; the largest, [N, H].
    """
    N, E, H = call[2], call[3], call[4]
    indptr, indices = _indices(call[7], N + 1), _indices(call[8], E)
    scores, alpha = _array(call[9], run, N * 2 * H, real), _array(call[10], run, E * H, real)
    largest = _array(call[11], run, N * H, real)
    slope = real(SLOPE)
    for row in range(first, end):
        for h in range(H):
            largest[row * H + h] = -np.inf
        for entry in range(indptr[row], indptr[row + 1]):
            for h in range(H):
                z = scores[indices[entry] * 2 * H + h] + scores[row * 2 * H + H + h]
                z = max(z, slope * z)
                alpha[entry * H + h] = z
                largest[row * H + h] = max(largest[row * H + h], z)
        for entry in range(indptr[row], indptr[row + 1]):
            for h in range(H):
                alpha[entry * H + h] -= largest[row * H + h]


@compiled
def _add_row(out: Any, at: Any, factor: Any, x: Any, there: Any, C: Any) -> None:
    """Add C channels of ``x``, scaled, to those of ``out``."""
    for c in range(0, C, BLOCK):
        place = np.uint64(at + c)
        store(out, place, add_scaled(load(out, place, (0,)), factor, load(x, np.uint64(there + c), (0,))))


@compiled
def _sum(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """Divide exponentials by the sum of their row, and sum the features by them.

    Arrays: indptr, indices, coefficients, mask (or 0), features; sum; room, [N, H].
    """
    N, E, H, C = call[2], call[3], call[4], call[5]
    indptr, indices = _indices(call[7], N + 1), _indices(call[8], E)
    alpha, mask = _array(call[9], run, E * H, real), _array(call[10], run, E * H, real)
    x, out = _array(call[11], run, N * H * C, real), _array(call[12], run, N * H * C, real)
    total = _array(call[13], run, N * H, real)
    masked = call[10] != 0
    for row in range(first, end):
        for h in range(H):
            total[row * H + h] = 0
        for at in range(row * H * C, (row + 1) * H * C, BLOCK):
            store(out, np.uint64(at), splat(real(0), (0,)))
        for entry in range(indptr[row], indptr[row + 1]):
            for h in range(H):
                total[row * H + h] += alpha[entry * H + h]
        for h in range(H):
            total[row * H + h] = 1 / total[row * H + h]
        for entry in range(indptr[row], indptr[row + 1]):
            there = indices[entry] * H * C
            for h in range(H):
                factor = alpha[entry * H + h] * total[row * H + h]
                alpha[entry * H + h] = factor
                if masked:
                    factor *= mask[entry * H + h]
                _add_row(out, (row * H + h) * C, factor, x, there + h * C, C)


@compiled
def _to_targets(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """Gradients of the sums of two scores, and their sums over the entries of a target.

    Arrays: indptr, indices, scores, coefficients, mask (or 0), features, gradient; of each entry what the
    sources need, [E, 2 H]: the coefficients after dropout, then the gradients; sums [N, 2 H].
    """
    N, E, H, C = call[2], call[3], call[4], call[5]
    indptr, indices = _indices(call[7], N + 1), _indices(call[8], E)
    scores, alpha = _array(call[9], run, N * 2 * H, real), _array(call[10], run, E * H, real)
    mask = _array(call[11], run, E * H, real)
    x, grad = _array(call[12], run, N * H * C, real), _array(call[13], run, N * H * C, real)
    slopes, of_scores = _array(call[14], run, E * 2 * H, real), _array(call[15], run, N * 2 * H, real)
    masked = call[11] != 0
    for row in range(first, end):
        for k in range(row * 2 * H, (row + 1) * 2 * H):
            of_scores[k] = 0  # the first half has room for means until the sources are seen
        for entry in range(indptr[row], indptr[row + 1]):
            there = indices[entry] * H * C
            for h in range(H):
                d = real(0)
                for c in range(h * C, (h + 1) * C, BLOCK):
                    left = load(grad, np.uint64(row * H * C + c), (0,))
                    d += dot(left, load(x, np.uint64(there + c), (0,)))
                kept = alpha[entry * H + h]
                if masked:
                    kept *= mask[entry * H + h]
                    d *= mask[entry * H + h]
                slopes[entry * 2 * H + h] = kept
                slopes[entry * 2 * H + H + h] = d
                of_scores[row * 2 * H + h] += alpha[entry * H + h] * d
        for entry in range(indptr[row], indptr[row + 1]):
            for h in range(H):
                d = slopes[entry * 2 * H + H + h] - of_scores[row * 2 * H + h]
                d *= alpha[entry * H + h]
                z = scores[indices[entry] * 2 * H + h] + scores[row * 2 * H + H + h]
                d = d if z > 0 else real(SLOPE) * d
                slopes[entry * 2 * H + H + h] = d
                of_scores[row * 2 * H + H + h] += d


@compiled
def _to_sources(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """Gradients of the features, and sums over the entries of a source.

    Arrays: indptr, indices, reverse, gradient, what :func:`_to_targets` wrote [E, 2 H]; gradients of the
    features and of the scores [N, 2 H].
    """
    N, E, H, C = call[2], call[3], call[4], call[5]
    indptr, indices, reverse = _indices(call[7], N + 1), _indices(call[8], E), _indices(call[9], E)
    grad, slopes = _array(call[10], run, N * H * C, real), _array(call[11], run, E * 2 * H, real)
    of_x, of_scores = _array(call[12], run, N * H * C, real), _array(call[13], run, N * 2 * H, real)
    for row in range(first, end):
        for h in range(H):
            of_scores[row * 2 * H + h] = 0
        for at in range(row * H * C, (row + 1) * H * C, BLOCK):
            store(of_x, np.uint64(at), splat(real(0), (0,)))
        for entry in range(indptr[row], indptr[row + 1]):
            ahead = reverse[min(entry + _AHEAD, E - 1)]
            prefetch(slopes, np.uint64(ahead * 2 * H), (0, 0))
            back, there = reverse[entry] * 2 * H, indices[entry] * H * C
            for h in range(H):
                of_scores[row * 2 * H + h] += slopes[back + H + h]
                _add_row(of_x, (row * H + h) * C, slopes[back + h], grad, there + h * C, C)


@compiled
def _add(call: Any, run: Any, first: Any, end: Any, real: Any) -> None:
    """The sum of the neighbours' features by given coefficients; one head.

    Arrays: indptr, indices, coefficients [E], features; sum.
    """
    N, E, C = call[2], call[3], call[5]
    indptr, indices = _indices(call[7], N + 1), _indices(call[8], E)
    weights = _array(call[9], run, E, real)
    x, out = _array(call[10], run, N * C, real), _array(call[11], run, N * C, real)
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
    indptr, indices = _indices(call[7], N + 1), _indices(call[8], E)
    left, right = _array(call[9], run, N * C, real), _array(call[10], run, N * C, real)
    out = _array(call[11], run, E, real)
    for row in range(first, end):
        for entry in range(indptr[row], indptr[row + 1]):
            total = real(0)
            for at in range(0, C, BLOCK):
                own = load(left, np.uint64(row * C + at), (0,))
                total += dot(own, load(right, np.uint64(indices[entry] * C + at), (0,)))
            out[entry] = total
