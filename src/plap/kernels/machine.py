"""The few machine instructions that Numba does not offer by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from plap.kernels.jit import instruction

Codegen = Callable[[Any, Any, Any, Any], Any]


@instruction
def pointer(typingctx: Any, address: Any) -> tuple[Any, Codegen]:
    """An address as a ``void *`` for ``numba.carray``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.uint64), codegen


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
