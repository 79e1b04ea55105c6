"""M_ij = w ψ(ν) and its derivatives for penalties other than powers, over a buffer of edges.

As in :mod:`conductance`, the loops run over the edges of many rows so that LLVM can vectorise them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import carray
from numba.extending import overload

from plap.kernels.fused.conductance import EXP2, power_float32
from plap.kernels.fused.jit import (
    bits_float,
    c_function,
    compiled,
    float_bits,
    in_order,
    invoke,
    multiply_add,
    pointer,
    source_stamp,
)
from plap.kernels.penalty_code import NUMBERS, code_at

_ROUNDER = np.float32(12582912.0)  # 1.5 · 2^23: adding it leaves an integer in the low bits
_ONE_BITS = np.int32(0x3F800000)


@in_order
def _exp_float32(x: Any) -> Any:
    """e^x = 2^n 2^f with n an integer; 0 below the range of float32."""
    t = min(max(x * np.float32(1.4426950408889634), np.float32(-127)), np.float32(126))
    turns = float_bits(t + _ROUNDER) - float_bits(_ROUNDER)
    f = t - np.float32(turns)
    result = np.float32(EXP2[6])
    for term in range(6):
        result = multiply_add(result, f, np.float32(EXP2[5 - term]))
    scaled = result * bits_float(_ONE_BITS + (max(turns, np.int32(-126)) << np.int32(23)))
    return scaled if t > np.float32(-126.5) else np.float32(0)


@in_order
def _exp_float64(x: Any) -> Any:
    return np.exp(x)


@in_order
def _power_float64(base: Any, exponent: Any) -> Any:
    return base**exponent


_NAMES: dict[int, dict[str, Any]] = {
    32: {"np": np, "R": np.float32, "exp": _exp_float32, "power": power_float32},
    64: {"np": np, "R": np.float64, "exp": _exp_float64, "power": _power_float64},
}
"""What the translated source may use, by the bits of a number."""

_OPTIONS = {"error_model": "numpy", "nogil": True}


def _of_kind(function: str) -> Callable[..., Any]:
    def choose(kind: Any, nu: Any, theta: Any) -> Any:
        names = dict(_NAMES[nu.bitwidth])
        exec(code_at(len(kind)).source(function, NUMBERS, "kind, nu, theta"), names)
        return names["compiled"]

    return choose


def psi(kind: Any, nu: Any, theta: Any) -> Any:
    """ψ(ν) of one edge."""


def slope(kind: Any, nu: Any, theta: Any) -> Any:
    """ν dψ/dν of one edge."""


def rate(kind: Any, nu: Any, theta: Any) -> Any:
    """∂ψ/∂parameter of one edge."""


def is_unbounded(kind: Any) -> Any:
    """Whether ψ grows beyond all bounds at 0, known at compile time."""


overload(psi, jit_options=_OPTIONS, strict=False)(_of_kind("psi"))
overload(slope, jit_options=_OPTIONS, strict=False)(_of_kind("dpsi_dlog_nu"))
overload(rate, jit_options=_OPTIONS, strict=False)(_of_kind("dpsi_dparameter"))


def _is_unbounded(kind: Any) -> Any:
    return (lambda kind: True) if code_at(len(kind)).unbounded else (lambda kind: False)


overload(is_unbounded, strict=False)(_is_unbounded)


CONDUCTANCES, PUSHES, RATES, SLOPES = range(4)
"""What can be asked of a penalty for a buffer of edges."""

_EDGES = np.dtype(
    [(name, "u8") for name in ("task", "count", "nu", "M", "cut", "c", "w")]
    + [("theta", "f8"), ("eps2", "f8")]
)


@cache
def edge_loop(penalty: int, double: bool) -> Any:
    """The C function that works on a buffer of edges; ``.address`` is where it is.

    The loops over rows call it by its address, so that they are compiled once for all penalties.
    """
    kind = (0,) * penalty
    real = np.float64 if double else np.float32
    stamp = source_stamp() + code_at(penalty).key

    def loop(address: Any) -> None:
        stamp  # noqa: B018  (part of the key of Numba's cache, which looks at this file alone)
        _work(carray(address, (1,), _EDGES)[0], kind, real)

    return c_function(loop)


@compiled
def ask(
    task: Any,
    rule: Any,
    nu: Any,
    M: Any,
    cut: Any,
    c: Any,
    w: Any,
    start: Any,
    count: Any,
    theta: Any,
    eps2: Any,
) -> None:
    """Do a task by the penalty whose function ``rule`` holds the address of."""
    edges = np.empty(1, _EDGES)
    edges[0].task = task
    edges[0].count = count
    edges[0].nu = nu.ctypes.data
    edges[0].M = M.ctypes.data
    edges[0].cut = cut.ctypes.data
    edges[0].c = c.ctypes.data
    edges[0].w = w.ctypes.data + start * np.uint64(w.itemsize)
    edges[0].theta = theta
    edges[0].eps2 = eps2
    invoke(rule[0], np.uint64(edges.ctypes.data))


@compiled
def _work(edges: Any, kind: Any, real: Any) -> None:
    size = (np.int64(edges.count),)
    nu = carray(pointer(edges.nu), size, real)
    M = carray(pointer(edges.M), size, real)
    cut = carray(pointer(edges.cut), size, real)
    c = carray(pointer(edges.c), size, real)
    w = carray(pointer(edges.w), size, real)
    theta, eps2 = real(edges.theta), real(edges.eps2)
    if edges.task == CONDUCTANCES:
        _conductances(kind, nu, M, w, cut, theta, eps2)
    elif edges.task == PUSHES:
        _pushes(kind, nu, c, w, theta)
    elif edges.task == RATES:
        _rates(kind, nu, cut, w, theta, eps2)
    else:
        _slopes(kind, nu, cut, theta)


@in_order
def _conductances(kind: Any, nu: Any, M: Any, w: Any, cut: Any, theta: Any, eps2: Any) -> None:
    """Fill ``M``; set ``nu`` to 0 on the edges whose M does not depend on it.

    As in :func:`plap.kernels.fused.conductance.conductances`; ``cut`` is overwritten. Where ψ is bounded,
    there is neither cut nor clamp.
    """
    zero = nu.dtype.type(0)
    one = nu.dtype.type(1)
    largest = nu.dtype.type(1e30 if nu.itemsize == 4 else 1e300)  # so that sums stay finite
    for k in range(nu.size):
        nu[k] = min(nu[k], largest)
    if not is_unbounded(kind):
        for k in range(nu.size):
            M[k] = psi(kind, nu[k], theta)
    elif eps2 > zero:
        for k in range(nu.size):
            cut[k] = max(nu[k], eps2)
            nu[k] = nu[k] if nu[k] >= eps2 else zero
        for k in range(nu.size):
            M[k] = psi(kind, cut[k], theta)
    else:
        for k in range(nu.size):
            active = nu[k] > cut[k]
            cut[k] = nu[k] if active else one
            nu[k] = nu[k] if active else zero
        for k in range(nu.size):
            M[k] = psi(kind, cut[k], theta)
        for k in range(nu.size):
            M[k] = M[k] if nu[k] > zero else zero
    for k in range(nu.size):
        M[k] = min(M[k] * w[k], largest)


@in_order
def _pushes(kind: Any, nu: Any, c: Any, w: Any, theta: Any) -> None:
    """κ_ij c_ij = 2 w² ψ'(ν) c_ij in place of c_ij, in an order that keeps intermediate results in range."""
    zero = nu.dtype.type(0)
    one = nu.dtype.type(1)
    two = nu.dtype.type(2)
    bound = nu.dtype.type(1e30 if nu.itemsize == 4 else 1e300)
    largest = nu.dtype.type(3e38 if nu.itemsize == 4 else 1e308)
    for k in range(nu.size):
        active = nu[k] > zero
        at = nu[k] if active else one
        root = one / np.sqrt(at)
        steep = min(max(w[k] * slope(kind, at, theta), -bound), bound)
        push = two * w[k] * (c[k] * root * steep * root)
        c[k] = min(max(push, -largest), largest) if active else zero


@in_order
def _rates(kind: Any, nu: Any, cut: Any, w: Any, theta: Any, eps2: Any) -> None:
    """w ∂ψ/∂parameter in place of ``cut``."""
    zero = nu.dtype.type(0)
    one = nu.dtype.type(1)
    for k in range(nu.size):
        if not is_unbounded(kind):
            cut[k] = w[k] * rate(kind, nu[k], theta)
        elif eps2 > zero:
            cut[k] = w[k] * rate(kind, max(nu[k], eps2), theta)
        else:
            active = nu[k] > zero
            found = w[k] * rate(kind, nu[k] if active else one, theta)
            cut[k] = found if active else zero


@in_order
def _slopes(kind: Any, nu: Any, cut: Any, theta: Any) -> None:
    """ν dψ/dν in place of ``cut``, 0 where M does not depend on ν."""
    zero = nu.dtype.type(0)
    one = nu.dtype.type(1)
    for k in range(nu.size):
        active = nu[k] > zero
        found = slope(kind, nu[k] if active else one, theta)
        cut[k] = found if active else zero
