"""How the kernels are compiled: Numba's decorators with our options, and types that mypy can follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from numba import cfunc, njit, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


class Decorator(Protocol):
    """Takes a function, gives the same function compiled."""

    def __call__(self, function: F, /) -> F:
        """Compile ``function``."""
        ...


_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_REORDER = {"contract", "reassoc", "nsz", "arcp"}

compiled: Decorator = njit(**_OPTIONS, fastmath=_REORDER)
"""Sums and products may be reordered; NaN and infinity keep their meaning."""

inlined: Decorator = njit(**_OPTIONS, fastmath=_REORDER, inline="always")
"""For small helpers: pasted into their callers before compilation, which makes that shorter."""

in_order: Decorator = njit(**_OPTIONS, fastmath=False)
"""For formulas whose order of operations keeps them from overflowing."""

instruction: Callable[[Callable[..., Any]], Any] = intrinsic
"""For functions that write LLVM instructions themselves."""


def c_function(function: Callable[[Any], None]) -> Any:
    """``function`` of one address as C code, kept on disk unless there is no folder to keep it in."""
    signature = types.void(types.voidptr)
    try:
        return cfunc(signature, cache=True, error_model="numpy")(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return cfunc(signature, error_model="numpy")(function)
