"""M_ij = w ψ(ν) (Eq. 12) over a block of entries, with the rules for ν ≈ 0, and its derivatives.

``PSI`` is None for powers, whose exponent ``theta`` may differ from run to run; else it is the penalty's ψ.
Numbers at the edge of the range are treated as in :mod:`plap.kernels.fused.conductance`.
"""

from __future__ import annotations

import triton.language as tl

from plap.kernels.triton.jit import compiled


@compiled
def power(base: tl.tensor, exponent: tl.tensor) -> tl.tensor:
    """base^exponent for base ≥ 0."""
    # 1.2e-38 is the smallest normal number of float32, whose logarithm exists where subnormals count as 0
    return tl.where(base > 0, tl.exp2(exponent * tl.log2(tl.maximum(base, 1.2e-38))), 0.0)


@compiled
def edge_power(nu: tl.tensor, p: tl.tensor) -> tl.tensor:
    """ν^((p-2)/2): square roots where they suffice."""
    if p == 1.0:
        result = tl.rsqrt(nu)
    elif p == 1.5:
        result = tl.rsqrt(tl.sqrt(nu))
    elif p == 2.5:
        result = tl.sqrt(tl.sqrt(nu))
    elif p == 3.0:
        result = tl.sqrt(nu)
    else:
        result = tl.where(p == 2.0, 1.0, power(nu, 0.5 * (p - 2.0)))  # M = w also between equal rows
    return result


@compiled
def rounding_floor(w: tl.tensor, sizes: tl.tensor, DOUBLE: tl.constexpr) -> tl.tensor:
    """The ν below which two rows count as equal: τ² w (|Y_i|² + |Y_j|²), τ = 4 machine epsilons."""
    if DOUBLE:
        return tl.maximum(7.888609052210118e-31 * w * sizes, 2.2250738585072014e-308)
    else:
        return tl.maximum(2.2737367544323206e-13 * w * sizes, 1.1754943508222875e-38)


@compiled
def conductance(
    nu: tl.tensor, floor: tl.tensor, w: tl.tensor, theta: tl.tensor, eps2: tl.tensor, PSI: tl.constexpr,
    UNBOUNDED: tl.constexpr, CLAMP: tl.constexpr, DOUBLE: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """M, the ν that it was computed from, and where M depends on ν; ``eps2`` counts if ``CLAMP``."""
    # what M and ν are cut off at, so that sums stay finite
    LARGEST: tl.constexpr = 1e300 if DOUBLE else 1e30
    nu = tl.minimum(nu, LARGEST)
    if PSI is None:
        if CLAMP:
            held = theta <= 2.0
            varies = tl.where(held, nu >= eps2, nu > floor)
            at = tl.where(held, tl.maximum(nu, eps2), nu)
            psi = edge_power(at, theta)
        else:
            cut = theta < 2.0
            varies = nu > floor
            at = tl.where(varies, nu, tl.where(cut, 1.0, nu))
            psi = edge_power(at, theta)
            psi = tl.where(varies, psi, tl.where(cut, 0.0, psi))
    elif not UNBOUNDED:
        varies = nu > 0
        at = nu
        psi = PSI(at, theta)
    elif CLAMP:
        varies = nu >= eps2
        at = tl.maximum(nu, eps2)
        psi = PSI(at, theta)
    else:
        varies = nu > floor
        at = tl.where(varies, nu, 1.0)
        psi = tl.where(varies, PSI(at, theta), 0.0)
    return tl.minimum(psi * w, LARGEST), at, varies


@compiled
def push_strength(
    c: tl.tensor, M: tl.tensor, at: tl.tensor, varies: tl.tensor, w: tl.tensor, theta: tl.tensor,
    PSI: tl.constexpr, SLOPE: tl.constexpr, DOUBLE: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """κ c = 2 w² ψ'(ν) c, multiplied in an order that keeps intermediate results in range.

    Where rows of 1e-15 and of 1e15 meet, it may itself leave the range of float32, while its product with
    Y_i − Y_j does not; it is cut off then.
    """
    root = tl.rsqrt(tl.where(varies, at, 1.0))
    if PSI is None:
        push = (theta - 2.0) * w * (c * root * M * root)
    else:
        BOUND: tl.constexpr = 1e300 if DOUBLE else 1e30
        steep = tl.minimum(tl.maximum(w * SLOPE(tl.where(varies, at, 1.0), theta), -BOUND), BOUND)
        push = 2.0 * w * (c * root * steep * root)
    END: tl.constexpr = 1e308 if DOUBLE else 3e38
    return tl.where(varies, tl.minimum(tl.maximum(push, -END), END), 0.0)


@compiled
def parameter_slope(
    c: tl.tensor, M: tl.tensor, at: tl.tensor, varies: tl.tensor, w: tl.tensor, theta: tl.tensor,
    PSI: tl.constexpr, RATE: tl.constexpr, UNBOUNDED: tl.constexpr, CLAMP: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """What an entry adds to the slope in the parameter: ½ c w ∂ψ/∂θ, as each edge is met from both ends."""
    if PSI is None:
        # an edge that is cut has no slope, one that is clamped has that of the clamp
        counts = varies
        if CLAMP:
            counts = tl.where(theta <= 2.0, at > 0, varies)
        return tl.where(counts, 0.25 * c * M * tl.log(tl.where(counts, at, 1.0)), 0.0)
    else:
        rate = 0.5 * c * w * RATE(at, theta)
        if UNBOUNDED and not CLAMP:
            rate = tl.where(varies, rate, 0.0)
        return rate


@compiled
def weight_slope(
    M: tl.tensor, at: tl.tensor, varies: tl.tensor, w: tl.tensor, theta: tl.tensor, PSI: tl.constexpr,
    SLOPE: tl.constexpr, DETACH: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """∂M/∂w at fixed degrees."""
    result = M / w
    if not DETACH:
        if PSI is None:
            result = tl.where(varies, 0.5 * theta * result, result)
        else:
            result = result + tl.where(varies, SLOPE(tl.where(varies, at, 1.0), theta), 0.0)
    return result
