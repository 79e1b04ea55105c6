"""One step forward (Eq. 11-13), row by row; symbols as in :mod:`plap.kernels.fused.forward_rows`.

A program owns a segment of a row of one run, and a block of its channels. Rows of up to ``SEGMENT`` entries
are one segment, and their program finishes them; a longer row has several, whose sums :func:`finish_hubs`
adds up in order. No two programs write to the same place, so there are no atomics, and results repeat bit for
bit.

M spans more than float32 does, so a row's sums are held divided by its largest M so far, ``scale``.
"""

from __future__ import annotations

import triton.language as tl

from plap.kernels.triton.edges import conductance, rounding_floor
from plap.kernels.triton.jit import compiled


@compiled
def scale_rows(
    s: tl.tensor, X: tl.tensor, Y: tl.tensor, nodes: tl.tensor, channels: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
) -> None:  # fmt: skip
    """Y = s X."""
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    cols = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = (rows < nodes)[:, None] & (cols < channels)[None, :]
    at = (tl.program_id(2).to(tl.int64) * nodes + rows)[:, None] * channels + cols[None, :]
    scale = tl.load(s + rows, mask=rows < nodes, other=0.0)
    tl.store(Y + at, tl.load(X + at, mask=inside, other=0.0) * scale[:, None], mask=inside)


@compiled
def locate(segments: tl.tensor, indptr: tl.tensor, count: tl.tensor, SPLIT: tl.constexpr) -> tl.tensor:
    """Row, first entry, last entry and slot of this program; slot -1: it has the whole row; row -1: none."""
    program = tl.program_id(0)
    if SPLIT:
        row = tl.load(segments + program).to(tl.int64)
        begin = tl.load(segments + count + program)
        end = tl.load(segments + 2 * count + program)
        slot = tl.load(segments + 3 * count + program)
    else:
        row = program.to(tl.int64)
        begin = tl.load(indptr + row).to(tl.int64)
        end = tl.load(indptr + row + 1).to(tl.int64)
        slot = tl.full((), -1, tl.int64)
    return row, begin, end, slot


@compiled
def settings_of(settings: tl.tensor, run: tl.tensor, runs: tl.tensor, real: tl.constexpr) -> tl.tensor:
    """The penalty's parameter, m = 2μ/c, ω and ε² of a run."""
    theta = tl.load(settings + run).to(real)
    m = tl.load(settings + runs + run).to(real)
    omega = tl.load(settings + 2 * runs + run).to(real)
    eps2 = tl.load(settings + 3 * runs + run).to(real)
    return theta, m, omega, eps2


@compiled
def row_size(
    Y: tl.tensor, at: tl.tensor, channels: tl.constexpr, BLOCK_C: tl.constexpr, BLOCKS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """|Y_i|² of the row that begins at ``at``."""
    total = tl.full((), 0.0, Y.dtype.element_ty)
    for block in range(BLOCKS):
        cols = block * BLOCK_C + tl.arange(0, BLOCK_C)
        y = tl.load(Y + at + cols, mask=cols < channels, other=0.0)
        total += tl.sum(y * y)
    return total


@compiled
def forward_rows(
    indptr: tl.tensor, indices: tl.tensor, w: tl.tensor, s: tl.tensor, settings: tl.tensor,
    segments: tl.tensor, X: tl.tensor, Y: tl.tensor, out: tl.tensor, alphas: tl.tensor, sums: tl.tensor,
    count: tl.tensor, slots: tl.tensor, nodes: tl.tensor, channels: tl.constexpr, runs: tl.tensor,
    PSI: tl.constexpr, UNBOUNDED: tl.constexpr, CLAMP: tl.constexpr, DOUBLE: tl.constexpr, LAST: tl.constexpr,
    DAMPED: tl.constexpr, SPLIT: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr,
    BLOCKS: tl.constexpr,
) -> None:  # fmt: skip
    """Y of the next step, or F itself if this is the ``LAST``, and α."""
    row, begin, end, slot = locate(segments, indptr, count, SPLIT)
    block, run = tl.program_id(1), tl.program_id(2)
    if row >= 0:
        base = run.to(tl.int64) * nodes
        cols = block * BLOCK_C + tl.arange(0, BLOCK_C)
        y = tl.load(Y + (base + row) * channels + cols, mask=cols < channels, other=0.0)
        real = y.dtype
        theta, m, omega, eps2 = settings_of(settings, run, runs, real)
        size = row_size(Y, (base + row) * channels, channels, BLOCK_C, BLOCKS)
        top = tl.full((), 1e-30, real)
        total = tl.full((), 0.0, real)
        f = tl.zeros([BLOCK_C], real)
        for start in range(begin, end, BLOCK_E):
            e = start + tl.arange(0, BLOCK_E)
            there = e < end
            weight = tl.load(w + e, mask=there, other=0.0)
            at = (base + tl.load(indices + e, mask=there, other=0).to(tl.int64)) * channels
            inside = there[:, None] & (cols < channels)[None, :]
            other = tl.load(Y + at[:, None] + cols[None, :], mask=inside, other=0.0)
            if BLOCKS == 1:
                delta = y[None, :] - other
                square, sizes = tl.sum(delta * delta, 1), tl.sum(other * other, 1)
            else:
                square, sizes = distances(Y, (base + row) * channels, at, there, channels, BLOCK_C, BLOCKS)
            floor = rounding_floor(weight, size + sizes, DOUBLE)
            M, _at, _varies = conductance(
                weight * square, floor, weight, theta, eps2, PSI, UNBOUNDED, CLAMP, DOUBLE
            )
            M = tl.where(there, M, 0.0).to(real)
            higher = tl.maximum(top, tl.max(M))
            fade, share = top / higher, M / higher
            f = f * fade + tl.sum(share[:, None] * other, 0)
            total = total * fade + tl.sum(share)
            top = higher
        if slot < 0:
            finish(
                row, base, cols, block, begin < end, f, total, top, y, m, s, X, out, alphas, channels,
                omega, LAST, DAMPED,
            )  # fmt: skip
        else:
            place = sums + (run.to(tl.int64) * slots + slot) * (channels + 2)
            tl.store(place + cols, f, mask=cols < channels)
            if block == 0:
                tl.store(place + channels, total)
                tl.store(place + channels + 1, top)


@compiled
def distances(
    Y: tl.tensor, own: tl.tensor, at: tl.tensor, there: tl.tensor, channels: tl.constexpr,
    BLOCK_C: tl.constexpr, BLOCKS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """|Y_i − Y_j|² and |Y_j|² of a block of entries, over all blocks of channels."""
    square = tl.zeros(at.shape, Y.dtype.element_ty)
    sizes = tl.zeros(at.shape, Y.dtype.element_ty)
    for block in range(BLOCKS):
        cols = block * BLOCK_C + tl.arange(0, BLOCK_C)
        inside = there[:, None] & (cols < channels)[None, :]
        other = tl.load(Y + at[:, None] + cols[None, :], mask=inside, other=0.0)
        delta = tl.load(Y + own + cols, mask=cols < channels, other=0.0)[None, :] - other
        square += tl.sum(delta * delta, 1)
        sizes += tl.sum(other * other, 1)
    return square, sizes


@compiled
def finish(
    row: tl.tensor, base: tl.tensor, cols: tl.tensor, block: tl.tensor, linked: tl.tensor, f: tl.tensor,
    total: tl.tensor, top: tl.tensor, y: tl.tensor, m: tl.tensor, s: tl.tensor, X: tl.tensor, out: tl.tensor,
    alphas: tl.tensor, channels: tl.constexpr, omega: tl.tensor, LAST: tl.constexpr, DAMPED: tl.constexpr,
) -> None:  # fmt: skip
    """F_i = α (s Σ_j M_ij Y_j + m X_i), damped by ω, from the sums over a row divided by ``top``."""
    own_s = tl.load(s + row)
    alpha = 1.0 / (own_s * own_s * (total * top) + m)
    at = (base + row) * channels + cols
    x = tl.load(X + at, mask=cols < channels, other=0.0)
    result = alpha * top * own_s * f + m * alpha * x
    if DAMPED:
        result = omega * result + (1.0 - omega) / tl.where(linked, own_s, 1.0) * y
    result = tl.where(linked, result, x)
    tl.store(out + at, result if LAST else own_s * result, mask=cols < channels)
    if block == 0:
        tl.store(alphas + base + row, alpha)


@compiled
def finish_hubs(
    hubs: tl.tensor, s: tl.tensor, settings: tl.tensor, X: tl.tensor, Y: tl.tensor, out: tl.tensor,
    alphas: tl.tensor, sums: tl.tensor, count: tl.tensor, slots: tl.tensor, nodes: tl.tensor,
    channels: tl.constexpr, runs: tl.tensor, LAST: tl.constexpr, DAMPED: tl.constexpr, BLOCK_C: tl.constexpr,
) -> None:  # fmt: skip
    """Add up the segments of a long row, in order, and finish it."""
    program, block, run = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row = tl.load(hubs + program).to(tl.int64)
    if row >= 0:
        base = run.to(tl.int64) * nodes
        cols = block * BLOCK_C + tl.arange(0, BLOCK_C)
        y = tl.load(Y + (base + row) * channels + cols, mask=cols < channels, other=0.0)
        real = y.dtype
        top = tl.full((), 1e-30, real)
        total = tl.full((), 0.0, real)
        f = tl.zeros([BLOCK_C], real)
        first, last = tl.load(hubs + count + program), tl.load(hubs + 2 * count + program)
        for slot in range(first, last):
            place = sums + (run.to(tl.int64) * slots + slot) * (channels + 2)
            their_top = tl.load(place + channels + 1)
            higher = tl.maximum(top, their_top)
            fade, share = top / higher, their_top / higher
            f = f * fade + share * tl.load(place + cols, mask=cols < channels, other=0.0)
            total = total * fade + share * tl.load(place + channels)
            top = higher
        _theta, m, omega, _eps2 = settings_of(settings, run, runs, real)
        finish(
            row, base, cols, block, first < last, f, total, top, y, m, s, X, out, alphas, channels, omega,
            LAST, DAMPED,
        )  # fmt: skip
