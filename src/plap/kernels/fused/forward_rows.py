"""One step forward (Eq. 11-13), row by row.

Symbols are those of the paper: s = D^(-1/2), Y = s F, ν = w|Y_i − Y_j|², m = 2μ/p, α of the receiver.
``rule`` is empty for powers; else it holds the address of the penalty's function. ``p`` is the parameter.

Rows are taken in batches whose entries fit a small buffer: distances of all entries, conductances of all
entries, then the sums row by row, which find their neighbours' channels still in the cache. A row of C
channels is ``blocks`` blocks of ``BLOCK · len(width)`` lanes; ``node`` and ``row`` say where a run's nodes
and rows begin. A graph's rows may be sorted: ``order`` has the node of each then, and is empty otherwise.
Indices are unsigned: signed ones would be tested for wrap-around at every access.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plap.kernels.fused.calling import BLOCK
from plap.kernels.fused.conductance import conductances
from plap.kernels.fused.jit import compiled, inlined
from plap.kernels.fused.lanes import add, add_scaled, dot, load, prefetch, scale, splat, store, subtract
from plap.kernels.fused.penalty_functions import CONDUCTANCES, ask

AHEAD = 16
"""How many entries before its use a neighbour's row is asked for."""

ONE = np.uint64(1)
TWO = np.uint64(2)


@inlined
def batch_end(indptr: Any, first: Any, hi: Any, batch: Any) -> Any:
    """The row after the last one of the batch that begins with row ``first``."""
    end = first + ONE
    while end < hi and np.uint64(indptr[end + ONE]) - np.uint64(indptr[first]) <= batch:
        end += ONE
    return end


@inlined
def node_of(order: Any, i: Any) -> Any:
    """The node of row ``i``."""
    return np.uint64(order[i]) if order.size > 0 else np.uint64(i)


@inlined
def later(indices: Any, e: Any) -> Any:
    """The neighbour that is met :data:`AHEAD` entries after entry ``e``."""
    return np.uint64(indices[min(e + np.uint64(AHEAD), np.uint64(indices.size) - ONE)])


@compiled
def scale_rows(
    lo: Any, hi: Any, node: Any, row: Any, s: Any, order: Any, X: Any, Y: Any, norms: Any, blocks: Any,
    width: Any,
) -> None:  # fmt: skip
    """Y = s X and |Y_i|²."""
    lanes = np.uint64(BLOCK * len(width))
    for at_row in range(lo, hi):
        i = node_of(order, at_row)
        norm = s.dtype.type(0)
        for b in range(blocks):
            at = row + (i * blocks + b) * lanes
            y = scale(s[i], load(X, at, width))
            store(Y, at, y)
            norm += dot(y, y)
        norms[node + i] = norm


@compiled
def blank_rows(lo: Any, hi: Any, row: Any, order: Any, Y: Any, blocks: Any, width: Any) -> None:
    """Y = 0 where it is not computed: a step backward meets these rows as neighbours of others."""
    lanes = np.uint64(BLOCK * len(width))
    for at_row in range(lo, hi):
        i = node_of(order, at_row)
        for b in range(blocks):
            store(Y, row + (i * blocks + b) * lanes, splat(Y.dtype.type(0), width))


@compiled
def forward_rows(
    lo: Any, hi: Any, node: Any, row: Any, graph: Any, X: Any, Y: Any, norms: Any,
    out: Any, norms_next: Any, alphas: Any, scalars: Any, buffers: Any, blocks: Any, width: Any, rule: Any,
) -> None:  # fmt: skip
    """One step: Y of the next step, or F itself if this is the last; |Y_i|²; α."""
    indptr, indices, w, s, order = graph
    p, m, omega, eps2, last = scalars
    nu, M, cut, _, batch = buffers
    stride = blocks * np.uint64(BLOCK * len(width))
    real = s.dtype.type
    linear = len(rule) == 0 and p == 2.0
    conductance = w if linear else M
    first = lo
    while first < hi:
        end = hi if linear else batch_end(indptr, first, hi, batch)
        start = np.uint64(0) if linear else np.uint64(indptr[first])
        if not linear:
            count = np.uint64(indptr[end]) - start
            squared_gradients(first, end, node, row, graph, Y, norms, nu, cut, blocks, width)
            if len(rule) == 0:
                conductances(nu, M, w, start, count, cut, p, eps2)
            else:
                ask(CONDUCTANCES, rule, nu, M, cut, nu, w, start, count, p, eps2)
        for at_row in range(first, end):
            i = node_of(order, at_row)
            begin = np.uint64(indptr[at_row])
            degree = np.uint64(indptr[at_row + ONE]) - begin
            total = real(1 if degree > 0 else 0)  # Σ_j M_ij / D_i, which is 1 for p = 2
            if not linear:
                total = real(0)
                for k in range(begin - start, begin - start + degree):
                    total += M[k]
                total *= s[i] * s[i]
            alpha = real(1) / (total + m)
            alphas[node + i] = alpha
            norms_next[node + i] = _forward_row(
                i, begin, degree, row, stride, indices, X, Y, out, conductance, begin - start,
                s[i], alpha, m, omega, last, blocks, width,
            )  # fmt: skip
        first = end


@compiled
def squared_gradients(
    first: Any, end: Any, node: Any, row: Any, graph: Any, Y: Any, norms: Any, nu: Any, cut: Any,
    blocks: Any, width: Any,
) -> None:  # fmt: skip
    """ν_ij = w_ij |Y_i − Y_j|² for the entries of a batch, and the ν below which two rows count as equal.

    That cut-off is τ² w (|Y_i|² + |Y_j|²), τ = 4 machine epsilons, but no subnormal number, which would have
    fewer digits.
    """
    indptr, indices, w, _, order = graph
    lanes = np.uint64(BLOCK * len(width))
    stride = blocks * lanes
    start = np.uint64(indptr[first])
    tau2 = w.dtype.type((4 * np.finfo(w.dtype).eps) ** 2)
    least = np.finfo(w.dtype).tiny
    for at_row in range(first, end):
        i = node_of(order, at_row)
        for b in range(blocks):
            offset = row + b * lanes
            y = load(Y, i * stride + offset, width)
            for e in range(np.uint64(indptr[at_row]), np.uint64(indptr[at_row + ONE])):
                j = np.uint64(indices[e])
                prefetch(Y, later(indices, e) * stride + offset, width)
                delta = subtract(y, load(Y, j * stride + offset, width))
                square = dot(delta, delta) * w[e]
                if b == 0:
                    nu[e - start] = square
                    cut[e - start] = max(tau2 * w[e] * (norms[node + i] + norms[node + j]), least)
                else:
                    nu[e - start] += square


@inlined
def _forward_row(
    i: Any, begin: Any, degree: Any, row: Any, stride: Any, indices: Any, X: Any, Y: Any, out: Any, M: Any,
    slot: Any, s: Any, alpha: Any, m: Any, omega: Any, last: Any, blocks: Any, width: Any,
) -> Any:  # fmt: skip
    """F_i = α (s Σ_j M_ij Y_j + m X_i), damped by ω; returns |s F_i|². M is scaled first: no overflow."""
    lanes = np.uint64(BLOCK * len(width))
    one = M.dtype.type(1)
    pull = alpha * s
    norm = M.dtype.type(0)
    for b in range(blocks):
        offset = row + b * lanes
        at = i * stride + offset
        f = load(X, at, width)
        if degree > 0:
            f = scale(m * alpha, f)
            odd = splat(M.dtype.type(0), width)  # two sums, because an addition waits for the one before
            for k in range(ONE, degree, TWO):
                i0 = np.uint64(indices[begin + k - ONE])
                i1 = np.uint64(indices[begin + k])
                f = add_scaled(f, pull * M[slot + k - ONE], load(Y, i0 * stride + offset, width))
                odd = add_scaled(odd, pull * M[slot + k], load(Y, i1 * stride + offset, width))
            if degree & ONE:
                j = np.uint64(indices[begin + degree - ONE])
                f = add_scaled(f, pull * M[slot + degree - ONE], load(Y, j * stride + offset, width))
            f = add(f, odd)
            if omega != one:
                f = add_scaled(scale(omega, f), (one - omega) / s, load(Y, at, width))
        y = scale(s, f)
        store(out, at, f if last else y)
        norm += dot(y, y)
    return norm
