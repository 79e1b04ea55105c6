"""ψ of a penalty and its derivatives as Triton functions."""

from __future__ import annotations

import linecache
from functools import cache
from typing import Any, NamedTuple

import triton.language as tl

from plap.kernels.penalty_code import BLOCKS, FUNCTIONS, POWER, Code, code_at, place_of
from plap.kernels.triton.edges import power
from plap.kernels.triton.jit import compiled


class PenaltyFunctions(NamedTuple):
    """What the kernels need of a penalty; None for powers, which they know."""

    psi: Any
    slope: Any
    """ν dψ/dν."""
    rate: Any
    """∂ψ/∂parameter."""
    unbounded: bool


@cache
def functions_of(key: str) -> PenaltyFunctions:
    """The functions of the penalty that operators know by this key."""
    if key == POWER:
        return PenaltyFunctions(None, None, None, False)
    code = code_at(place_of(key))
    psi, slope, rate = (_function(code, name) for name in FUNCTIONS)
    return PenaltyFunctions(psi, slope, rate, code.unbounded)


def _function(code: Code, name: str) -> Any:
    """Triton reads a function's source by way of :mod:`linecache`, so that is where it is put."""
    source = code.source(name, BLOCKS)
    place = f"<{name} of {code.key}>"
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
    names: dict[str, Any] = {"tl": tl, "power": power, "__name__": __name__}
    exec(compile(source, place, "exec"), names)
    return compiled(names["compiled"])
