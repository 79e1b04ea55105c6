"""One step backward, row by row, on a symmetric graph; layout and symbols as in :mod:`forward_rows`.

With G the gradient of the step's result, Gh = αG, h = Gh·F', Z = s Gh, t = s² h and u = Z·Y − t,

    ∂l/∂F_i = s_i Σ_j [ M_ij Z_j + κ_ij c_ij (Y_i − Y_j) ],      κ_ij = 2 w_ij² ψ'(ν_ij),
    c_ij = u_i + u_j − (Z_i − Z_j)·(Y_i − Y_j)                   (the cotangents of M_ij and M_ji together),

so one pass over the rows does it, and nothing of size edges × channels exists. For powers
κ_ij = (p − 2) M_ij / |Y_i − Y_j|².
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plap.kernels.fused.calling import BLOCK
from plap.kernels.fused.conductance import conductances
from plap.kernels.fused.forward_rows import ONE, TWO, batch_end, later, node_of, squared_gradients
from plap.kernels.fused.jit import compiled, in_order, inlined
from plap.kernels.fused.lanes import add, add_scaled, dot, load, prefetch, scale, splat, store, subtract
from plap.kernels.fused.penalty_functions import CONDUCTANCES, PUSHES, RATES, SLOPES, ask


@compiled
def prepare_rows(
    lo: Any, hi: Any, node: Any, row: Any, s: Any, order: Any, alphas: Any, Y: Any, F_next: Any,
    Y_first: Any, G: Any, YZ: Any, u: Any, t: Any, pull: Any, norms: Any, gX: Any, gm: Any, scalars: Any,
    only_x: Any, blocks: Any, width: Any,
) -> None:  # fmt: skip
    """What the backward pass needs of each node: [Y | Z], u, t, Gh·(X − F'), |Y|²; adds to ∂l/∂X and ∂l/∂m.

    ``F_next`` holds F of the next step, scaled by s unless ``raw`` says that it is the final result. Of
    linear steps of which nothing but ∂l/∂X is wanted, only Z is made.
    """
    p, m, omega, _, raw = scalars
    lanes = np.uint64(BLOCK * len(width))
    real = s.dtype.type
    for at_row in range(lo, hi):
        i = node_of(order, at_row)
        alpha = alphas[node + i] * omega
        if only_x and p == 2.0:
            for b in range(blocks):
                at = row + (i * blocks + b) * lanes
                g = scale(alpha, load(G, at, width))
                store(YZ, TWO * at + lanes, scale(s[i], g))
                store(gX, at, add_scaled(load(gX, at, width), m, g))
            continue
        unscale = real(1) / s[i] if s[i] > 0 else real(0)
        h = zy = slope = norm = real(0)
        for b in range(blocks):
            at = row + (i * blocks + b) * lanes
            g = scale(alpha, load(G, at, width))
            y = load(Y, at, width)
            f = load(F_next, at, width)
            f = f if raw else scale(unscale, f)
            if omega != real(1):
                f = add_scaled(scale(real(1) / omega, f), (real(1) - real(1) / omega) * unscale, y)
            z = scale(s[i], g)
            h += dot(g, f)
            zy += dot(z, y)
            slope += dot(g, subtract(scale(unscale, load(Y_first, at, width)), f))
            norm += dot(y, y)
            store(YZ, TWO * at, y)
            store(YZ, TWO * at + lanes, z)
            store(gX, at, add_scaled(load(gX, at, width), m, g))
        t[node + i] = s[i] * s[i] * h
        u[node + i] = zy - s[i] * s[i] * h
        pull[node + i] = slope
        norms[node + i] = norm
        if s[i] > 0:
            gm[node + i] += slope


@compiled
def rim_rows(
    lo: Any, hi: Any, node: Any, row: Any, order: Any, Y: Any, YZ: Any, u: Any, norms: Any, blocks: Any,
    width: Any,
) -> None:  # fmt: skip
    """The same for rows without a gradient: [Y | 0] where this step brings one, and at their neighbours."""
    lanes = np.uint64(BLOCK * len(width))
    zero = splat(YZ.dtype.type(0), width)
    for at_row in range(lo, hi):
        i = node_of(order, at_row)
        norm = YZ.dtype.type(0)
        for b in range(blocks):
            at = row + (i * blocks + b) * lanes
            y = load(Y, at, width)
            norm += dot(y, y)
            store(YZ, TWO * at, y)
            store(YZ, TWO * at + lanes, zero)
        u[node + i] = YZ.dtype.type(0)
        norms[node + i] = norm


@compiled
def backward_rows(
    lo: Any, hi: Any, node: Any, row: Any, graph: Any, YZ: Any, u: Any, norms: Any, G: Any,
    yf: Any, gp: Any, scalars: Any, buffers: Any, only_x: Any, blocks: Any, width: Any, rule: Any,
) -> None:  # fmt: skip
    """Replace G = ∂l/∂F' by ∂l/∂F; adds to ∂l/∂p, row by row, if wanted.

    ``yf`` receives F_i·∂l/∂F_i without the part of the damping, which the weights' gradient needs.
    """
    indptr, indices, w, s, order = graph
    p, _, omega, eps2, want_p = scalars
    nu, M, cut, c, batch = buffers
    power = len(rule) == 0
    linear = power and p == 2.0 and not want_p
    conductance = w if linear else M
    first = lo
    while first < hi:
        end = hi if linear else batch_end(indptr, first, hi, batch)
        start = np.uint64(0) if linear else np.uint64(indptr[first])
        if not linear:
            count = np.uint64(indptr[end]) - start
            _gradient_products(first, end, node, row, graph, YZ, norms, u, nu, cut, c, blocks, width)
            if len(rule) == 0:
                conductances(nu, M, w, start, count, cut, p, eps2)
            else:
                ask(CONDUCTANCES, rule, nu, M, cut, c, w, start, count, p, eps2)
            if want_p:
                if len(rule) > 0:
                    ask(RATES, rule, nu, M, cut, c, w, start, count, p, eps2)
                for at_row in range(first, end):
                    i = node_of(order, at_row)
                    lo_k, hi_k = np.uint64(indptr[at_row]) - start, np.uint64(indptr[at_row + ONE]) - start
                    if len(rule) == 0:
                        gp[node + i] += _slope_in_p(nu, M, c, lo_k, hi_k, p, eps2)
                    else:
                        gp[node + i] += _half_dot(c, cut, lo_k, hi_k)
            if len(rule) == 0:
                _pushes(nu, M, c, w, start, count, p)
            else:
                ask(PUSHES, rule, nu, M, cut, c, w, start, count, p, eps2)
        for at_row in range(first, end):
            i = node_of(order, at_row)
            yf[node + i] = _backward_row(
                i, np.uint64(indptr[at_row]), np.uint64(indptr[at_row + ONE]), row, indices, YZ, G,
                conductance, c, start, s[i], omega, power and p == 2.0, linear and only_x, blocks, width,
            )  # fmt: skip
        first = end


@compiled
def detached_rows(
    lo: Any, hi: Any, node: Any, row: Any, graph: Any, Y: Any, YZ: Any, norms: Any, G: Any,
    yf: Any, scalars: Any, buffers: Any, blocks: Any, width: Any, rule: Any,
) -> None:  # fmt: skip
    """The same where ψ counts as a constant: ∂l/∂F_i = s_i Σ_j M_ij Z_j."""
    indptr, indices, w, s, order = graph
    p, _, omega, eps2, _ = scalars
    nu, M, cut, c, batch = buffers
    first = lo
    while first < hi:
        end = batch_end(indptr, first, hi, batch)
        start = np.uint64(indptr[first])
        count = np.uint64(indptr[end]) - start
        squared_gradients(first, end, node, row, graph, Y, norms, nu, cut, blocks, width)
        if len(rule) == 0:
            conductances(nu, M, w, start, count, cut, p, eps2)
        else:
            ask(CONDUCTANCES, rule, nu, M, cut, c, w, start, count, p, eps2)
        for at_row in range(first, end):
            i = node_of(order, at_row)
            yf[node + i] = _backward_row(
                i, np.uint64(indptr[at_row]), np.uint64(indptr[at_row + ONE]), row, indices, YZ, G, M, c,
                start, s[i], omega, True, False, blocks, width,
            )  # fmt: skip
        first = end


@compiled
def _gradient_products(
    first: Any, end: Any, node: Any, row: Any, graph: Any, YZ: Any, norms: Any, u: Any,
    nu: Any, cut: Any, c: Any, blocks: Any, width: Any,
) -> None:  # fmt: skip
    """ν_ij, its cut-off and c_ij for the entries of a batch."""
    indptr, indices, w, _, order = graph
    lanes = np.uint64(BLOCK * len(width))
    stride = TWO * blocks * lanes
    start = np.uint64(indptr[first])
    tau2 = w.dtype.type((4 * np.finfo(w.dtype).eps) ** 2)
    least = np.finfo(w.dtype).tiny
    for at_row in range(first, end):
        i = node_of(order, at_row)
        for b in range(blocks):
            offset = TWO * (row + b * lanes)
            y = load(YZ, i * stride + offset, width)
            z = load(YZ, i * stride + offset + lanes, width)
            for e in range(np.uint64(indptr[at_row]), np.uint64(indptr[at_row + ONE])):
                j = np.uint64(indices[e])
                prefetch(YZ, later(indices, e) * stride + offset, width)
                prefetch(YZ, later(indices, e) * stride + offset + lanes, width)
                delta = subtract(y, load(YZ, j * stride + offset, width))
                square = dot(delta, delta) * w[e]
                product = dot(subtract(z, load(YZ, j * stride + offset + lanes, width)), delta)
                if b == 0:
                    nu[e - start] = square
                    cut[e - start] = max(tau2 * w[e] * (norms[node + i] + norms[node + j]), least)
                    c[e - start] = u[node + i] + u[node + j] - product
                else:
                    nu[e - start] += square
                    c[e - start] -= product


@in_order
def _pushes(nu: Any, M: Any, c: Any, w: Any, start: Any, count: Any, p: Any) -> None:
    """κ_ij c_ij in place of c_ij, in an order that keeps intermediate results in range.

    Where rows of 1e-15 and of 1e15 meet, the product itself may leave the range of float32, while its product
    with Y_i − Y_j does not; it is cut off then.
    """
    one = nu.dtype.type(1)
    largest = nu.dtype.type(3e38 if nu.itemsize == 4 else 1e308)
    for k in range(count):
        active = nu[k] > nu.dtype.type(0)
        root = one / np.sqrt(nu[k] if active else one)
        push = nu.dtype.type(p - 2.0) * w[start + k] * (c[k] * root * M[k] * root)
        c[k] = min(max(push, -largest), largest) if active else nu.dtype.type(0)


@inlined
def _backward_row(
    i: Any, begin: Any, end: Any, row: Any, indices: Any, YZ: Any, G: Any, M: Any, c: Any, start: Any,
    s: Any, omega: Any, linear: Any, without_y: Any, blocks: Any, width: Any,
) -> Any:  # fmt: skip
    lanes = np.uint64(BLOCK * len(width))
    stride = TWO * blocks * lanes
    product = M.dtype.type(0)
    for b in range(blocks):
        offset = TWO * (row + b * lanes)
        f = splat(M.dtype.type(0), width)
        y = f if without_y else load(YZ, i * stride + offset, width)
        if linear:
            for e in range(begin, end):
                j = np.uint64(indices[e])
                f = add_scaled(f, M[e - start], load(YZ, j * stride + offset + lanes, width))
        else:
            push = splat(M.dtype.type(0), width)
            for e in range(begin, end):
                j = np.uint64(indices[e])
                f = add_scaled(f, M[e - start], load(YZ, j * stride + offset + lanes, width))
                push = add_scaled(push, c[e - start], subtract(y, load(YZ, j * stride + offset, width)))
            f = add(f, push)
        if not without_y:
            product += dot(y, f)
        at = row + (i * blocks + b) * lanes
        f = scale(s, f)
        if omega != M.dtype.type(1):
            f = add_scaled(f, M.dtype.type(1) - omega, load(G, at, width))
        store(G, at, f)
    return product


@compiled
def _slope_in_p(nu: Any, M: Any, c: Any, lo: Any, hi: Any, p: Any, eps2: Any) -> Any:
    """Σ ¼ c M log ν over a row: each edge is met from both ends, and c is the sum of both cotangents."""
    total = 0.0
    for k in range(lo, hi):
        if nu[k] > 0:
            total += 0.25 * c[k] * M[k] * np.log(nu[k])
        elif eps2 > 0.0 and p <= 2.0:
            total += 0.25 * c[k] * M[k] * np.log(eps2)
    return total


@compiled
def _half_dot(c: Any, rates: Any, lo: Any, hi: Any) -> Any:
    """Σ ½ c w ∂ψ/∂parameter over a row: each edge is met from both ends, and c is of both."""
    total = 0.0
    for k in range(lo, hi):
        total += 0.5 * c[k] * rates[k]
    return total


@compiled
def weight_rows(
    lo: Any, hi: Any, node: Any, row: Any, graph: Any, YZ: Any, u: Any, t: Any, pull: Any, yf: Any,
    norms: Any, gw: Any, scalars: Any, buffers: Any, blocks: Any, width: Any, rule: Any,
) -> None:  # fmt: skip
    """Add ∂l/∂w_ij = c_ij ∂M_ij/∂w_ij + ∂l/∂D_i for every entry; here c_ij = Z_i·Y_j − t_i alone."""
    indptr, indices, w, s, _ = graph  # rows are never sorted here
    p, m, _, eps2, detach = scalars
    nu, M, cut, c, batch = buffers
    lanes = np.uint64(BLOCK * len(width))
    stride = TWO * blocks * lanes
    real = s.dtype.type
    first = lo
    while first < hi:
        end = batch_end(indptr, first, hi, batch)
        start = np.uint64(indptr[first])
        _gradient_products(first, end, node, row, graph, YZ, norms, u, nu, cut, c, blocks, width)
        count = np.uint64(indptr[end]) - start
        if len(rule) == 0:
            conductances(nu, M, w, start, count, cut, p, eps2)
        else:
            ask(CONDUCTANCES, rule, nu, M, cut, c, w, start, count, p, eps2)
            ask(SLOPES, rule, nu, M, cut, c, w, start, count, p, eps2)
        for i in range(first, end):
            if s[i] == 0:
                continue
            own = t[node + i]
            total = real(0)
            for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + ONE])):
                total += M[e - start]
            rest = yf[node + i] - own * total - m * pull[node + i]
            to_degree = real(-0.5) * s[i] * s[i] * rest
            for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + ONE])):
                j = np.uint64(indices[e])
                product = -own
                for b in range(blocks):
                    offset = TWO * (row + b * lanes)
                    z = load(YZ, i * stride + offset + lanes, width)
                    product += dot(z, load(YZ, j * stride + offset, width))
                varies = nu[e - start] > 0 and not detach
                if len(rule) == 0:
                    share = real(0.5 * p) if varies else real(1)
                    gw[e] += product * share * M[e - start] / w[e] + to_degree
                else:
                    steep = cut[e - start] if varies else real(0)
                    gw[e] += product * (M[e - start] / w[e] + steep) + to_degree
        first = end
