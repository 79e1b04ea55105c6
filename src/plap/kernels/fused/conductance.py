"""M_ij = w ν^((p-2)/2) (Eq. 12) over a buffer of edges, with the rules for ν ≈ 0.

The loops here run over the edges of many rows, apart from the loops over channels, so that LLVM can take
eight or more edges at a time and the left-overs of its vectors do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plap.kernels.fused.jit import bits_float, float_bits, in_order, multiply_add

_LOG2 = (
    1.4426950035679822,
    -0.7213474682495624,
    0.48091075345941253,
    -0.36069326813533614,
    0.28790326092450147,
    -0.2391698814010418,
    0.21607822552243777,
    -0.20586188051276055,
    0.1231096846719146,
)
"""log2(1 + z) / z on [√½ - 1, √2 - 1], relative error 3e-8."""

EXP2 = (
    1.0,
    0.6931472067028326,
    0.24022650922288757,
    0.05550327226670302,
    0.009618056678524637,
    0.0013400428177615838,
    0.0001546144469856913,
)
"""2^f on [-½, ½], relative error 3e-9."""

_SQRT_HALF_BITS = np.int32(0x3F3504F3)
_ONE_BITS = np.int32(0x3F800000)
_ROUNDER = np.float32(12582912.0)  # 1.5 · 2^23: adding it leaves an integer in the low bits


@in_order
def conductances(nu: Any, M: Any, w: Any, begin: Any, count: Any, cut: Any, p: Any, eps2: Any) -> None:
    """Fill ``M``; set ``nu`` to 0 on the edges whose M does not depend on it.

    ``nu`` holds ν of ``count`` edges and ``cut`` the ν below which two rows count as equal; ``cut`` is
    overwritten. ``eps2`` > 0 replaces the cut by the clamp max(ν, eps²) for p ≤ 2.
    """
    zero = nu.dtype.type(0)
    one = nu.dtype.type(1)
    if p > 2.0 or (p == 2.0 and eps2 == 0.0):
        _power(nu, M, count, p)
        for k in range(count):
            nu[k] = nu[k] if nu[k] > cut[k] else zero
    elif eps2 > 0.0:
        for k in range(count):
            cut[k] = max(nu[k], eps2)
            nu[k] = nu[k] if nu[k] >= eps2 else zero
        _power(cut, M, count, p)
    else:
        for k in range(count):
            active = nu[k] > cut[k]
            cut[k] = nu[k] if active else one
            nu[k] = nu[k] if active else zero
        _power(cut, M, count, p)
        for k in range(count):
            M[k] = M[k] if nu[k] > zero else zero
    largest = nu.dtype.type(1e30 if nu.itemsize == 4 else 1e300)  # so that sums stay finite
    for k in range(count):
        M[k] = min(M[k] * w[begin + k], largest)


@in_order
def _power(nu: Any, out: Any, count: Any, p: Any) -> None:
    """ν^((p-2)/2): square roots where they suffice, otherwise 2^(h log2 ν)."""
    one = nu.dtype.type(1)
    h = nu.dtype.type(0.5 * (p - 2.0))
    if p == 1.0:
        for k in range(count):
            out[k] = one / np.sqrt(nu[k])
    elif p == 1.5:
        for k in range(count):
            out[k] = one / np.sqrt(np.sqrt(nu[k]))
    elif p == 2.0:
        for k in range(count):
            out[k] = one
    elif p == 2.5:
        for k in range(count):
            out[k] = np.sqrt(np.sqrt(nu[k]))
    elif p == 3.0:
        for k in range(count):
            out[k] = np.sqrt(nu[k])
    elif nu.itemsize == 4:
        for k in range(count):
            out[k] = power_float32(nu[k], h)
    else:
        for k in range(count):
            out[k] = nu[k] ** h


@in_order
def power_float32(nu: Any, h: Any) -> Any:
    """ν^h = 2^(h·e) 2^(h·log2 m) for ν = 2^e m; the integer part of h·e is split off without rounding."""
    bits = float_bits(max(nu, np.float32(1.2e-38)))
    shifted = bits - _SQRT_HALF_BITS
    exponent = np.float32(np.int32(shifted >> np.int32(23)))
    z = bits_float(bits - (shifted & np.int32(-8388608))) - np.float32(1)
    series = np.float32(_LOG2[8])
    for term in range(8):
        series = multiply_add(series, z, np.float32(_LOG2[7 - term]))
    turns = float_bits(h * exponent + _ROUNDER) - float_bits(_ROUNDER)
    rest = multiply_add(h, exponent, -np.float32(turns)) + h * (z * series)
    more = float_bits(rest + _ROUNDER) - float_bits(_ROUNDER)
    f = rest - np.float32(more)
    result = np.float32(EXP2[6])
    for term in range(6):
        result = multiply_add(result, f, np.float32(EXP2[5 - term]))
    scale = min(max(turns + more, np.int32(-126)), np.int32(120))
    return result * bits_float(_ONE_BITS + (scale << np.int32(23))) if nu > 0 else np.float32(0)
