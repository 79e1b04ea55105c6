"""One step backward, row by row, on a symmetric graph; formulas as in :mod:`plap.kernels.fused.backward_rows`.

Programs, segments and hubs are those of :mod:`forward_rows`. As the graph is symmetric, a row's own program
finds all that its neighbours' results owe to it.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from plap.kernels.triton.edges import (
    conductance,
    parameter_slope,
    push_strength,
    rounding_floor,
    weight_slope,
)
from plap.kernels.triton.forward_rows import locate, settings_of


@triton.jit
def prepare_rows(
    s: Any, settings: Any, alphas: Any, Y: Any, F_next: Any, Y_first: Any, G: Any, Z: Any, u: Any, t: Any,
    pull: Any, gX: Any, gm: Any, nodes: Any, channels: Any, runs: Any, RAW: tl.constexpr,
    DAMPED: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
) -> None:  # fmt: skip
    """What the backward pass needs of each node: Z, u, t, Gh·(X − F'); adds to ∂l/∂X and ∂l/∂m.

    ``F_next`` holds F of the next step, scaled by s unless ``RAW`` says that it is the final result.
    """
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    run = tl.program_id(1)
    there = rows < nodes
    node = run.to(tl.int64) * nodes + rows
    own_s = tl.load(s + rows, mask=there, other=0.0)
    real = own_s.dtype
    _, m, omega, _ = settings_of(settings, run, runs, real)
    alpha = tl.load(alphas + node, mask=there, other=0.0) * omega
    linked = own_s > 0
    unscale = tl.where(linked, 1.0 / tl.where(linked, own_s, 1.0), 0.0)
    h = tl.zeros([BLOCK_N], real)
    zy = tl.zeros([BLOCK_N], real)
    slope = tl.zeros([BLOCK_N], real)
    for start in range(0, channels, BLOCK_C):
        cols = start + tl.arange(0, BLOCK_C)
        inside = there[:, None] & (cols < channels)[None, :]
        at = node[:, None] * channels + cols[None, :]
        g = alpha[:, None] * tl.load(G + at, mask=inside, other=0.0)
        y = tl.load(Y + at, mask=inside, other=0.0)
        f = tl.load(F_next + at, mask=inside, other=0.0)
        if not RAW:
            f = unscale[:, None] * f
        if DAMPED:
            f = f / omega + (1.0 - 1.0 / omega) * unscale[:, None] * y
        z = own_s[:, None] * g
        x = unscale[:, None] * tl.load(Y_first + at, mask=inside, other=0.0)
        h += tl.sum(g * f, 1)
        zy += tl.sum(z * y, 1)
        slope += tl.sum(g * (x - f), 1)
        tl.store(Z + at, z, mask=inside)
        tl.store(gX + at, tl.load(gX + at, mask=inside, other=0.0) + m * g, mask=inside)
    tl.store(t + node, own_s * own_s * h, mask=there)
    tl.store(u + node, zy - own_s * own_s * h, mask=there)
    tl.store(pull + node, slope, mask=there)
    before = tl.load(gm + node, mask=there, other=0.0)
    tl.store(gm + node, before + tl.where(linked, slope, 0.0).to(tl.float64), mask=there)


@triton.jit
def products(
    Y: Any, Z: Any, own: Any, at: Any, there: Any, channels: Any, BLOCK_C: tl.constexpr, BLOCKS: tl.constexpr
) -> Any:
    """|Y_i − Y_j|², |Y_i|² + |Y_j|², (Z_i − Z_j)·(Y_i − Y_j) and Z_i·Y_j of a block of entries."""
    real: tl.constexpr = Y.dtype.element_ty
    square = tl.zeros(at.shape, real)
    sizes = tl.zeros(at.shape, real)
    along = tl.zeros(at.shape, real)
    across = tl.zeros(at.shape, real)
    for block in range(BLOCKS):
        cols = block * BLOCK_C + tl.arange(0, BLOCK_C)
        inside = there[:, None] & (cols < channels)[None, :]
        y = tl.load(Y + own + cols, mask=cols < channels, other=0.0)
        z = tl.load(Z + own + cols, mask=cols < channels, other=0.0)
        other = tl.load(Y + at[:, None] + cols[None, :], mask=inside, other=0.0)
        delta = y[None, :] - other
        square += tl.sum(delta * delta, 1)
        sizes += tl.sum(y * y) + tl.sum(other * other, 1)
        across += tl.sum(z[None, :] * other, 1)
        theirs = tl.load(Z + at[:, None] + cols[None, :], mask=inside, other=0.0)
        along += tl.sum((z[None, :] - theirs) * delta, 1)
    return square, sizes, along, across


@triton.jit
def backward_rows(
    indptr: Any, indices: Any, w: Any, s: Any, settings: Any, segments: Any, Y: Any, Z: Any, u: Any, G: Any,
    yf: Any, totals: Any, gp: Any, sums: Any, scalars: Any, count: Any, slots: Any, nodes: Any,
    channels: Any, runs: Any, PSI: tl.constexpr, SLOPE: tl.constexpr, RATE: tl.constexpr,
    UNBOUNDED: tl.constexpr, CLAMP: tl.constexpr, DOUBLE: tl.constexpr, DAMPED: tl.constexpr,
    DETACH: tl.constexpr, WANT: tl.constexpr, SPLIT: tl.constexpr, BLOCK_E: tl.constexpr,
    BLOCK_C: tl.constexpr, BLOCKS: tl.constexpr,
) -> None:  # fmt: skip
    """Replace G = ∂l/∂F' by ∂l/∂F; adds to the slope in the parameter, row by row, if ``WANT``.

    ``yf`` receives F_i·∂l/∂F_i without the part of the damping, one number per block of channels, and
    ``totals`` Σ_j M_ij; the weights' gradient needs both. ``DETACH``: ψ counts as a constant.
    """
    row, begin, end, slot = locate(segments, indptr, count, SPLIT)
    block, run = tl.program_id(1), tl.program_id(2)
    if row >= 0:
        base = run.to(tl.int64) * nodes
        own = (base + row) * channels
        cols = block * BLOCK_C + tl.arange(0, BLOCK_C)
        y = tl.load(Y + own + cols, mask=cols < channels, other=0.0)
        z = tl.load(Z + own + cols, mask=cols < channels, other=0.0)
        real = y.dtype
        theta, _, omega, eps2 = settings_of(settings, run, runs, real)
        own_u = tl.load(u + base + row)
        size = tl.sum(y * y)
        f = tl.zeros([BLOCK_C], real)
        total = tl.full((), 0.0, real)
        slope = tl.full((), 0.0, tl.float64)
        for start in range(begin, end, BLOCK_E):
            e = start + tl.arange(0, BLOCK_E)
            there = e < end
            weight = tl.load(w + e, mask=there, other=0.0)
            j = base + tl.load(indices + e, mask=there, other=0).to(tl.int64)
            inside = there[:, None] & (cols < channels)[None, :]
            theirs = tl.load(Z + (j * channels)[:, None] + cols[None, :], mask=inside, other=0.0)
            other = tl.load(Y + (j * channels)[:, None] + cols[None, :], mask=inside, other=0.0)
            delta = y[None, :] - other
            if BLOCKS == 1:
                square, sizes = tl.sum(delta * delta, 1), size + tl.sum(other * other, 1)
                along = tl.sum((z[None, :] - theirs) * delta, 1)
            else:
                square, sizes, along, _ = products(Y, Z, own, j * channels, there, channels, BLOCK_C, BLOCKS)
            floor = rounding_floor(weight, sizes, DOUBLE)
            M, at, varies = conductance(
                weight * square, floor, weight, theta, eps2, PSI, UNBOUNDED, CLAMP, DOUBLE
            )
            M = tl.where(there, M, 0.0).to(real)
            total += tl.sum(M)
            if DETACH:
                f += tl.sum(M[:, None] * theirs, 0)
            else:
                c = own_u + tl.load(u + j, mask=there, other=0.0) - along
                push = push_strength(c, M, at, varies & there, weight, theta, PSI, SLOPE, DOUBLE).to(real)
                f += tl.sum(M[:, None] * theirs + push[:, None] * delta, 0)
                if WANT:
                    rate = parameter_slope(c, M, at, varies, weight, theta, PSI, RATE, UNBOUNDED, CLAMP)
                    slope += tl.sum(tl.where(there, rate, 0.0).to(tl.float64))
        if slot < 0:
            finish_backward(
                row, base, cols, block, run, f, total, slope, y, omega, s, G, yf, totals, gp, nodes, channels,
                runs, DAMPED, WANT,
            )  # fmt: skip
        else:
            place = run.to(tl.int64) * slots + slot
            tl.store(sums + place * channels + cols, f, mask=cols < channels)
            if block == 0:
                tl.store(scalars + 2 * place, total)
                tl.store(scalars + 2 * place + 1, slope.to(real))


@triton.jit
def finish_backward(
    row: Any, base: Any, cols: Any, block: Any, run: Any, f: Any, total: Any, slope: Any, y: Any, omega: Any,
    s: Any, G: Any, yf: Any, totals: Any, gp: Any, nodes: Any, channels: Any, runs: Any,
    DAMPED: tl.constexpr, WANT: tl.constexpr,
) -> None:  # fmt: skip
    """Write ∂l/∂F_i and what else is known of the row."""
    at = (base + row) * channels + cols
    result = tl.load(s + row) * f
    if DAMPED:
        result += (1.0 - omega) * tl.load(G + at, mask=cols < channels, other=0.0)
    tl.store(G + at, result, mask=cols < channels)
    tl.store(yf + (block.to(tl.int64) * runs + run) * nodes + row, tl.sum(y * f))
    if block == 0:
        tl.store(totals + base + row, total)
        if WANT:
            tl.store(gp + base + row, tl.load(gp + base + row) + slope)


@triton.jit
def finish_hubs_backward(
    hubs: Any, s: Any, settings: Any, Y: Any, G: Any, yf: Any, totals: Any, gp: Any, sums: Any, scalars: Any,
    count: Any, slots: Any, nodes: Any, channels: Any, runs: Any, DAMPED: tl.constexpr, WANT: tl.constexpr,
    BLOCK_C: tl.constexpr,
) -> None:  # fmt: skip
    """Add up the segments of a long row, in order, and finish it."""
    program, block, run = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row = tl.load(hubs + program).to(tl.int64)
    if row >= 0:
        base = run.to(tl.int64) * nodes
        cols = block * BLOCK_C + tl.arange(0, BLOCK_C)
        y = tl.load(Y + (base + row) * channels + cols, mask=cols < channels, other=0.0)
        real = y.dtype
        f = tl.zeros([BLOCK_C], real)
        total = tl.full((), 0.0, real)
        slope = tl.full((), 0.0, tl.float64)
        for slot in range(tl.load(hubs + count + program), tl.load(hubs + 2 * count + program)):
            place = run.to(tl.int64) * slots + slot
            f += tl.load(sums + place * channels + cols, mask=cols < channels, other=0.0)
            total += tl.load(scalars + 2 * place)
            slope += tl.load(scalars + 2 * place + 1).to(tl.float64)
        _, _, omega, _ = settings_of(settings, run, runs, real)
        finish_backward(
            row, base, cols, block, run, f, total, slope, y, omega, s, G, yf, totals, gp, nodes, channels,
            runs, DAMPED, WANT,
        )  # fmt: skip


@triton.jit
def weight_rows(
    indptr: Any, indices: Any, w: Any, settings: Any, segments: Any, Y: Any, Z: Any, t: Any, gw: Any,
    count: Any, nodes: Any, channels: Any, runs: Any, PSI: tl.constexpr, SLOPE: tl.constexpr,
    UNBOUNDED: tl.constexpr, CLAMP: tl.constexpr, DOUBLE: tl.constexpr, DETACH: tl.constexpr,
    SPLIT: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr, BLOCKS: tl.constexpr,
) -> None:  # fmt: skip
    """Add c_ij ∂M_ij/∂w_ij of all runs for every entry; here c_ij = Z_i·Y_j − t_i alone."""
    row, begin, end, _ = locate(segments, indptr, count, SPLIT)
    if row >= 0:
        for start in range(begin, end, BLOCK_E):
            e = start + tl.arange(0, BLOCK_E)
            there = e < end
            weight = tl.load(w + e, mask=there, other=1.0)
            j = tl.load(indices + e, mask=there, other=0).to(tl.int64)
            slope = tl.load(gw + e, mask=there, other=0.0)
            real = slope.dtype
            for run in range(runs):
                base = (tl.full((), 0, tl.int64) + run) * nodes
                theta, _, _, eps2 = settings_of(settings, run, runs, real)
                own, at = (base + row) * channels, (base + j) * channels
                square, sizes, _, across = products(Y, Z, own, at, there, channels, BLOCK_C, BLOCKS)
                floor = rounding_floor(weight, sizes, DOUBLE)
                M, at_nu, varies = conductance(
                    weight * square, floor, weight, theta, eps2, PSI, UNBOUNDED, CLAMP, DOUBLE
                )
                rate = weight_slope(M, at_nu, varies, weight, theta, PSI, SLOPE, DETACH)
                slope += ((across - tl.load(t + base + row)) * rate).to(real)
            tl.store(gw + e, slope, mask=there)
