"""How the kernels are compiled: Numba's decorators with our options, and a few instructions that it lacks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from plap.kernels.fused.calling import TaskLoop

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
"""For formulas whose order of operations keeps them from overflowing, and for loops over edges: what an edge
gives must not depend on whether a vector takes it or the scalar remainder of the loop, and LLVM would
estimate 1/√ν in vectors alone."""

instruction: Callable[[Callable[..., Any]], Any] = intrinsic
"""For functions that write LLVM instructions themselves."""


@cache
def source_stamp() -> str:
    """A digest of the kernels' sources, for the key under which Numba keeps what it compiled."""
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))).hexdigest()


def c_function(function: Callable[[Any], None]) -> Any:
    """``function`` of one address as C code, kept on disk unless there is no folder to keep it in."""
    signature = types.void(types.voidptr)
    try:
        return cfunc(signature, cache=True, error_model="numpy")(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return cfunc(signature, error_model="numpy")(function)


def task_loop(function: Callable[[Any], None]) -> tuple[TaskLoop, int]:
    """A task loop, which releases the GIL, and where its code is."""
    code = c_function(function)
    return code.ctypes, code.address


Codegen = Callable[[Any, Any, Any, Any], Any]


@instruction
def pointer(typingctx: Any, address: Any) -> tuple[Any, Codegen]:
    """An address as a ``void *`` for ``numba.carray``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.uint64), codegen


@inlined
def array_at(address: Any, size: Any, dtype: Any) -> Any:
    """``size`` numbers from ``address`` on."""
    return carray(pointer(np.uint64(address)), (np.int64(size),), dtype)


@compiled
def of_run(address: Any, run: Any, size: Any, dtype: Any) -> Any:
    """The ``size`` numbers of a run, where those of all runs follow one another from ``address`` on."""
    return array_at(address, (run + 1) * size, dtype)[run * size :]


@instruction
def invoke(typingctx: Any, address: Any, argument: Any) -> tuple[Any, Codegen]:
    """Call the C function of one pointer that is at ``address``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t]).as_pointer()
        builder.call(builder.inttoptr(args[0], kind), [builder.inttoptr(args[1], cgutils.voidptr_t)])
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen


@instruction
def next_ticket(typingctx: Any, counter: Any) -> tuple[Any, Codegen]:
    """``counter[0]``, and one is added to it: atomic, so that no two threads get the same."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), codegen


@instruction
def float_bits(typingctx: Any, value: Any) -> tuple[Any, Codegen]:
    """The bits of a float32 as an int32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@instruction
def bits_float(typingctx: Any, value: Any) -> tuple[Any, Codegen]:
    """The float32 that an int32 holds the bits of."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@instruction
def multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> tuple[Any, Codegen]:
    """a·b + c of float32, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), codegen
