"""One step backward, row by row, on a symmetric graph; formulas as in ``plap.kernels.fused.backward_rows``.

Programs, segments and hubs are those of :mod:`forward_rows`. As the graph is symmetric, a row's own program
finds all that its neighbours' results owe to it.
"""

from __future__ import annotations

import triton.language as tl

from plap.kernels.triton.edges import (
    conductance,
    parameter_slope,
    push_strength,
    rounding_floor,
    weight_slope,
)
from plap.kernels.triton.forward_rows import locate, settings_of
from plap.kernels.triton.jit import compiled


@compiled
def prepare_rows(
    s: tl.tensor, settings: tl.tensor, alphas: tl.tensor, Y: tl.tensor, F_next: tl.tensor, Y_first: tl.tensor,
    G: tl.tensor, Z: tl.tensor, u: tl.tensor, t: tl.tensor, pull: tl.tensor, gX: tl.tensor, gm: tl.tensor,
    nodes: tl.tensor, channels: tl.constexpr, runs: tl.tensor, RAW: tl.constexpr, DAMPED: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
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
    _theta, m, omega, _eps2 = settings_of(settings, run, runs, real)
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


@compiled
def products(
    Y: tl.tensor, Z: tl.tensor, own: tl.tensor, at: tl.tensor, there: tl.tensor, channels: tl.constexpr,
    BLOCK_C: tl.constexpr, BLOCKS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
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


@compiled
def backward_rows(
    indptr: tl.tensor, indices: tl.tensor, w: tl.tensor, s: tl.tensor, settings: tl.tensor,
    segments: tl.tensor, Y: tl.tensor, Z: tl.tensor, u: tl.tensor, G: tl.tensor, yf: tl.tensor, gp: tl.tensor,
    sums: tl.tensor, count: tl.tensor, slots: tl.tensor, nodes: tl.tensor, channels: tl.constexpr,
    runs: tl.tensor, PSI: tl.constexpr, SLOPE: tl.constexpr, RATE: tl.constexpr, UNBOUNDED: tl.constexpr,
    CLAMP: tl.constexpr, DOUBLE: tl.constexpr, DAMPED: tl.constexpr, DETACH: tl.constexpr, WANT: tl.constexpr,
    SPLIT: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr, BLOCKS: tl.constexpr,
) -> None:  # fmt: skip
    """Replace G = ∂l/∂F' by ∂l/∂F; adds to the slope in the parameter, row by row, if ``WANT``.

    ``yf`` receives Σ_j M_ij, and then F_i·∂l/∂F_i without the part of the damping for each block of channels;
    the weights' gradient needs both. ``DETACH``: ψ counts as a constant.
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
        theta, _m, omega, eps2 = settings_of(settings, run, runs, real)
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
                square, sizes, along, _across = products(
                    Y, Z, own, j * channels, there, channels, BLOCK_C, BLOCKS
                )
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
                row, base, cols, block, run, f, total, slope, y, omega, s, G, yf, gp, nodes, channels,
                runs, DAMPED, WANT,
            )  # fmt: skip
        else:
            place = sums + (run.to(tl.int64) * slots + slot) * (channels + 2)
            tl.store(place + cols, f, mask=cols < channels)
            if block == 0:
                tl.store(place + channels, total)
                tl.store(place + channels + 1, slope.to(real))


@compiled
def finish_backward(
    row: tl.tensor, base: tl.tensor, cols: tl.tensor, block: tl.tensor, run: tl.tensor, f: tl.tensor,
    total: tl.tensor, slope: tl.tensor, y: tl.tensor, omega: tl.tensor, s: tl.tensor, G: tl.tensor,
    yf: tl.tensor, gp: tl.tensor, nodes: tl.tensor, channels: tl.constexpr, runs: tl.tensor,
    DAMPED: tl.constexpr, WANT: tl.constexpr,
) -> None:  # fmt: skip
    """Write ∂l/∂F_i and what else is known of the row."""
    at = (base + row) * channels + cols
    result = tl.load(s + row) * f
    if DAMPED:
        result += (1.0 - omega) * tl.load(G + at, mask=cols < channels, other=0.0)
    tl.store(G + at, result, mask=cols < channels)
    tl.store(yf + ((block.to(tl.int64) + 1) * runs + run) * nodes + row, tl.sum(y * f))
    if block == 0:
        tl.store(yf + base + row, total)
        if WANT:
            tl.store(gp + base + row, tl.load(gp + base + row) + slope)


@compiled
def finish_hubs_backward(
    hubs: tl.tensor, s: tl.tensor, settings: tl.tensor, Y: tl.tensor, G: tl.tensor, yf: tl.tensor,
    gp: tl.tensor, sums: tl.tensor, count: tl.tensor, slots: tl.tensor, nodes: tl.tensor,
    channels: tl.constexpr, runs: tl.tensor, DAMPED: tl.constexpr, WANT: tl.constexpr, BLOCK_C: tl.constexpr,
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
            place = sums + (run.to(tl.int64) * slots + slot) * (channels + 2)
            f += tl.load(place + cols, mask=cols < channels, other=0.0)
            total += tl.load(place + channels)
            slope += tl.load(place + channels + 1).to(tl.float64)
        _theta, _m, omega, _eps2 = settings_of(settings, run, runs, real)
        finish_backward(
            row, base, cols, block, run, f, total, slope, y, omega, s, G, yf, gp, nodes, channels,
            runs, DAMPED, WANT,
        )  # fmt: skip


@compiled
def weight_rows(
    indptr: tl.tensor, indices: tl.tensor, w: tl.tensor, settings: tl.tensor, segments: tl.tensor,
    Y: tl.tensor, Z: tl.tensor, t: tl.tensor, gw: tl.tensor, count: tl.tensor, nodes: tl.tensor,
    channels: tl.constexpr, runs: tl.tensor, PSI: tl.constexpr, SLOPE: tl.constexpr, UNBOUNDED: tl.constexpr,
    CLAMP: tl.constexpr, DOUBLE: tl.constexpr, DETACH: tl.constexpr, SPLIT: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr, BLOCKS: tl.constexpr,
) -> None:  # fmt: skip
    """Add c_ij ∂M_ij/∂w_ij of all runs for every entry; here c_ij = Z_i·Y_j − t_i alone."""
    row, begin, end, _slot = locate(segments, indptr, count, SPLIT)
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
                theta, _m, _omega, eps2 = settings_of(settings, run, runs, real)
                own, at = (base + row) * channels, (base + j) * channels
                square, sizes, _along, across = products(Y, Z, own, at, there, channels, BLOCK_C, BLOCKS)
                floor = rounding_floor(weight, sizes, DOUBLE)
                M, at_nu, varies = conductance(
                    weight * square, floor, weight, theta, eps2, PSI, UNBOUNDED, CLAMP, DOUBLE
                )
                rate = weight_slope(M, at_nu, varies, weight, theta, PSI, SLOPE, DETACH)
                slope += ((across - tl.load(t + base + row)) * rate).to(real)
            tl.store(gw + e, slope, mask=there)
